"""The steps around the private ones: rows that one of them fails on train nothing.

A data-independent step treats each row by itself, so failing is a fact about one row, like a missing value. Inside a
run it would make every run fail. So those rows are found here, each from itself alone, and nothing is raised because
of them. More rows than a learner takes are refused, for their number is declared.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils import _safe_indexing

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn.declarations import rows_of_listed_categories
from dpselect.integrations.sklearn.distributions import finite_choices, spaces_of, with_params
from dpselect.integrations.sklearn.guarantee import Base, dense, is_free, parts_of, private_steps
from dpselect.integrations.sklearn.methods import has_method
from dpselect.integrations.sklearn.rows import rows_taken
from dpselect.integrations.sklearn.trial import Settings
from dpselect.learners import OutputPerturbationClassifier
from dpselect.learners.column_types import of_any_type
from dpselect.learners.strongly_convex import MOST_ROWS_PER_NOMINAL
from dpselect.tuning import Space

__all__ = ["refuse_too_many_rows", "usable_rows"]

_MOST_VARIANTS: Final = 256


@of_any_type()
def usable_rows(estimator: Any, space: Space, X: Any, base: Base | None, columns: int) -> NDArray[np.bool_]:
    """Whether each row can pass the private steps and those before or parallel to them. Shape (rows,).

    Each combination of listed values for such steps is tried. `ArgumentError` if there are too many, or if polynomial
    features could make numbers overflow where that is not seen: behind a private step, or of a degree without a list.
    """
    last = estimator.steps[-1][0] if isinstance(estimator, Pipeline) else None
    usable = np.ones(len(X), dtype=bool)
    for variant in _variants(estimator, space, lambda name, _: last not in (None, name.split("__")[0])):
        steps = private_steps(variant, base, columns=columns)
        places = np.flatnonzero(usable)
        table = X if len(places) == len(X) else _safe_indexing(X, places)
        if isinstance(variant, Pipeline):
            for _, step in variant.steps[:-1]:
                front, private = _front(step)
                taken, table = _transformed(front, table)
                places = places[taken]
                if private or not len(places):
                    break
            _refuse_growth_behind_noise(variant)
        usable[:] = False
        if len(places):
            usable[places[rows_taken(table, steps)]] = True
    return usable


def refuse_too_many_rows(estimator: Any, space: Space, settings: Settings, rows: int) -> None:
    """Raise `ArgumentError` for more rows than a learner takes for its public number: its runs would all fail."""

    def matters(name: str, values: Sequence[Any]) -> bool:
        return name.split("__")[-1] == "nominal_rows" or any(has_method(value, "get_params") for value in values)

    for variant in _variants(estimator, space, matters):
        for place in settings.steps(variant):
            if isinstance(place.step, OutputPerturbationClassifier):
                nominal = place.step.nominal_rows
                if nominal is not None and rows > MOST_ROWS_PER_NOMINAL * nominal:
                    raise ArgumentError(
                        f"X must have at most {MOST_ROWS_PER_NOMINAL} times as many rows as nominal_rows says that "
                        f"there are for training, {nominal:g}"
                    )


def _variants(estimator: Any, space: Space, tried: Callable[[str, Sequence[Any]], bool]) -> Iterator[Any]:
    """The estimator with each combination of searched values, of parameters that are to be tried.

    A value with which no fit could begin shows itself elsewhere.
    """
    plain = dense(clone(estimator))
    for part in spaces_of(space):
        finite = {name: finite_choices(law) or () for name, law in part.parameters.items()}
        listed = {name: values for name, values in finite.items() if tried(name, values)}
        known = {name: values for name, values in listed.items() if values}
        combinations = list(itertools.islice(itertools.product(*known.values()), _MOST_VARIANTS + 1))
        if len(combinations) > _MOST_VARIANTS:
            raise ArgumentError(
                f"param_distributions has more than {_MOST_VARIANTS} settings of steps before the private one, each of "
                f"which must be tried on the rows: {', '.join(known)}"
            )
        for each in combinations:
            variant = with_params(plain, dict(zip(known, each, strict=True)))
            _refuse_unlisted_growth(variant, {name: values for name, values in listed.items() if not values})
            yield dense(variant)


def _front(node: Any) -> tuple[Any, bool]:
    """A step without its private parts and what follows them in a pipeline, and whether it had any."""
    if is_free(node):
        return node, False
    fronts = {name: _front(part) for name, part, _ in parts_of(node)} if _is_container(node) else {}
    private = not fronts or any(has for _, has in fronts.values())
    if isinstance(node, Pipeline):
        reached = itertools.accumulate((fronts[name][1] for name, _ in node.steps), initial=False)
        steps = zip(node.steps, reached, strict=False)
        return Pipeline([(name, "passthrough" if behind else fronts[name][0]) for (name, _), behind in steps]), private
    if isinstance(node, FeatureUnion):
        return FeatureUnion([(name, fronts[name][0]) for name, _ in node.transformer_list]), private
    if isinstance(node, ColumnTransformer):
        transformers = [(name, fronts[name][0], columns) for name, _, columns in node.transformers]
        return ColumnTransformer(transformers, remainder=fronts["remainder"][0], sparse_threshold=0.0), private
    return "passthrough", True


def _is_container(node: Any) -> bool:
    return isinstance(node, (Pipeline, FeatureUnion, ColumnTransformer))


def _transformed(step: Any, X: Any) -> tuple[NDArray[np.intp], Any]:
    """The places of the rows that a step can take, and what it makes of them."""
    listed = np.flatnonzero(rows_of_listed_categories(step, X))
    if not len(listed):
        return listed, X
    taken, table = _taken(step, X if len(listed) == len(X) else _safe_indexing(X, listed), np.arange(len(listed)))
    return listed[taken], table


def _taken(step: Any, X: Any, places: NDArray[np.intp]) -> tuple[NDArray[np.intp], Any]:
    """The same among these places.

    A table that it cannot take is halved until it can, or has one row: so a row is left out for itself alone.
    """
    if step is None or isinstance(step, str):
        return places, X
    table = X if len(places) == len(X) else _safe_indexing(X, places)
    with suppress(Exception), warnings.catch_warnings(action="ignore"):
        return places, step.fit_transform(table)
    if len(places) == 1:
        return places[:0], X
    half = len(places) // 2
    taken = np.concatenate([_taken(step, X, part)[0] for part in (places[:half], places[half:]) if len(part)])
    with suppress(Exception), warnings.catch_warnings(action="ignore"):
        return taken, step.fit_transform(_safe_indexing(X, taken))
    return taken[:0], X


def _refuse_unlisted_growth(estimator: Any, unlisted: Mapping[str, Any]) -> None:
    parts = estimator.get_params(deep=True) if unlisted else {}
    for name in unlisted:
        if isinstance(parts.get(name.rpartition("__")[0]), PolynomialFeatures):
            raise ArgumentError(
                f"param_distributions[{name!r}] must be a list, so that each value can be tried: a row that overflows "
                "makes every run fail"
            )


def _refuse_growth_behind_noise(node: Any, *, behind: bool = False) -> bool:
    """Whether rows that leave a step have been through a private one. Raises for polynomial features after that."""
    if isinstance(node, PolynomialFeatures) and behind:
        raise ArgumentError(
            "PolynomialFeatures behind a private step: whether a row overflows there cannot be seen before anything is "
            "charged; put it in front"
        )
    if not _is_container(node):
        return behind or not is_free(node)
    reached = [behind]
    for _, part, _ in parts_of(node):
        reached.append(_refuse_growth_behind_noise(part, behind=reached[-1] if isinstance(node, Pipeline) else behind))
    return any(reached)
