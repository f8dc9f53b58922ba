"""One run on synthetic rows, before anything is drawn or charged: what is wrong with the arguments shows here.

Afterwards it would be too late. The guarantee protects the fact that a run on the data failed. So an estimator that
always fails would cost the full price and find nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from threadpoolctl import threadpool_limits

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn.distributions import finite_choices, numpy_source, spaces_of
from dpselect.integrations.sklearn.methods import answers, has_method
from dpselect.integrations.sklearn.rows import sliceable
from dpselect.integrations.sklearn.scoring import PublicScores, RowScore, Scoring
from dpselect.integrations.sklearn.several_scores import SeveralScores
from dpselect.integrations.sklearn.synthetic_rows import synthetic_beside, synthetic_tables, with_holes
from dpselect.integrations.sklearn.trial import Settings, TrialRows, pack, train
from dpselect.learners.company import ROWS, depends_on_company
from dpselect.learners.containers import is_frame
from dpselect.learners.rows import column_names, table_shape
from dpselect.randomness import RandomSource, keyed_source
from dpselect.tuning import IntegerUniform, LogUniform, Space, Uniform

__all__ = ["draws_by_itself", "rehearsal_rows", "rehearse", "stand_ins"]

_NOTHING_CHARGED: Final = "nothing was drawn or charged"
_MOST_LISTED: Final = 16
_RANGES: Final = (Uniform, LogUniform, IntegerUniform)
_MIXED: Final = (
    "the estimator's answer for a row depends on the rows beside it (a PublicTransformer that looks at the whole "
    "table?), their order or what it was asked before, so that one row could move the score by more than its own share"
)


def rehearse(
    estimator: Any,
    space: Space,
    settings: Settings,
    scoring: Scoring | SeveralScores | PublicScores | None,
    tables: Sequence[TrialRows],
) -> int | None:
    """The largest size of a packed model among settings at the ends of the space, or None without synthetic rows.

    Trains on the first of the tables that it can be trained on. Raises what training or scoring raises, and
    `ArgumentError` when a row's answer or score depends on the rows beside it.
    """
    if not tables:
        return None
    source = keyed_source("rehearsal")
    settings_tried = list(_tried(space))
    sizes: list[int] = []
    with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
        rows = _suitable(estimator, settings_tried[0], settings, tables)
    for params in settings_tried:
        try:
            with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
                model = train(clone(estimator), params, settings, rows.at(range(ROWS)), source.spawn(len(sizes)))
                if isinstance(scoring, (Scoring, SeveralScores)):
                    scoring.strict_total(model, rows.X, rows.y)
                    _refuse_answers_by_batch(model, scoring.rules, rows)
                    _refuse_answers_by_other_rows(model, tables)
                elif scoring is not None and not sizes:
                    scoring.all(model)
            sizes.append(len(pack(model)))
        except Exception as error:
            error.add_note(f"in a rehearsal on synthetic rows, with {params}; {_NOTHING_CHARGED}")
            raise
    return max(sizes)


def rehearsal_rows(
    X: Any, classes: NDArray[Any] | None, estimator: Any, beside: Mapping[str, Any], public: Any = None
) -> list[TrialRows]:
    """Synthetic rows with labels in turn, in each style that the types of X leave open, or the `public` rows, repeated.

    Of X only the container, the names and the types of its columns are used, and of `beside` the same.
    """
    if public is None:
        tables = list(synthetic_tables(X, estimator))
    else:
        public = sliceable(public)
        count, columns = table_shape(public)
        if not count or columns != table_shape(X)[1] or column_names(public) != column_names(X):
            raise ArgumentError("rehearse must be True, False, or public rows with the columns of X, at least one")
        tables = [_safe_indexing(public, np.arange(ROWS) % count)]
    if classes is None:
        y = keyed_source("rehearsal").uniform(ROWS)
    else:
        y = np.asarray(classes)[np.arange(ROWS) % len(classes)]
    return [TrialRows(table, y, synthetic_beside(beside, len(X))) for table in tables]


def stand_ins(X: Any, tables: Sequence[TrialRows]) -> list[tuple[Any, Any]]:
    """Public rows that may train in the place of those that nothing can be trained on, each a table and its label.

    Of an array zeros, regardless of its type: one row's text gives the others another type, and they train the same.
    """
    made = [(_safe_indexing(table.X, [0]), table.y[0]) for table in tables]
    if not made or is_frame(X):
        return made
    return [(np.zeros((1, X.shape[1])), made[0][1]), *made]


def _suitable(estimator: Any, params: Mapping[str, Any], settings: Settings, tables: Sequence[TrialRows]) -> TrialRows:
    """The first table that it can be trained on. If there is none, raises the error of training on the first one."""
    if len(tables) == 1:
        return tables[0]
    failures: list[Exception] = []
    for rows in tables:
        try:
            train(clone(estimator), params, settings, rows.at(range(ROWS)), keyed_source("rehearsal"))
        except Exception as error:
            failures.append(error)
        else:
            return rows
    failures[0].add_note(f"in a rehearsal on synthetic rows, with {dict(params)}; {_NOTHING_CHARGED}")
    failures[0].add_note(
        "the rows held words, numbers and dates where a column's type leaves open what its text is. If public steps "
        "take other text only, pass rehearse=(public rows with the columns of X)"
    )
    raise failures[0]


def draws_by_itself(estimator: Any, space: Space, settings: Settings, tables: Sequence[TrialRows]) -> bool:
    """Whether the last step's `random_state` takes integers but no generator, and is to stay None.

    An integer would do for such an estimator and not for privacy. There are 2**32 of them, few enough to try them all,
    and anyone who has the model could find the noise. With None it draws from the system's entropy, which `base`
    declares. Raises `ArgumentError` without `base`, or if None does not do either. This is tried on synthetic rows,
    also without a dry run. If the estimator can be trained on them with neither, the answer is False.
    """
    places = settings.steps(clone(estimator))
    if not any("random_state" in place.has and "random" not in place.has for place in places):
        return False

    def trains(state_of: Callable[[RandomSource], Any], known: Settings = settings) -> bool:
        params = next(iter(_ends(space)))
        for rows in tables:
            with (
                suppress(Exception),
                threadpool_limits(1),
                warnings.catch_warnings(action="ignore"),
            ):
                train(estimator, params, known, rows.at(range(ROWS)), keyed_source("rehearsal"), state_of=state_of)
                return True
        return False

    if trains(numpy_source) or not trains(lambda source: source.bits(31)):
        return False
    if settings.base is not None and trains(numpy_source, replace(settings, own_entropy=True)):
        return True
    raise ArgumentError(
        "the estimator's random_state takes integers only, which are few enough to try them all: anyone who has "
        "the model could find its noise. Give it a parameter random (a dpselect RandomSource) that its fit draws "
        "from, or one that takes a numpy RandomState; or, where it draws from the system's entropy while random_state "
        "is None, declare by base= what such a fit promises. Nothing was drawn or charged"
    )


def _refuse_answers_by_batch(model: Any, rules: Sequence[RowScore], rows: TrialRows) -> None:
    """One row must move a score by its own share only, and so its answer may not change the others'."""
    if _answers_mix(model, rows.X):
        raise ArgumentError(_MIXED)

    def scores(rule: RowScore, places: NDArray[np.intp]) -> Any:
        return rule.of_rows(model, _safe_indexing(rows.X, places), _safe_indexing(rows.y, places))

    if any(depends_on_company(partial(scores, rule)) for rule in rules):
        raise ArgumentError(
            "RowScore's function must score each row from its own label and answer alone, not from the rows beside it, "
            "their order or earlier calls"
        )


def _answers_mix(model: Any, X: Any) -> bool:
    names = ("predict_proba", "decision_function", "predict")
    method = next(name for name in names if has_method(model, name))
    return depends_on_company(lambda places: answers(model, method, _safe_indexing(X, places)))


def _refuse_answers_by_other_rows(model: Any, tables: Sequence[TrialRows]) -> None:
    """The same for text of other styles, and for missing cells, which may be filled from other rows.

    A table that the model cannot take tells nothing of it.
    """
    for rows in tables:
        for table in (rows.X, with_holes(rows.X)):
            mixed = False
            with suppress(Exception):
                mixed = table is not None and _answers_mix(model, table)
            if mixed:
                raise ArgumentError(_MIXED)


def _tried(space: Space) -> Iterator[dict[str, Any]]:
    """Both ends of the space, and each of few listed values that are not numbers: one of them may be misspelt."""
    for part in spaces_of(space):
        low, high = _ends(part)
        yield low
        yield high
        middle = {
            name: [value for value in finite_choices(law) or () if value is not low[name] and value is not high[name]]
            for name, law in part.parameters.items()
        }
        listed = {name: values for name, values in middle.items() if not all(isinstance(v, Real) for v in values)}
        for turn in range(min(_MOST_LISTED, max(map(len, listed.values()), default=0))):
            yield low | {name: values[turn % len(values)] for name, values in listed.items()}


def _ends(space: Space) -> Iterator[dict[str, Any]]:
    for part in spaces_of(space):
        drawn = part.sample(keyed_source("rehearsal"))
        for end in (min, max):
            yield {name: _end(law, drawn[name], end) for name, law in part.parameters.items()}


def _end(law: Any, drawn: Any, end: Any) -> Any:
    values = finite_choices(law) or ([law.low, law.high] if isinstance(law, _RANGES) else [drawn])
    try:
        return end(values)
    except TypeError:  # no order among them
        return values[0] if end is min else values[-1]
