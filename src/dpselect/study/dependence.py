"""Partial dependence of a released model: its mean answer at each value of a column, over synthetic rows.

Partial dependence (J. Friedman, Annals of Statistics 29, 2001) averages a model over rows. Here the rows are synthetic,
made from public facts, so that only the released model is used. It is post-processing, and costs nothing.

The distribution of the synthetic rows. The columns are independent. A number is uniform between its bounds, by its
logarithm if the scale is "log". A boolean is true half the time, and each category is equally likely. No cell is
missing, and a text has no words. Real rows are of another distribution, which is private: columns that go together in
them do not here.

The rows are a Latin hypercube: of N rows, each N-th part of a column's range has one. So the average over a column by
itself is as good as that over a grid of N points. They are the same in every call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dpselect.errors import ArgumentError, integer
from dpselect.numerics.search import Array
from dpselect.randomness import keyed_source
from dpselect.study.columns.column import Column

__all__ = ["PartialDependence", "partial_dependence", "strongest"]

_PICTURES: Final = 6
"""Columns that a report shows."""
_MOST_COLUMNS: Final = 100
"""A report shows none of more columns, such as pixels: each tells little, and to compare them takes long."""
_BLOCK: Final = 1 << 13
"""So many rows are asked at once."""


@dataclass(frozen=True, eq=False)
class PartialDependence:
    """The mean answer of a model at values of one column.

    Attributes:
        column: its name.
        values: the values in order, as the study writes them: numbers, dates or categories.
        answers: of a regression the mean answers in the units of the label, shape (values,); of classes their mean
            probabilities in the order of the model's `classes`, shape (values, classes).
    """

    column: str
    values: tuple[Any, ...]
    answers: Array

    @property
    def reach(self) -> float:
        """How far the answers move over the values: the largest difference of an answer."""
        return float(np.max(np.ptp(self.answers, axis=0)))


def partial_dependence(model: Any, column: str, *, points: int, rows: int) -> PartialDependence:
    """The partial dependence of a `ReleasedModel` on a column, at so many values of a number, over so many rows."""
    columns: Mapping[str, Column] = model.columns
    if column not in columns:
        raise ArgumentError(f"column must be one of {', '.join(map(repr, columns))}, got {column!r}")
    points, rows = integer("points", points, at_least=2, at_most=1000), integer("rows", rows, at_least=1, at_most=10**6)
    if columns[column].kind == "text":
        raise ArgumentError(f"column {column!r} is text, which has no values in an order: take another column")
    made = _rows(columns, rows)
    shares = np.linspace(0.0, 1.0, points)
    values, features = _at(columns[column], shares)
    step = max(1, _BLOCK // rows)
    blocks = [features[start : start + step] for start in range(0, len(features), step)]
    return PartialDependence(column, tuple(values), np.concatenate([_means(model, made, column, b) for b in blocks]))


def strongest(model: Any) -> list[dict[str, Any]]:
    """The columns on which a model's mean answer depends most, for release.json: six at most, the strongest first."""
    names = [name for name, column in model.columns.items() if column.kind != "text"]
    if len(names) > _MOST_COLUMNS:
        return []
    reach = {name: partial_dependence(model, name, points=5, rows=64).reach for name in names}
    chosen = sorted(names, key=lambda name: -reach[name])[:_PICTURES]
    found = [partial_dependence(model, name, points=17, rows=256) for name in chosen if reach[name] > 0.0]
    return [
        {"column": each.column, "values": list(each.values), "answers": _rounded(each.answers).tolist()}
        for each in found
    ]


def _rounded(answers: Array) -> Array:
    """To four significant digits, which are the same wherever a model is loaded."""
    return np.array([float(f"{each:.4g}") for each in answers.ravel()]).reshape(answers.shape)


def _means(model: Any, made: Mapping[str, Array], column: str, features: Array) -> Array:
    """The mean answers over the synthetic rows with each of these features in the place of the column's own."""
    rows = len(made[column])
    parts = [
        np.repeat(features, rows, axis=0) if name == column else np.tile(own, (len(features), 1))
        for name, own in made.items()
    ]
    given = model.estimator.predict if model.label_bounds is not None else model.estimator.predict_proba
    answers = np.asarray(given(np.hstack(parts)))
    return np.asarray(np.mean(answers.reshape(len(features), rows, *answers.shape[1:]), axis=1))


def _rows(columns: Mapping[str, Column], rows: int) -> dict[str, Array]:
    """The features of synthetic rows, by column."""
    random = keyed_source("partial dependence")
    found = {}
    for name, column in columns.items():
        shares = (random.spawn(name).permutation(rows) + 0.5) / rows
        if column.kind == "text":
            found[name] = np.zeros((rows, column.width))
        elif column.categories is not None:
            found[name] = np.eye(len(column.categories), column.width)[(shares * len(column.categories)).astype(int)]
        else:
            found[name] = column.features(_numbers(column, shares))
    return found


def _at(column: Column, shares: Array) -> tuple[Sequence[Any], Array]:
    """The values of a column to look at, and the features of each: all categories, or numbers between the bounds."""
    if column.categories is not None:
        return column.categories, np.eye(len(column.categories), column.width)
    numbers = np.unique(_numbers(column, shares))
    written = column.declared.column_kind.written
    return [written(float(f"{each:.12g}"), column.declared) for each in numbers], column.features(numbers)


def _numbers(column: Column, shares: Array) -> Array:
    """Numbers so far from the lower bound to the upper one."""
    low, high = column.limits
    if column.scale == "log":
        further = 0.0 if low > 0.0 else 1.0
        ends = np.log(low + further), np.log(high + further)
        return np.clip(np.exp(ends[0] + shares * (ends[1] - ends[0])) - further, low, high)
    numbers = np.clip(low * (1.0 - shares) + high * shares, low, high)
    return np.round(numbers) if column.kind in ("boolean", "integer") else numbers
