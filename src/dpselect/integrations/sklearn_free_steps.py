"""The steps of a pipeline before its first private one: rows that they fail on are refused before anything is charged.

Such a step treats each row by itself, so failing is a fact about one row, like a missing value; inside a run it would
make every run fail, and no noise would hide that.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from dpselect.errors import ContentError
from dpselect.integrations.sklearn_distributions import MixedSpace, finite_choices
from dpselect.integrations.sklearn_guarantee import Base, PrivateStep, dense, private_steps
from dpselect.integrations.sklearn_rows import refuse_missing
from dpselect.tuning import Space

__all__ = ["refuse_rows_that_fail"]


def refuse_rows_that_fail(estimator: Any, space: Space, X: Any, base: Base | None, columns: int) -> None:
    """Raise `ContentError` for rows that a step before the private ones, or a private one of others, cannot take.

    Each value of a list that is searched for such a step is tried by itself.
    """
    for variant in _variants(estimator, space):
        steps = private_steps(variant, base, columns=columns)
        refuse_missing(_transformed(variant, X, steps), steps)


def _variants(estimator: Any, space: Space) -> Iterator[Any]:
    """The estimator as it is, and with each searched value of a step of a pipeline or of its parameters."""
    plain = dense(clone(estimator))
    yield plain
    if not isinstance(plain, Pipeline):
        return
    last = plain.steps[-1][0]
    for part in space.spaces if isinstance(space, MixedSpace) else (space,):
        for name, law in part.parameters.items():
            if name.split("__")[0] != last:
                for value in finite_choices(law) or ():
                    yield dense(clone(plain).set_params(**clone({name: value}, safe=False)))


def _transformed(estimator: Any, X: Any, steps: Sequence[PrivateStep]) -> Any:
    if not isinstance(estimator, Pipeline):
        return X
    private = {place.path.split("__")[0] for place in steps}
    for name, step in takewhile(lambda each: each[0] not in private, estimator.steps):
        if step is not None and step != "passthrough":
            X = _fitted_transform(name, step, X)
    return X


def _fitted_transform(name: str, step: Any, X: Any) -> Any:
    try:
        with warnings.catch_warnings(action="ignore"):
            return step.fit_transform(X)
    except Exception:
        pass  # its message may quote a cell
    raise ContentError(f"X has rows that the step {name!r} cannot take (a missing value, an unknown category)")
