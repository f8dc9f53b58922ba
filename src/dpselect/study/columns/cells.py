"""How a study says that the cells of a column are read."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from dpselect.tables import KINDS, Declared
from dpselect.tables.kinds.declared import Scalar

__all__ = ["CellKeys"]

_KEYS: Final = (
    "format",
    "two_digit_years_from",
    "time_zone",
    "true_values",
    "false_values",
    "missing_values",
    "unicode",
)


def _kind(name: str) -> str:
    KINDS[name]
    return name


@lru_cache(maxsize=4096)
def _declared(kind: str, *values: Any) -> Declared:
    return Declared(kind=kind, **dict(zip(_KEYS, values, strict=True)))


Values = Annotated[tuple[Scalar, ...], Field(min_length=1)]


class CellKeys(BaseModel):
    """How the cells of a column are read: the keys of `dpselect.tables.Declared`."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    kind: Annotated[str, AfterValidator(_kind)] = "number"
    """How cells are read: "number", "integer", "boolean", "date", "timestamp", "duration" or "category"."""
    format: str | None = None
    """How dates are written, as in Python's strptime ("%d.%m.%Y"); without it ISO 8601."""
    two_digit_years_from: int | None = None
    """The first of the hundred years that %y in a format means: with 1920 they are 1920 to 2019."""
    time_zone: str | None = None
    """Of dates and times without an offset, as in the IANA database ("Europe/Berlin") or "+01:00"; without it UTC."""
    true_values: Values | None = None
    """What means true in a boolean column, such as ["yes"], in addition to true and 1."""
    false_values: Values | None = None
    """What means false, such as ["no"], in addition to false and 0."""
    missing_values: Values | None = None
    """What means that there is no value, such as [-99, "NA"], in addition to an empty cell."""
    unicode: str | None = None
    """Of categories: "NFC" (the default), so that an accent may be typed in two ways, or "exact"."""

    @model_validator(mode="after")
    def _readable(self) -> CellKeys:
        _ = self.declared
        return self

    @property
    def declared(self) -> Declared:
        """The same for `dpselect.tables`. Raises `ArgumentError`."""
        return self._declared_as(self.kind)

    def _declared_as(self, kind: str) -> Declared:
        values = self.true_values, self.false_values, self.missing_values
        return _declared(kind, self.format, self.two_digit_years_from, self.time_zone, *values, self.unicode)
