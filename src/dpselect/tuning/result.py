"""What a search releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpselect.privacy import Release

__all__ = ["TuneResult"]


@dataclass(frozen=True, kw_only=True)
class TuneResult(Release):
    """The winner of a search, or nothing: `params` and `value` are None when no run succeeded or none was made.

    `score` is None unless the study declared it as an output. `key_variable` names an environment variable that held
    the key of the sealed store and that the operator must now drop.
    """

    params: Mapping[str, Any] | None = None
    score: float | None = None
    key_variable: str | None = None

    def notebook_rows(self) -> list[tuple[str, Any]]:
        """The winner's parameters, and its score where that was declared."""
        if self.params is None:
            return super().notebook_rows()
        declared = [] if self.score is None else [("score", self.score)]
        return [("parameters", dict(self.params)), *super().notebook_rows(), *declared]
