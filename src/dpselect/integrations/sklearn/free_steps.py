"""What surrounds the private steps: rows that something there fails on are refused before anything is charged.

A step that knows nothing treats each row by itself, so failing is a fact about one row, like a missing value; inside a
run it would make every run fail, and no noise would hide that. The same goes for rows that a private step of others
cannot take, and for more rows than one of this package can.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import PolynomialFeatures

from dpselect.errors import ArgumentError, ContentError
from dpselect.integrations.sklearn.distributions import finite_choices, spaces_of, with_params
from dpselect.integrations.sklearn.guarantee import Base, dense, is_free, parts_of, private_steps
from dpselect.integrations.sklearn.rows import refuse_missing
from dpselect.integrations.sklearn.trial import Settings
from dpselect.learners import OutputPerturbationClassifier
from dpselect.learners.strongly_convex import MOST_ROWS_PER_NOMINAL
from dpselect.tuning import Space

__all__ = ["refuse_rows_that_fail", "refuse_too_many_rows"]

_MOST_VARIANTS: Final = 256


def refuse_rows_that_fail(estimator: Any, space: Space, X: Any, base: Base | None, columns: int) -> None:
    """Raise `ContentError` for rows that a step before or beside the private ones, or a private one, cannot take.

    Each combination of listed values for such steps is tried. `ArgumentError` if there are too many, or if polynomial
    features could make numbers overflow where that is not seen: behind a private step, or of a degree without a list.
    """
    last = estimator.steps[-1][0] if isinstance(estimator, Pipeline) else None
    for variant in _variants(estimator, space, lambda name, _: last not in (None, name.split("__")[0])):
        steps = private_steps(variant, base, columns=columns)
        table = X
        if isinstance(variant, Pipeline):
            for name, step in variant.steps[:-1]:
                front, private = _front(step)
                table = _fitted_transform(name, front, table)
                if private:
                    break
            _refuse_growth_behind_noise(variant)
        refuse_missing(table, steps)


def refuse_too_many_rows(estimator: Any, space: Space, settings: Settings, rows: int) -> None:
    """Raise `ArgumentError` for more rows than a learner takes for its public number: its runs would all fail."""

    def matters(name: str, values: Sequence[Any]) -> bool:
        return name.split("__")[-1] == "nominal_rows" or any(hasattr(value, "get_params") for value in values)

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


def _fitted_transform(name: str, step: Any, X: Any) -> Any:
    if step is None or isinstance(step, str):
        return X
    try:
        with warnings.catch_warnings(action="ignore"):
            return step.fit_transform(X)
    except Exception:
        pass  # its message may quote a cell
    raise ContentError(f"X has rows that the step {name!r} cannot take (a missing value, an unknown category)")


def _refuse_unlisted_growth(estimator: Any, unlisted: Mapping[str, Any]) -> None:
    parts = estimator.get_params(deep=True) if unlisted else {}
    for name in unlisted:
        if isinstance(parts.get(name.rpartition("__")[0]), PolynomialFeatures):
            raise ArgumentError(
                f"param_distributions[{name!r}] must be a list, so that each value can be tried: a row that overflows "
                "makes every run fail"
            )


def _refuse_growth_behind_noise(node: Any, *, behind: bool = False) -> bool:
    """Whether rows that leave a step have been through a private one; raises for polynomial features after that."""
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
