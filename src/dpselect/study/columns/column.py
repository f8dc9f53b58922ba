"""The public facts about one feature of a study, and how it encodes a cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, time
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from dpselect.errors import ArgumentError, ContentError
from dpselect.numerics.search import Array
from dpselect.study.columns.cells import CellKeys
from dpselect.study.columns.scale import SCALES, Scale
from dpselect.study.columns.text import MOST_FEATURES, Analyzer, HashedText
from dpselect.tables import Declared
from dpselect.tables.categories import positions
from dpselect.tables.kinds.declared import Scalar, other_dates

__all__ = ["Column", "Scalar", "differ"]

INDICATOR: Final = "indicator"
TEXT: Final = "text"
"""The kind of a column that has neither bounds nor categories."""
_HASHING: Final = {"n_features": 2048, "analyzer": "word", "ngram_range": (1, 1)}
"""Of a text; a release names them, so that its model stays what it is when these change."""
PRIVATE: Final = "private"
OF_A_MODEL: Final = {"model": True}
"""As the context of a validation: version 0.2 wrote models whose %y means the years 1969 to 2068."""
_PLAIN: Final = Declared(kind="category")
_TELLING: Final = 10
"""So many cells, none of which can be read, tell that their form is another; one may be a person's \"unknown\"."""


def differ(options: tuple[Scalar, ...], declared: Declared = _PLAIN) -> bool:
    """Whether no two of them are one category."""
    return len({declared.category(option) for option in options}) == len(options)


def _text(value: Any) -> Any:
    """TOML has dates of its own."""
    return value.isoformat() if isinstance(value, (date, datetime, time)) else value


Public = Annotated[Scalar, BeforeValidator(_text)]


class Column(CellKeys):
    """The public facts about one feature: bounds to which values are clipped, categories, or that it is text."""

    bounds: tuple[Public, Public] | Literal["private"] | None = None
    """Values are clipped to these; numbers, dates, or durations in seconds. "private" buys them (`[preparation]`).
    Booleans need none."""
    within: tuple[Public, Public] | None = None
    """With bounds = "private", and public: what surely holds them; the narrower, the fewer rows they take."""
    scale: str = "linear"
    """From the bounds to features in [-1, 1]: "linear" (the middle becomes 0), "log", or "bins:16" for indicators."""
    missing: Public | None = None
    """What stands for a cell that is missing or cannot be read: a public value, or "indicator" for a further column."""
    categories: Annotated[tuple[Scalar, ...], Field(min_length=1)] | None = None
    """Each becomes an indicator column; other values become zeros. "" stands for a missing cell."""
    other: bool = False
    """A further indicator column for anything that is none of the categories."""
    n_features: Annotated[int, Field(ge=2, le=MOST_FEATURES)] | None = None
    """Of text: how many features its terms are hashed to, 2048 by default."""
    analyzer: Analyzer | None = None
    """Of text, its terms: "word" (default), or runs of letters, "char_wb" within words or "char" across them."""
    ngram_range: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(le=10)]] | None = None
    """Of text: the least and the largest number of words or letters in a term, [1, 1] by default."""

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, declared: Any) -> Any:
        kind = declared.get("kind") if isinstance(declared, Mapping) else None
        if kind == TEXT:
            return _HASHING | dict(declared)
        return {"bounds": (False, True), **declared} if kind == "boolean" and "categories" not in declared else declared

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> Column:
        if self.declared.unclear and info.context != OF_A_MODEL:
            raise ValueError(self.declared.unclear)
        if self.kind == TEXT:
            return self._consistent_text()
        if (self.n_features, self.analyzer, self.ngram_range) != (None, None, None):
            raise ValueError('n_features, analyzer and ngram_range go with kind = "text"')
        if self.kind == "category" and self.categories is None:
            raise ValueError('kind = "category" goes with categories')
        if (self.bounds is None) == (self.categories is None):
            raise ValueError('give exactly one of bounds and categories, or kind = "text"')
        return self._consistent_numbers() if self.categories is None else self._consistent_categories(self.categories)

    def _consistent_categories(self, categories: tuple[Scalar, ...]) -> Column:
        if not differ(categories, self.declared):
            raise ValueError("categories must differ; 1, 1.0, '1' and true are the same")
        if self.kind not in ("number", "category") or (self.scale, self.within) != ("linear", None):
            raise ValueError('kind (but for "category"), scale and within go with bounds')
        if self.missing is not None and self.missing != INDICATOR and self._filled is None:
            raise ValueError(f'missing must be one of the categories or "{INDICATOR}"')
        return self

    def _consistent_numbers(self) -> Column:
        if self.other:
            raise ValueError("other goes with categories")
        if self.within is not None and not self.private:
            raise ValueError('within goes with bounds = "private"')
        if self.kind == "boolean" and self.private:
            raise ValueError("the bounds of booleans are known: leave bounds out")
        low, high = self.limits
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            key = "within" if self.within else "bounds"
            written = f", written as {self.format} or in ISO 8601" if self.format else ""
            cure = f". Write {key} = [{high:g}, {low:g}]" if low > high and not written else ""
            raise ValueError(f"{key} must be two finite {self.kind}s{written}, the lower one first{cure}")
        scale, size = self._scale
        refused = scale.refused(low, size)
        if refused:
            raise ValueError(refused + (": declare within" if self.private and not self.within else ""))
        if self.missing not in (None, INDICATOR) and not low <= self._number(self.missing) <= high:
            raise ValueError(f'missing must be a {self.kind} within the bounds, or "{INDICATOR}"')
        if self.private:
            self._with_bounds(low, high)  # a format may not tell them apart
        return self

    def _consistent_text(self) -> Column:
        if (self.bounds, self.within, self.categories, self.format) != (None,) * 4 or self.scale != "linear":
            raise ValueError("kind text has no bounds, within, categories, format or scale")
        if self.other:
            raise ValueError("other goes with categories")
        if self.missing not in (None, INDICATOR):
            raise ValueError(f'missing of a text must be "{INDICATOR}"; without it a missing text counts as empty')
        if self.ngram_range is not None and self.ngram_range[0] > self.ngram_range[1]:
            raise ValueError("ngram_range must have the smaller number first")
        return self

    @property
    def declared(self) -> Declared:
        """How its cells are read."""
        return self._declared_as(self.kind if self.categories is None else "category")

    @property
    def private(self) -> bool:
        """Whether its bounds are still to be bought."""
        return self.bounds == PRIVATE

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds as numbers. Until they are estimated privately, the range that holds them."""
        given = self.within if self.private else self.bounds
        if given is None or isinstance(given, str):
            return self.declared.widest
        return self._number(given[0]), self._number(given[1])

    def bought(self, low: float, high: float) -> Column:
        """The column with these bounds, or with the range around them if they cannot be written as two that differ."""
        try:
            return self._with_bounds(low, high)
        except ValueError:
            return self._with_bounds(*self.limits)

    def _with_bounds(self, low: float, high: float) -> Column:
        written = self.declared.column_kind.written
        public = self.model_dump(exclude_none=True, exclude={"within"})
        public["missing"] = self._kept(self.missing, low, high)
        return Column(**public | {"bounds": (written(low, self.declared), written(high, self.declared))})

    def _kept(self, fill: Scalar | None, low: float, high: float) -> Scalar | None:
        """The value that replaces a missing cell, clipped to bounds that are estimated privately."""
        if fill is None or fill == INDICATOR or low <= self._number(fill) <= high:
            return fill
        return self.declared.column_kind.written(low if self._number(fill) < low else high, self.declared)

    @property
    def width(self) -> int:
        """How many features it becomes."""
        further = self.missing == INDICATOR
        if self.kind == TEXT:
            return self._hashed.n_features + further
        if self.categories is not None:
            return len(self.categories) + self.other + further
        return max(1, self._scale[1]) + further

    @property
    def half_width(self) -> float | None:
        """Half the distance of the bounds, if the scale maps them to -1 and 1. None for indicators only."""
        if self.categories is not None or self.kind == TEXT or self._scale[0].with_size:
            return None
        low, high = self.limits
        return high / 2 - low / 2 if self.scale == "linear" else 1.0

    def encode(self, name: str, cells: Any, *, empty: bool = False) -> Array:
        """Features of shape (cells, width), each row from its own cell. Raises `ContentError` that names the column.

        With `empty`, for rows to predict, a column whose missing cells are declared may be missing everywhere.
        """
        if self.categories is not None:
            return self._indicators(cells)
        if self.kind == TEXT:
            return self._texts(cells)
        return self.features(self.numbers(name, cells, empty=empty))

    def _indicators(self, cells: Any) -> Array:
        assert self.categories is not None
        size = len(self.categories)
        named = self.declared.category
        places = positions(cells, self.categories, named)
        if self.missing is not None:
            empty = np.array([named(cell) == "" for cell in cells], dtype=bool) & (places < 0)
            places = np.where(empty, size + self.other if self._filled is None else self._filled, places)
        if self.other:
            places = np.where(places < 0, size, places)
        return np.asarray(places[:, None] == np.arange(self.width), dtype=np.float64)

    def _texts(self, cells: Any) -> Array:
        absent = [self.declared.category(cell) == "" for cell in cells]
        features = self._hashed.encode([None if lost else cell for cell, lost in zip(cells, absent, strict=True)])
        return features if self.missing != INDICATOR else np.column_stack([features, absent])

    def numbers(self, name: str, cells: Any, *, empty: bool = False) -> Array:
        """The cells as numbers, NaN where one is missing, shape (cells,). Raises `ContentError` as `encode` does."""
        try:
            values = self.declared.read(cells)
        except TypeError as error:
            raise ContentError(f"column {name!r} {error}") from None
        lost = np.isnan(values)
        other = other_dates(cells, values) if "format" in self.declared.column_kind.keys and lost.any() else 0
        if other > 1 and 9 * other > np.count_nonzero(~lost):
            raise ContentError(
                f"column {name!r} holds dates in another form than declared: say format, such as "
                '"%d/%m/%Y" or "%m/%d/%Y", with two_digit_years_from for %y'
            )
        every = bool(len(values) and lost.all())
        if every and empty:
            every = sum(self.declared.category(cell) != "" for cell in cells) >= _TELLING
        self.refuse_lost(name, some=bool(lost.any()), every=every)
        return values

    def refuse_lost(self, name: str, *, some: bool, every: bool) -> None:
        """Raise `ContentError` if `some` cells have no number and nothing is declared for them, or if `every` is so."""
        hint = self.declared.column_kind.hint
        if self.missing is None and some:
            raise ContentError(
                f"column {name!r} has a cell that is missing or no {self.kind}, and the study declares nothing for it: "
                f'missing = a value within the bounds, or "{INDICATOR}"; or categories in place of bounds{hint}'
            )
        if every:
            raise ContentError(f"column {name!r} has no cell that can be read as a {self.kind}{hint}")

    def features(self, values: Array) -> Array:
        """The features that `encode` makes of numbers."""
        low, high = self.limits
        lost = np.isnan(values)
        filled = np.where(lost, self.fill, values)
        scale, size = self._scale
        features = scale.features(np.clip(filled, low, high), low, high, size)
        if self.missing != INDICATOR:
            return features
        return np.column_stack([np.where(lost[:, None], 0.0, features), lost])

    @property
    def fill(self) -> float:
        """The number that stands for a missing one."""
        low, high = self.limits
        return low / 2 + high / 2 if self.missing in (None, INDICATOR) else self._number(self.missing)

    @property
    def bins(self) -> int:
        """How many intervals its scale has, 0 for another scale."""
        return self._scale[1]

    @property
    def _filled(self) -> int | None:
        """The place of the category that stands for a missing cell, None where there is none."""
        assert self.categories is not None
        place = int(positions([self.missing], self.categories, self.declared.category)[0])
        return None if self.missing is None or place < 0 else place

    @property
    def _hashed(self) -> HashedText:
        """How a text becomes features."""
        assert self.n_features is not None
        assert self.analyzer is not None
        assert self.ngram_range is not None
        return HashedText(self.n_features, self.analyzer, self.ngram_range)

    @property
    def _scale(self) -> tuple[Scale, int]:
        name, colon, size = self.scale.partition(":")
        scale = SCALES[name]
        if bool(colon) != scale.with_size or (colon and not size.isdecimal()):
            raise ArgumentError(f"scale must be {name}:SIZE" if scale.with_size else f"scale {name} has no size")
        return scale, int(size or 0)

    def _number(self, value: Any) -> float:
        """A bound or a fill."""
        if self.kind == "number" and isinstance(value, str):
            raise ValueError(
                'bounds and missing must be numbers, without quotation marks; of dates, with kind = "date" beside them'
            )
        cells = np.empty(1, dtype=object)
        cells[0] = value
        found = self.declared.column_kind.read(cells, self.declared)[0]
        if self.format is not None and isinstance(value, str) and np.isnan(found):  # or in ISO 8601
            plain = replace(self.declared, format=None, two_digit_years_from=None)
            found = plain.column_kind.read(cells, plain)[0]
        return float(found)
