"""Parameters by name, as scikit-learn's estimators have them, without scikit-learn, which takes a second to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from dpselect.capabilities import field_values
from dpselect.errors import ArgumentError

__all__ = ["Parameterised"]


@dataclass(kw_only=True, eq=False, repr=False)
class Parameterised:
    """Parameters as a study asks learners and maps for them. The public estimators are made of these."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - there are no parts
        """The parameters by name."""
        return dict(sorted(field_values(self).items()))

    def set_params(self, **parameters: Any) -> Self:
        """Set some of them. Raises `ArgumentError` for a name that is none."""
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise ArgumentError(f"no parameter is named {name!r}; there are {', '.join(known)}")
            setattr(self, name, value)
        return self
