"""The public API of a finished search: the released model's methods, and why there is nothing of the other runs.

An attribute that other searches of scikit-learn have and this one has not is refused with the reason.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from dpselect.integrations.sklearn.methods import answers
from dpselect.integrations.sklearn.several_scores import scorers_of
from dpselect.integrations.sklearn.spending import LedgerNotPickled
from dpselect.learners.rows import same_names, table_shape

__all__ = ["ReleasedEstimator"]

_SECRET: Final = (
    "the guarantee covers the winner alone; scores, settings and number of the other runs are secret and are not kept"
)
_UNFITTED: Final = "this %(name)s is not fitted yet. Write search.fit(X, y) first"
_ABSENT: Final = {
    "cv_results_": f"there is no cv_results_: {_SECRET}",
    "best_index_": f"there is no best_index_: {_SECRET}",
    "n_splits_": "there is no n_splits_: folds are cv=, or one split",
    "refit_time_": "there is no refit_time_: the guarantee does not cover running times",
    "best_score_": "there is no best_score_ unless release_score=True (or nothing was found): scores are secret",
    "best_scores_": "there is no best_scores_ unless scoring names several scores (nor where nothing was found)",
    "best_score_interval_": (
        "there is no best_score_interval_ unless release_score=True, on private rows, with none of cv=, groups= "
        "and refit=True, whose model is another one (nor where nothing was found)"
    ),
}

_SHARED_BY_CLONES: Final = ("ledger", "executor", "release", "random")


def _winner_has(name: str) -> Callable[[Any], bool]:
    def check(search: ReleasedEstimator) -> bool:
        model = vars(search).get("best_estimator_")
        getattr(search.estimator if model is None else model, name)
        return True

    return check


class ReleasedEstimator(BaseEstimator):  # type: ignore[misc]
    """Prediction by `best_estimator_`, which is free for the training data."""

    estimator: Any
    scoring: Any
    best_estimator_: Any
    multimetric_: bool
    _column_names: list[Any] | None = None
    _scores: Any = None

    def __getattr__(self, name: str) -> Any:
        reason = _ABSENT.get(name, f"{type(self).__name__!r} object has no attribute {name!r}")
        if name in ("best_estimator_", "best_params_", "guarantee_"):
            reason += " before it is fitted. Write search.fit(X, y) first"
        raise AttributeError(reason, name=name, obj=self)

    def __getstate__(self) -> dict[str, Any]:
        # a copy of a released model carries neither a source of randomness nor a budget
        state: dict[str, Any] = super().__getstate__()
        ledger = None if state.get("ledger") is None else LedgerNotPickled()
        return {**state, "random": None, "ledger": ledger, "executor": None, "release": None}

    def __sklearn_clone__(self) -> Self:
        # a ledger that was copied would be spent twice; so would be anything else that counts
        copied = type(self)(
            **{
                name: value if name in _SHARED_BY_CLONES else clone(value, safe=False)
                for name, value in self.get_params(deep=False).items()
            }
        )
        if "_metadata_request" in self.__dict__:
            copied._metadata_request = copy.deepcopy(self._metadata_request)
        return copied

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.non_deterministic = True
        return tags

    def _winner(self) -> Any:
        check_is_fitted(self, "guarantee_", msg=_UNFITTED)
        if self.best_estimator_ is None:
            raise NotFittedError("this search found nothing: no run succeeded, or none was made")
        return self.best_estimator_

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of the released classifier."""
        if "guarantee_" not in self.__dict__ or not hasattr(self.best_estimator_, "classes_"):
            raise AttributeError("no classifier is released")
        return np.asarray(self.best_estimator_.classes_)

    @property
    def scorer_(self) -> Any:
        """The scorer of the search, or a dictionary of them by name. It is made when asked for: a model may have none.

        It is that of the fit, no matter what `scoring` was set to since.
        """
        return scorers_of(self._winner(), self._scores)

    @available_if(_winner_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """The released model's predictions for rows X."""
        return self._asked("predict", X)

    @available_if(_winner_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """The released model's probabilities of the classes."""
        return self._asked("predict_proba", X)

    @available_if(_winner_has("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """The logarithms of the released model's probabilities."""
        return self._asked("predict_log_proba", X)

    @available_if(_winner_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """The released model's scores of the classes."""
        return self._asked("decision_function", X)

    @available_if(_winner_has("score_samples"))  # type: ignore[untyped-decorator]
    def score_samples(self, X: Any) -> Any:
        """The released model's score of each row, such as a likelihood."""
        return self._asked("score_samples", X)

    @available_if(_winner_has("transform"))  # type: ignore[untyped-decorator]
    def transform(self, X: Any) -> Any:
        """Rows X as the released model transforms them."""
        return self._asked("transform", X)

    @available_if(_winner_has("inverse_transform"))  # type: ignore[untyped-decorator]
    def inverse_transform(self, X: Any) -> Any:
        """Transformed rows as the released model takes them back."""
        return answers(self._winner(), "inverse_transform", X)

    def _asked(self, method: str, X: Any) -> Any:
        winner = self._winner()
        table_shape(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        same_names(self._column_names, X)
        return answers(winner, method, X)

    def score(self, X: Any, y: Any) -> float:
        """The released model's score on these rows, without noise. On private rows no guarantee covers it."""
        winner = self._winner()
        scorer = self.scorer_
        return float((next(iter(scorer.values())) if self.multimetric_ else scorer)(winner, X, y))

    def _forget_scores(self) -> None:
        for name in ("best_score_", "best_scores_", "best_score_interval_", "best_score_intervals_"):
            self.__dict__.pop(name, None)
