"""One run on made-up rows, before anything is drawn or charged: what is wrong with the arguments shows here.

Afterwards it could not be told: that a run on the data failed is part of what the guarantee protects, so that an
estimator that always fails would cost the full price and find nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from threadpoolctl import threadpool_limits

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn.distributions import finite_choices, numpy_source, spaces_of
from dpselect.integrations.sklearn.scoring import PublicScores, RowScore, Scoring
from dpselect.integrations.sklearn.trial import Settings, TrialRows, pack, train
from dpselect.learners.company import ROWS, depends_on_company
from dpselect.randomness import RandomSource, keyed_source
from dpselect.tuning import Space

__all__ = ["draws_by_itself", "rehearse"]


def rehearse(
    estimator: Any,
    space: Space,
    settings: Settings,
    scoring: Scoring | PublicScores | None,
    X: Any,
    classes: NDArray[Any] | None,
) -> int | None:
    """The largest size of a packed model among settings at the ends of the space, or None if no rows can be made up.

    Of X only the container and the types of its columns are used. Raises what training or scoring raises, and
    `ArgumentError` when a row's answer or score depends on the rows beside it.
    """
    rows = _rows_like(X, classes)
    if rows is None:
        return None
    source = keyed_source("rehearsal")
    sizes: list[int] = []
    for params in _ends(space):
        try:
            with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
                model = train(clone(estimator), params, settings, rows.at(range(ROWS)), source.spawn(len(sizes)))
                if isinstance(scoring, Scoring):
                    scoring.strict_total(model, rows.X, rows.y)
                    _refuse_answers_by_batch(model, scoring.rule, rows)
                elif scoring is not None and not sizes:
                    scoring(model)
            sizes.append(len(pack(model)))
        except Exception as error:
            error.add_note(f"in a rehearsal on made-up rows, with {params}; nothing was drawn or charged")
            raise
    return max(sizes)


def draws_by_itself(estimator: Any, space: Space, settings: Settings, X: Any, classes: NDArray[Any] | None) -> bool:
    """Whether the last step's `random_state` takes whole numbers but no generator, and is to stay None.

    A whole number would do for such an estimator and not for privacy: there are 2**32 of them, few enough to try them
    all, and whoever has the model could find the noise. With None it draws from the system's entropy, which `base`
    declares; without `base`, or where None does not do either, `ArgumentError`. Tried on made-up rows, also without a
    rehearsal; if the estimator can be trained on them with neither, nothing is said.
    """
    places = settings.steps(clone(estimator))
    if not any("random_state" in place.has and "random" not in place.has for place in places):
        return False
    rows = _rows_like(X, classes)
    if rows is None:
        return False

    def trains(state_of: Callable[[RandomSource], Any], known: Settings = settings) -> bool:
        try:
            with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
                params = next(iter(_ends(space)))
                train(estimator, params, known, rows.at(range(ROWS)), keyed_source("rehearsal"), state_of=state_of)
        except Exception:
            return False
        return True

    if trains(numpy_source) or not trains(lambda source: source.bits(31)):
        return False
    if settings.base is not None and trains(numpy_source, replace(settings, own_entropy=True)):
        return True
    raise ArgumentError(
        "the estimator's random_state takes whole numbers only, which are few enough to try them all: whoever has "
        "the model could find its noise. Give it a parameter random (a dpselect RandomSource) that its fit draws "
        "from, or one that takes a numpy RandomState; or, where it draws from the system's entropy while random_state "
        "is None, declare by base= what such a fit promises. Nothing was drawn or charged"
    )


def _rows_like(X: Any, classes: NDArray[Any] | None) -> TrialRows | None:
    """Made-up rows with labels in turn, or None if none can be made up."""
    made_up = _like(X)
    if made_up is None:
        return None
    if classes is None:
        return TrialRows(made_up, keyed_source("rehearsal").uniform(ROWS), {})
    return TrialRows(made_up, np.asarray(classes)[np.arange(ROWS) % len(classes)], {})


def _refuse_answers_by_batch(model: Any, rule: RowScore | None, rows: TrialRows) -> None:
    """One row must move a score by its own share only, and so its answer may not change the others'."""
    names = ("predict_proba", "decision_function", "predict")
    asked = getattr(model, next(name for name in names if hasattr(model, name)))
    if depends_on_company(lambda places: asked(_safe_indexing(rows.X, places))):
        raise ArgumentError(
            "the estimator's answer for a row depends on the rows beside it (a PublicTransformer that looks at the "
            "whole table?), their order or what it was asked before, so that one row could move the score by more than "
            "its own share"
        )

    def scores(places: NDArray[np.intp]) -> Any:
        return rule and rule.of_rows(model, _safe_indexing(rows.X, places), _safe_indexing(rows.y, places))

    if rule is not None and depends_on_company(scores):
        raise ArgumentError(
            "RowScore's function must score each row from its own label and answer alone, not from the rows beside it, "
            "their order or earlier calls"
        )


def _like(X: Any) -> Any:
    """Rows like those of X: uniform numbers in the same container; None for columns that are no numbers."""
    if hasattr(X, "iloc"):
        if any(kind.kind not in "biuf" for kind in X.dtypes if hasattr(kind, "kind")):
            return None
        columns = _uniform(X.shape[1])
        return type(X)(columns, columns=X.columns).astype(X.dtypes)
    table = np.asarray(X)
    if hasattr(X, "columns") or table.dtype.kind not in "biuf":
        return None
    return _uniform(table.shape[1]).astype(table.dtype)


def _uniform(columns: int) -> NDArray[np.float64]:
    return keyed_source("rehearsal").spawn("rows").uniform((ROWS, columns))


def _ends(space: Space) -> Iterator[dict[str, Any]]:
    for part in spaces_of(space):
        drawn = part.sample(keyed_source("rehearsal"))
        for end in (min, max):
            yield {name: _end(law, drawn[name], end) for name, law in part.parameters.items()}


def _end(law: Any, drawn: Any, end: Any) -> Any:
    values = finite_choices(law) or [getattr(law, "low", drawn), getattr(law, "high", drawn)]
    try:
        return end(values)
    except TypeError:  # no order among them
        return values[0] if end is min else values[-1]
