"""Synthetic rows like those of a table, from public facts alone: its container, its columns' names and their types.

No cell is read, and no category of a data frame's own: those are found in rows. Words come from the encoders that the
estimator declares to be public. If a type leaves open what a column holds (text, objects), rows of several styles are
offered, and a dry run uses the first that the public steps take.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import Any, Final

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from dpselect.integrations.sklearn.columns import chosen_places
from dpselect.integrations.sklearn.methods import has_method
from dpselect.integrations.sklearn.public import PublicTransformer
from dpselect.learners.company import ROWS
from dpselect.learners.containers import is_frame, is_pandas
from dpselect.randomness import RandomSource, keyed_source

__all__ = ["one_a_row", "synthetic_beside", "synthetic_tables", "with_holes", "with_row"]

_STYLES: Final[Mapping[str, Any]] = {
    "words": lambda digit: "abcdefghij"[digit],
    "numbers": lambda digit: str(digit),
    "dates": lambda digit: f"2001-02-{digit + 10}",
    "times": lambda digit: f"2001-02-{digit + 10} 03:04:05",
}
_OBJECTS: Final = {"objects": lambda digit: float(digit) / 10.0}
_BEGIN: Final = datetime.datetime(2001, 1, 1)
_HOLES: Final = tuple(range(1, ROWS, 5))


def synthetic_tables(X: Any, estimator: Any) -> Iterator[Any]:
    """Tables of `ROWS` rows in the container of X, more than one if the types leave styles open.

    Numbers are uniform in [0, 1), or whole ones from 0 to 9. None come of a container of columns that is not known.
    """
    if is_frame(X) and not (is_pandas(X) or has_method(X, "with_columns")):
        return
    kinds = _kinds(X)
    words = _words(estimator, X, len(kinds))
    styles = {**_STYLES, **_OBJECTS} if any(kind == "object" for kind in kinds) else _STYLES
    if not is_frame(X) and "object" in kinds:
        styles = {**_OBJECTS, **_STYLES}
    if not any(kind in ("text", "object") and not words[place] for place, kind in enumerate(kinds)):
        styles = {"words": _STYLES["words"]}
    for name in styles:
        source = keyed_source("rehearsal").spawn("rows")
        columns = [_column(kind, words[place], styles[name], source.spawn(place)) for place, kind in enumerate(kinds)]
        yield _in_container(X, columns)


def synthetic_beside(beside: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """The further arguments of `fit`: ones for a value with one number a row, any other as it is given."""

    def like(value: Any) -> Any:
        if not one_a_row(value, rows):
            return value
        numbers = isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
        return np.ones(ROWS, dtype=value.dtype if numbers else np.float64)

    return {name: like(value) for name, value in beside.items()}


def one_a_row(value: Any, rows: int) -> bool:
    """Whether a further argument of `fit` holds one thing a row."""
    return isinstance(value, Sized) and not isinstance(value, (str, bytes)) and len(value) == rows


def with_row(X: Any, row: Any) -> Any:
    """A table and below it a table of one row, made up for it: in the container of X, and of its types."""
    if is_pandas(X):
        import pandas as pd

        return pd.concat([X, row], ignore_index=True)
    if is_frame(X):
        return X.vstack(row.cast(dict(X.schema)))
    return np.concatenate([X, row.astype(X.dtype)])


def with_holes(X: Any) -> Any:
    """The same synthetic rows with missing cells, or None where no column can have any."""
    if not is_frame(X):
        if X.dtype.kind not in "fO":
            return None
        holed = X.copy()
        holed[list(_HOLES)] = np.nan
        return holed
    if is_pandas(X):
        holed = X.copy()
        for place, kind in enumerate(X.dtypes):
            if not isinstance(kind, np.dtype) or kind.kind not in "biu":
                series = holed.iloc[:, place].copy()
                series.iloc[list(_HOLES)] = None
                holed.isetitem(place, series)
        return holed
    import polars

    present = polars.Series([place not in _HOLES for place in range(ROWS)])
    return X.with_columns(polars.when(present).then(polars.all()).otherwise(None).name.keep())


def _kinds(X: Any) -> list[str]:
    """Of each column: bool, whole, number, time, span, text, or object, by its type."""
    if not is_frame(X):
        table = np.asarray(X)
        return [_by_letter(table.dtype.kind)] * table.shape[1]
    if is_pandas(X):
        return [_pandas_kind(kind) for kind in X.dtypes]
    return [_polars_kind(kind) for kind in X.schema.values()]


def _by_letter(letter: str) -> str:
    known = {"b": "bool", "i": "whole", "u": "whole", "f": "number", "M": "time", "m": "span", "U": "text", "S": "text"}
    return known.get(letter, "object")


def _pandas_kind(kind: Any) -> str:
    from pandas.api import types

    if isinstance(kind, np.dtype):
        return _by_letter(kind.kind)
    tests = {
        "bool": types.is_bool_dtype,
        "whole": types.is_integer_dtype,
        "number": types.is_float_dtype,
        "time": types.is_datetime64_any_dtype,
        "span": types.is_timedelta64_dtype,
    }
    if type(kind).__name__ == "CategoricalDtype":
        return "text"
    return next((name for name, is_it in tests.items() if is_it(kind)), "text")


def _polars_kind(kind: Any) -> str:
    import polars

    if kind.is_integer():
        return "whole"
    if kind.is_numeric():
        return "number"
    if kind == polars.Boolean:
        return "bool"
    if kind in (polars.Date, polars.Datetime):
        return "time"
    if kind == polars.Duration:
        return "span"
    return "text"


def _column(kind: str, words: Sequence[Any], style: Any, source: RandomSource) -> list[Any]:
    """The cells of one column, as Python's own types."""
    drawn = source.uniform(ROWS)
    digits = [int(10 * each) for each in drawn]
    if words:
        return [words[int(len(words) * each)] for each in drawn]
    match kind:
        case "bool":
            return [digit < 5 for digit in digits]
        case "whole":
            return digits
        case "number":
            return list(map(float, drawn))
        case "time":
            return [_BEGIN + datetime.timedelta(seconds=int(1e7 * each)) for each in drawn]
        case "span":
            return [datetime.timedelta(seconds=int(1e6 * each)) for each in drawn]
    return [style(digit) for digit in digits]


def _in_container(X: Any, columns: Sequence[Sequence[Any]]) -> Any:
    if not is_frame(X):
        kind = np.asarray(X).dtype
        table = np.empty((ROWS, len(columns)), dtype=object)
        for place, cells in enumerate(columns):
            table[:, place] = cells
        # a type of text is as long as the longest cell, which is in a row
        return table.astype(kind if kind.kind in "biufMm" else kind.kind if kind.kind in "US" else object)
    if is_pandas(X):
        return _pandas_frame(X, columns)
    return _polars_frame(X, columns)


def _pandas_frame(X: Any, columns: Sequence[Sequence[Any]]) -> Any:
    import pandas as pd

    made = []
    for kind, cells in zip(X.dtypes, columns, strict=True):
        if isinstance(kind, pd.CategoricalDtype):
            made.append(pd.Series(pd.Categorical(cells, ordered=kind.ordered)))
        elif isinstance(kind, pd.DatetimeTZDtype):
            made.append(pd.Series(cells).dt.tz_localize("UTC").astype(kind))
        else:
            made.append(pd.Series(cells, dtype=object if kind.kind == "O" else None).astype(kind))
    frame = pd.concat(made, axis=1)
    frame.columns = X.columns
    return frame


def _polars_frame(X: Any, columns: Sequence[Sequence[Any]]) -> Any:
    import polars

    def series(name: str, kind: Any, cells: Sequence[Any]) -> Any:
        if kind == polars.Enum:
            return polars.Series(name, cells, dtype=polars.Enum(sorted(set(map(str, cells)))))
        if isinstance(cells[0], datetime.datetime):
            zone = kind.time_zone if isinstance(kind, polars.Datetime) else None
            return polars.Series(name, cells).dt.replace_time_zone(zone).cast(kind)
        return polars.Series(name, cells).cast(kind)

    named = zip(X.schema.items(), columns, strict=True)
    return type(X)([series(name, kind, cells) for (name, kind), cells in named])


def _words(estimator: Any, X: Any, count: int) -> list[list[Any]]:
    """For each column the public categories that the encoders of the estimator declare for it, or an empty list."""
    found: list[list[Any]] = [[] for _ in range(count)]
    _gather(estimator, list(range(count)), X, found)
    return found


def _gather(node: Any, places: Sequence[int], X: Any, found: list[list[Any]]) -> bool:
    """Note the categories of the first step that sees these columns. False if the columns pass on unchanged."""
    if node is None or isinstance(node, str):
        return node == "drop"
    if isinstance(node, PublicTransformer):
        return _gather(node.transformer, places, X, found)
    if isinstance(node, Pipeline):
        return any(_gather(step, places, X, found) for _, step in node.steps)
    if isinstance(node, FeatureUnion):
        for _, part in node.transformer_list:
            _gather(part, places, X, found)
        return True
    if isinstance(node, ColumnTransformer):
        rest = set(range(len(places)))
        for _, part, columns in node.transformers:
            chosen = chosen_places(columns, X, len(places))
            rest -= set(chosen)
            _gather(part, [places[place] for place in chosen], X, found)
        _gather(node.remainder, [places[place] for place in sorted(rest)], X, found)
        return True
    categories = getattr(node, "categories_", getattr(node, "categories", None))
    if isinstance(categories, (list, tuple)) and len(categories) == len(places):
        for place, known in zip(places, categories, strict=True):
            if not found[place]:
                found[place] = [value for value in np.asarray(known, dtype=object).tolist() if value == value]
    return True
