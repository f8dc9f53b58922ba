"""Scores of one output, high where the data's law is thought to exceed its neighbour's.

They are fitted on a part of the draws.

An event of an audit is a set {score >= t} or {score <= t}. The best events are those of the likelihood ratio (Neyman,
Pearson), which each of these tries to follow in its own way: by counting labels and repeated values, by a histogram, by
the low bits of floats, by the number itself (whose tails are exact for the usual noises), by a classifier. No matter
what a score is fitted to, it is judged on other draws. A bad score costs power and nothing else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dpselect.audit.outputs import Outputs, bit_keys, joined, mixed
from dpselect.audit.result import shortened
from dpselect.numerics.search import Array

__all__ = ["OutputScore", "fitted_scores"]

Keys = NDArray[np.uint64]

_FREQUENT: Final = 4  # a value seen this often is counted by itself
_BINS: Final = 192
_COLUMNS: Final = 32  # more columns than these are left to the classifier
_CLASSIFIED: Final = 40_000  # draws of each data set that a classifier is fitted to: seconds, not minutes


class OutputScore(Protocol):
    """A number for each output, and words for {score >= t} and {score <= t}."""

    def __call__(self, outputs: Outputs) -> Array: ...

    def words(self, threshold: float, at_least: bool) -> str: ...


def fitted_scores(data: Outputs, neighbour: Outputs, *, low_bits: bool) -> Iterator[OutputScore]:
    """Every score that suits such outputs, fitted to these draws. `low_bits` adds those of the bits of floats."""
    features = data.columns.shape[1]
    names = data.names or (["output"] if features == 1 else [f"feature {place}" for place in range(features)])
    if features != 1 or {data.shown.dtype.kind, neighbour.shown.dtype.kind} != {
        "f"
    }:  # else every value that repeats is a cell of its histogram
        yield _counted(data, neighbour, _whole, "output")
    histograms: list[CellScore] = []
    for place, name in enumerate(names[:_COLUMNS]):
        if place not in data.nominal:
            yield ColumnScore(place, name)
        histograms.append(_counted(data, neighbour, _histogram_cells(data, neighbour, place), name))
        yield histograms[-1]
        if low_bits and (data.floating or neighbour.floating) and place not in data.nominal:
            yield _counted(data, neighbour, partial(_granularity, place), f"granularity of {name}")
            yield _counted(data, neighbour, partial(_low_bits, place), f"low bits of {name}")
    if features > 1:
        yield SumScore(tuple(histograms))
        yield from _classifiers(data, neighbour)


@dataclass(frozen=True)
class ColumnScore:
    """A number of the output itself: its tails."""

    place: int
    name: str

    def __call__(self, outputs: Outputs) -> Array:
        return outputs.columns[:, self.place]

    def words(self, threshold: float, at_least: bool) -> str:
        """The tail."""
        return f"{self.name} {'>=' if at_least else '<='} {threshold!r}"


@dataclass(frozen=True, eq=False)
class CellScore:
    """The logarithm of a counted ratio, for outputs cut into cells. Cells that were rare share one ratio."""

    cells: Callable[[Outputs], Keys]
    known: Keys
    ratios: Array
    examples: NDArray[Any]
    rare: float
    name: str

    def __call__(self, outputs: Outputs) -> Array:
        keys = self.cells(outputs)
        if self.known.size == 0:
            return np.full(keys.size, self.rare)
        place = np.minimum(np.searchsorted(self.known, keys), self.known.size - 1)
        return np.where(self.known[place] == keys, self.ratios[place], self.rare)

    def words(self, threshold: float, at_least: bool) -> str:
        """The cells, each by an output that is in it."""
        inside = self.ratios >= threshold if at_least else self.ratios <= threshold
        others = self.rare >= threshold if at_least else self.rare <= threshold
        few = [shortened(example) for example in self.examples[inside][:4]]
        more = f" and {int(inside.sum()) - len(few)} more" if inside.sum() > len(few) else ""
        like = "one of" if self.cells is _whole else "like"
        found = f"{self.name} is {like} {', '.join(few)}{more}" if few else f"{self.name} is a rare one"
        return f"{found}, or a rare one" if few and others else found


@dataclass(frozen=True)
class SumScore:
    """The sum of the columns' counted ratios: the likelihood ratio where the columns are independent."""

    parts: tuple[CellScore, ...]

    def __call__(self, outputs: Outputs) -> Array:
        return sum((part(outputs) for part in self.parts), start=np.zeros(len(outputs)))  # in one order for each

    def words(self, threshold: float, at_least: bool) -> str:
        """Not sayable in fewer words than the fitted ratios."""
        return f"sum of the features' fitted log-ratios {'>=' if at_least else '<='} {threshold:.6g}"


@dataclass(frozen=True, eq=False)
class ClassifierScore:
    """The decision value of a classifier that tells the two data sets' outputs apart."""

    tame: Callable[[Array], Array]
    decide: Callable[[Array], Array]
    name: str

    def __call__(self, outputs: Outputs) -> Array:
        with threadpool_limits(1):
            return np.asarray(self.decide(self.tame(outputs.columns)), dtype=np.float64)

    def words(self, threshold: float, at_least: bool) -> str:
        """Not sayable in fewer words than the fitted model."""
        return f"score of a fitted {self.name} {'>=' if at_least else '<='} {threshold:.6g}"


def _counted(data: Outputs, neighbour: Outputs, cells: Callable[[Outputs], Keys], name: str) -> CellScore:
    """The smoothed log-ratio of the shares of each cell: one draw is added to both counts."""
    both = np.concatenate((cells(data), cells(neighbour)))
    known, first, place = np.unique(both, return_index=True, return_inverse=True)
    ours = np.bincount(place[: len(data)], minlength=known.size)
    theirs = np.bincount(place[len(data) :], minlength=known.size)
    frequent = ours + theirs >= _FREQUENT
    level = np.log(len(neighbour) / len(data))
    ratios = np.log((ours + 1.0) / (theirs + 1.0)) + level
    rare = np.log((ours[~frequent].sum() + 1.0) / (theirs[~frequent].sum() + 1.0)) + level
    kept = first[frequent]
    shown = joined((data, neighbour)).shown[kept]
    return CellScore(cells, known[frequent], ratios[frequent], shown, float(rare), name)


def _whole(outputs: Outputs) -> Keys:
    """A cell for every output."""
    return outputs.keys


def _histogram_cells(data: Outputs, neighbour: Outputs, place: int) -> Callable[[Outputs], Keys]:
    """Values that repeat are cells of their own (atoms: -inf, NaN, a clipping bound). The others fall into quantiles.

    The outermost bins are finer by halves, since that is where a ratio of two noises is largest.
    """
    values = np.concatenate((data.columns[:, place], neighbour.columns[:, place]))
    repeated, counts = np.unique(mixed(bit_keys(values)[:, None]), return_counts=True)
    atoms = repeated[counts >= _FREQUENT]
    spread = values[~_among(mixed(bit_keys(values)[:, None]), atoms)]
    spread = np.sort(spread[~np.isnan(spread)])
    tails = 2.0 ** -np.arange(1.0, 24.0)
    levels = np.unique(np.concatenate((np.linspace(0.0, 1.0, _BINS + 1), tails, 1.0 - tails)))
    levels = levels[np.minimum(levels, 1.0 - levels) * spread.size >= 8.0]
    edges = spread[(levels * spread.size).astype(np.intp)] if spread.size else spread

    def cells(outputs: Outputs) -> Keys:
        column = outputs.columns[:, place]
        keys = mixed(bit_keys(column)[:, None])
        # a bin's number cannot be taken for an atom's key, other than by a chance of 2**-56
        return np.where(_among(keys, atoms), keys, np.searchsorted(edges, column, side="right").astype(np.uint64))

    return cells


def _among(keys: Keys, known: Keys) -> NDArray[np.bool_]:
    if known.size == 0:
        return np.zeros(keys.size, dtype=bool)
    return np.asarray(known[np.minimum(np.searchsorted(known, keys), known.size - 1)] == keys)


def _granularity(place: int, outputs: Outputs) -> Keys:
    """The exponent of a double and of its last bit that is set.

    Noise in floating point reaches other multiples around 0 than around 1 (Mironov 2012): the sum with a large number
    has lost its low bits, and what only one data set can produce is seen.
    """
    bits = bit_keys(outputs.columns[:, place])
    _, lowest = np.frexp((bits & (~bits + np.uint64(1))).astype(np.float64))  # exact: a power of two
    return (bits >> np.uint64(52)) * np.uint64(128) + lowest.astype(np.uint64)


def _low_bits(place: int, outputs: Outputs) -> Keys:
    """The last eight bits of the shortest float type that holds the column."""
    bits = bit_keys(outputs.columns[:, place])
    single = (bits & np.uint64(2**29 - 1)) == 0
    return np.where(single, (bits >> np.uint64(29)) & np.uint64(255), (bits & np.uint64(255)) + np.uint64(256))


def _taming(columns: Array) -> Callable[[Array], Array]:
    """Numbers that a classifier takes: deviations from the median, clipped, beside columns for what is not finite.

    In units of the quartiles, which outliers do not move.
    """
    finite = np.nan_to_num(columns, nan=0.0, posinf=0.0, neginf=0.0)
    with np.errstate(over="ignore", invalid="ignore"):  # a width that is not a number is taken to be 1
        low, centre, high = np.nan_to_num(np.quantile(finite, [0.25, 0.5, 0.75], axis=0))
        spread = np.where(high > low, high - low, finite.std(axis=0))
    width = np.where((spread > 0.0) & np.isfinite(spread), spread, 1.0)

    def tame(columns: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            moved = np.clip((columns - centre) / width, -30.0, 30.0)
        return np.concatenate((np.nan_to_num(moved), (~np.isfinite(columns)).astype(np.float64)), axis=1)

    return tame


def _weighted_sum(weights: Array, intercept: float, features: Array) -> Array:
    """Column by column: a product of matrices may round equal rows differently, by their places."""
    total = np.full(len(features), intercept)
    for place, weight in enumerate(weights):
        total += weight * features[:, place]
    return total


def _classifiers(data: Outputs, neighbour: Outputs) -> Iterator[OutputScore]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    columns = np.concatenate((data.columns[:_CLASSIFIED], neighbour.columns[:_CLASSIFIED]))
    labels = np.arange(len(columns)) < min(len(data), _CLASSIFIED)
    tame = _taming(columns)
    features = tame(columns)
    scaler, linear = StandardScaler().fit(features), LogisticRegression(max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is judged by what it finds
        linear.fit(scaler.transform(features), labels)
    weights = linear.coef_[0] / scaler.scale_
    decide = partial(_weighted_sum, weights, float(linear.intercept_[0] - weights @ scaler.mean_))
    yield ClassifierScore(tame, decide, "logistic regression")
    trees = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, early_stopping=False, random_state=0)
    with threadpool_limits(1):  # more threads than free cores wait for each other
        trees.fit(features, labels)
    yield ClassifierScore(tame, trees.decision_function, "gradient boosting")
