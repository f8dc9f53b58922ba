"""Declared bounds of columns: the scale that they make in front of a learner, and the warning where none are.

Public facts alone decide, which are parameters, names and types of columns. No cell is read.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Final

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures

from dpselect.errors import ArgumentError, levels_to_the_caller, number
from dpselect.integrations.sklearn.columns import chosen_places
from dpselect.integrations.sklearn.declarations import is_declared
from dpselect.integrations.sklearn.methods import has_method
from dpselect.learners.learner import PrivateLearner
from dpselect.learners.rows import column_names, table_shape
from dpselect.preprocessing import CenteredScale
from dpselect.tuning import TuneResult

__all__ = ["ScaledSearch", "refuse_unused_bounds", "warn_if_unscaled", "with_declared_scale"]

_BARE: Final = "estimator"


def refuse_unused_bounds(scale: Any, bounds: Any) -> None:
    """Raise `ArgumentError` unless `scale` is None, or "declared" with `bounds`."""
    if scale not in (None, "declared"):
        raise ArgumentError(f'scale must be None or "declared", got {scale!r}. Write scale="declared", bounds=(0, 100)')
    if (scale is None) != (bounds is None):
        raise ArgumentError(
            'scale="declared" and bounds= go together. Give the public bounds of the columns of X: a pair (low, high) '
            "for all, a list with a pair for each, or a dictionary from columns to pairs"
        )


@dataclass(frozen=True, repr=False)
class ScaledSearch:
    """An estimator with a `CenteredScale` right in front of its learner, and its parameters' names.

    A learner by itself becomes the end of a pipeline, and `prefix` stands before the names of its parameters.
    """

    estimator: Pipeline
    prefix: str

    def inside(self, distributions: Any) -> Any:
        """The searched parameters, by the names of the pipeline."""
        if isinstance(distributions, Mapping):
            return {f"{self.prefix}{name}": values for name, values in distributions.items()}
        if isinstance(distributions, (list, tuple)):
            return [self.inside(each) for each in distributions]
        return distributions

    def outside(self, params: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Parameters by the names of the estimator."""
        return None if params is None else {name.removeprefix(self.prefix): value for name, value in params.items()}

    def result(self, found: TuneResult) -> TuneResult:
        """The result by the names of the estimator."""
        return replace(found, params=self.outside(found.params))


def with_declared_scale(estimator: Any, X: Any, bounds: Any, searched: Set[str]) -> ScaledSearch:
    """The estimator with the scale that `bounds` declare for the columns of X.

    Raises `ArgumentError` for a learner that takes rows of another length than 1, for a column without bounds, and for
    steps that make columns of unknown bounds.
    """
    steps = list(estimator.steps) if isinstance(estimator, Pipeline) else [(_BARE, estimator)]
    *front, (name, last) = steps
    prefix = "" if isinstance(estimator, Pipeline) else f"{_BARE}__"
    own = f"{name}__row_norm" if front or not prefix else "row_norm"
    if not isinstance(last, PrivateLearner) or last.row_norm != 1.0 or own in searched:
        raise ArgumentError(
            f'scale="declared" scales rows to length 1: it goes with a learner of dpselect that has row_norm=1, got '
            f"{type(last).__name__}"
        )
    if searched & {f"{each}__{part}" for each, step in front for part in _parameters(step)} | (
        searched & {each for each, _ in front}
    ):
        raise ArgumentError('scale="declared": steps in front of the learner must not be searched')
    scale = _scale([step for _, step in front], X, bounds)
    label = next(f"scale{mark}" for mark in ("", *range(len(steps))) if f"scale{mark}" not in dict(steps))
    return ScaledSearch(Pipeline([*front, (label, scale), (name, last)]), prefix)


def _parameters(step: Any) -> list[str]:
    return list(step.get_params()) if has_method(step, "get_params") else []


@dataclass
class _Outputs:
    """The output of the steps in front: the bounds of numbers, and the places of indicators, a list for each column."""

    pairs: list[tuple[float, float]] = field(default_factory=list)
    indicators: list[list[int]] = field(default_factory=list)
    width: int = 0

    def number(self, low: float, high: float) -> None:
        self.pairs.append((low, high))
        self.width += 1

    def flags(self, count: int) -> None:
        if count:
            self.indicators.append(list(range(self.width, self.width + count)))
        self.width += count


def _scale(front: Sequence[Any], X: Any, bounds: Any) -> CenteredScale:
    columns = table_shape(X)[1]
    changing = [step for step in front if step not in (None, "passthrough") and not _fills(step)]
    if changing and (len(changing) > 1 or type(changing[0]) is not ColumnTransformer):
        raise ArgumentError(
            f'scale="declared" does not know what {type(changing[0]).__name__} makes of the columns\' bounds: put '
            "CenteredScale(bounds=...) of dpselect.preprocessing behind it, with the bounds of its own columns"
        )
    parts = _parts(changing[0], X, columns) if changing else [("passthrough", list(range(columns)))]
    declared = _declared(bounds, X, columns, {place for part, places in parts if _keeps(part) for place in places})
    found = _Outputs()
    for part, places in parts:
        _outputs(part, places, declared, found)
    return CenteredScale(bounds=found.pairs, indicators=found.indicators)


def _parts(step: ColumnTransformer, X: Any, columns: int) -> list[tuple[Any, list[int]]]:
    """The parts of a column transformer with the places of their columns, in the order of what it hands on."""
    parts = [(part, chosen_places(chosen, X, columns)) for _, part, chosen in step.transformers]
    rest = set(range(columns)) - {place for _, places in parts for place in places}
    return [*parts, (step.remainder, sorted(rest))]


def _fills(step: Any) -> bool:
    return type(step) is SimpleImputer and is_declared(step)


def _keeps(part: Any) -> bool:
    """Whether a part hands on columns whose bounds are those of X."""
    return (isinstance(part, str) and part == "passthrough") or _fills(part)


def _outputs(part: Any, places: Sequence[int], declared: Mapping[int, tuple[float, float]], found: _Outputs) -> None:
    """Note what a part hands on."""
    if isinstance(part, str) and part == "drop":
        return
    if _keeps(part):
        for place in places:
            found.number(*declared[place])
    elif type(part) is OneHotEncoder and is_declared(part):
        for place, known in enumerate(part.categories):
            found.flags(len(known) - _dropped(part.drop, place, len(known)))
    elif type(part) is OrdinalEncoder and is_declared(part):
        for known in part.categories:
            found.number(0.0, max(1.0, len(known) - 1.0))
    else:
        raise ArgumentError(
            f'scale="declared" does not know what {type(part).__name__} makes of the columns\' bounds: leave it out, '
            "or put CenteredScale(bounds=...) of dpselect.preprocessing in front of the learner yourself"
        )


def _dropped(drop: Any, place: int, categories: int) -> int:
    """How many of a column's indicators are left out."""
    if drop is None or isinstance(drop, str):
        return int(drop == "first" or (drop == "if_binary" and categories == 2))
    return int(drop[place] is not None)


def _declared(bounds: Any, X: Any, columns: int, needed: Set[int]) -> dict[int, tuple[float, float]]:
    """The bounds by the place of a column. Raises `ArgumentError` if they are none, or one that is needed has none."""
    names = column_names(X)
    bounds = bounds.tolist() if isinstance(bounds, np.ndarray) else bounds
    found: dict[int, tuple[float, float]] = {}
    if isinstance(bounds, Mapping):
        for name, pair in bounds.items():
            if names is not None and name in names:
                place = names.index(name)
            elif isinstance(name, int) and not isinstance(name, bool) and 0 <= name < columns:
                place = name
            else:
                raise ArgumentError(f"bounds names {name!r}, which is no column of X")
            found[place] = _pair(f"bounds[{name!r}]", pair)
    elif isinstance(bounds, Sequence) and len(bounds) == 2 and all(isinstance(end, Real) for end in bounds):
        found = dict.fromkeys(range(columns), _pair("bounds", bounds))
    elif isinstance(bounds, Collection) and not isinstance(bounds, str) and len(bounds) == columns:
        found = {place: _pair(f"bounds[{place}]", pair) for place, pair in enumerate(bounds) if pair is not None}
    else:
        raise ArgumentError(
            f"bounds must be a pair (low, high), a list or array of {columns} pairs (one for each column of X, None "
            f"for one that is encoded), or a dictionary from columns to pairs, got {bounds!r}"
        )
    for place in sorted(needed - set(found)):
        column = place if names is None else names[place]
        raise ArgumentError(f"bounds has none for column {column!r}: give a public pair (low, high)")
    return found


def _pair(what: str, pair: Any) -> tuple[float, float]:
    try:
        low, high = pair
    except (TypeError, ValueError):
        raise ArgumentError(f"{what} must be a pair (low, high), got {pair!r}") from None
    low = number(f"the lower of {what}", low)
    return low, number(f"the upper of {what}", high, above=low)


def warn_if_unscaled(estimator: Any, searched: Set[str], X: Any) -> None:
    """Warn if nothing scales a column in front of a learner that scales whole rows down to an unset `row_norm`.

    By the parameters alone, before anything is spent: a column of large numbers hides all others.
    """
    steps = estimator.steps if isinstance(estimator, Pipeline) else [("", estimator)]
    *front, (name, last) = steps
    path = f"{name}__row_norm" if name else "row_norm"
    columns = table_shape(X)[1]
    if path in searched or not all(_hands_on(step, X, columns) for _, step in front):
        return
    if type(last).__module__.split(".")[0] != "dpselect" or last.get_params(deep=False).get("row_norm") != 1.0:
        return
    warnings.warn(
        "nothing scales the columns of X: rows longer than row_norm=1 are scaled down to that, and a column of large "
        'numbers hides the others. Give scale="declared" and bounds=, a public pair (low, high) or one for each column.'
        " Or put PublicTransformer(scaler.fit(public_rows)) in front. If each column is in [-1, 1] already, give "
        f"row_norm={columns**0.5:.4g}. A missing or infinite cell counts as 0: impute first if that means something",
        UserWarning,
        stacklevel=levels_to_the_caller(),
    )


def _hands_on(step: Any, X: Any, columns: int) -> bool:
    """Whether a step hands on a column of X at its own scale, by the type of the step alone."""
    if step is None or isinstance(step, str):
        return step != "drop"
    if type(step) is ColumnTransformer:
        return any(places and _hands_on(part, X, columns) for part, places in _parts(step, X, columns))
    if type(step) is FeatureUnion:
        return any(_hands_on(part, X, columns) for _, part in step.transformer_list)
    if type(step) is Pipeline:
        return all(_hands_on(part, X, columns) for _, part in step.steps)
    return type(step) is PolynomialFeatures or _fills(step)
