"""The request of a `PrivateSearchCV`, from its parameters alone, before there are rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sklearn.base import is_classifier, is_regressor

from dpselect.capabilities import Shaped
from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError, flag, integer, number
from dpselect.integrations.sklearn.distributions import search_space
from dpselect.integrations.sklearn.methods import has_method
from dpselect.integrations.sklearn.plan import Request
from dpselect.integrations.sklearn.several_scores import named_scores
from dpselect.integrations.sklearn.trial import Settings
from dpselect.learners.rows import public_classes
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.promises import promise_or_function
from dpselect.searching.design import DESIGNS, design_names

__all__ = ["expect_estimator", "request_of"]


def expect_estimator(estimator: Any) -> None:
    """Raise `ArgumentError` for a class and for anything without `fit`."""
    if isinstance(estimator, type) or not has_method(estimator, "fit"):
        raise ArgumentError("estimator must be an estimator object, as in PrivateSearchCV(DPSGDClassifier(), ...)")


def request_of(search: Any, columns: int | None) -> Request:
    """The request of a `PrivateSearchCV`. Raises `ArgumentError` or `TypeError` for a wrong parameter."""
    _refuse_clashes(search)
    _expect_estimator(search.estimator, search.param_distributions)
    if not (is_classifier(search.estimator) or is_regressor(search.estimator)):
        raise ArgumentError(f"estimator must be a classifier or a regressor, got {type(search.estimator).__name__}")
    if search.base is not None:
        promise_or_function("base", search.base, "from the estimator to one")
    _check_flags(search)
    scores = _several_scores(search)
    public = search.public_validation is not None
    folds = None if search.cv is None else _folds(search.cv, public=public)
    rows = 1
    if search.rows_per_group is not None:
        rows = integer("rows_per_group", search.rows_per_group, at_least=1, at_most=10_000)
    share = 0.0
    if search.validation_fraction is not None:
        share = number("validation_fraction", search.validation_fraction, above=0.0, below=1.0)
    kind = DESIGNS[search.design]
    one = not kind.draws
    own_scores = search.validation_fraction is None and not (public or one or folds)
    if own_scores and search.release_score:
        raise ArgumentError("release_score: with validation_fraction=None it is of rows that trained, and too good")
    trained = 1.0 if public or one else 1.0 - share if folds is None else (folds - 1) / folds
    nominal = None if search.nominal_rows is None else _nominal(search.nominal_rows, search.delta)
    return Request(
        estimator=search.estimator,
        space=search_space(search.param_distributions),
        settings=Settings(
            adjacency=None if search.adjacency is None else parse_adjacency(search.adjacency),
            classes=None if search.classes is None else public_classes(search.classes, None).tolist(),
            nominal_rows=None if nominal is None else nominal * trained,
            noise=None,
            base=search.base,
            columns=columns,
        ),
        epsilon=search.epsilon,
        delta=search.delta,
        repetitions=search.repetitions,
        max_runs=search.max_runs,
        score_epsilon=search.score_epsilon,
        public_scoring=public or one,
        folds=folds,
        refit=bool(search.refit) or kind.follows,
        final_rows=nominal,
        trained=trained,
        own_scores=own_scores,
        scoring=search.scoring if scores is None else scores,
        rows=rows,
        grouped=search.rows_per_group is not None,
    )


def _check_flags(search: Any) -> None:
    flag("release_score", search.release_score)
    flag("constant_runs", search.constant_runs)
    flag("resume", search.resume)
    if not isinstance(search.rehearse, Shaped):
        flag("rehearse", search.rehearse)


def _several_scores(search: Any) -> Mapping[str, Any] | None:
    scores = named_scores(search.scoring, search.refit)
    if scores is not None and not search.release_score:
        raise ArgumentError(
            "scoring names several scores: one decides, and the others are only figures of the run that wins, which "
            "have a part of score_epsilon. Add release_score=True to see them, or name one score"
        )
    return scores


def _folds(cv: Any, *, public: bool) -> int:
    if has_method(cv, "split"):
        raise ArgumentError(
            "cv must be a number of folds: a splitter that permutes, sorts or stratifies the rows puts a row "
            "where other rows say, so that one row would move many"
        )
    folds = integer("cv", cv, at_least=2)
    if public:
        raise ArgumentError("cv and public_validation exclude each other: public rows score, no fold is needed")
    return folds


def _nominal(rows: Any, delta: Any) -> float:
    nominal = number("nominal_rows", rows, at_least=1.0)
    if not number("delta", delta, rounding="down") < 1.0 / nominal:
        fits = 10.0 ** -(math.ceil(math.log10(nominal)) + 2)
        first = "epsilon=1.0, " if delta >= 1.0 else ""
        raise ArgumentError(f"delta must be below one over nominal_rows, got {delta!r}. Write {first}delta={fits:g}")
    return nominal


def _expect_estimator(estimator: Any, space: Any) -> None:
    """Raise `TypeError` for anything but an object with parameters, as a class or the space in its place is."""
    if isinstance(estimator, type):
        name = estimator.__name__
        raise TypeError(f"estimator must be an object, got the class {name}. Write {name}()")
    if not has_method(estimator, "get_params"):
        swapped = has_method(space, "get_params")
        cure = ". Write the estimator first, then its distributions" if swapped else ". Write DPSGDClassifier()"
        raise TypeError(f"estimator must be a scikit-learn estimator, got {type(estimator).__name__}{cure}")


def _refuse_clashes(search: Any) -> None:
    """Raise `ArgumentError` for a parameter that does not go with the design."""
    if search.design not in (names := design_names()):
        said = f"design must be one of {', '.join(names)}, got {search.design!r}"
        raise ArgumentError(said + write_one_of("design", search.design, names))
    kind = DESIGNS[search.design]
    if kind.draws and not kind.follows:
        return
    if kind.follows:
        number("refit_share", search.refit_share, above=0.0, below=1.0)
    given = {
        "cv": search.cv is not None,
        "refit": search.refit,
        "release_score": search.release_score,
        "repetitions": search.repetitions is not None and not kind.follows,
        "score_epsilon": search.score_epsilon is not None and not kind.follows,
        "public_validation": search.public_validation is not None and not kind.follows,
        "param_distributions": not (kind.draws or kind.tries) and bool(search.param_distributions),
    }
    for name, clashes in given.items():
        if clashes:
            raise ArgumentError(f'{name} does not go with design="{search.design}": leave it out')
