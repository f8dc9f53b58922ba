"""What a user of scikit-learn's searches may expect and does not find here, with the reason."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

from dpselect.tuning.space import GRID_REFUSAL

__all__ = ["ABSENT_ATTRIBUTES", "explain_foreign_arguments"]

Search = TypeVar("Search")

_SECRET: Final = (
    "the guarantee covers the winner alone; scores, settings and number of the other runs are secret and are not kept"
)
ABSENT_ATTRIBUTES: Final = {
    "cv_results_": f"there is no cv_results_: {_SECRET}",
    "best_index_": f"there is no best_index_: {_SECRET}",
    "n_splits_": "there is no n_splits_: folds are cv=, or one split",
    "refit_time_": "there is no refit_time_: the guarantee does not cover running times",
    "best_score_": "there is no best_score_ unless release_score=True (or nothing was found): scores are secret",
    "best_score_interval_": (
        "there is no best_score_interval_ unless release_score=True, on private rows, and neither with cv= nor with "
        "refit=True, whose model is another one (nor where nothing was found)"
    ),
}

_FOREIGN_ARGUMENTS: Final = {
    "n_iter": (
        "n_iter: the number of runs is drawn from a law and stays secret, which is what makes the search cheap: give "
        "repetitions=Harmonic(limit=20), say, or epsilon= and delta= alone. A fixed number of runs is Fixed(count=n)"
    ),
    "random_state": (
        "random_state: whoever knows a seed knows the noise. Leave it out, or in a test give "
        "random=dpselect.randomness.keyed_source(1)"
    ),
    "param_grid": f"param_grid: {GRID_REFUSAL} (param_distributions={{...}} takes the same dictionary)",
    "error_score": "error_score: a run that fails counts as the worst, whether it failed is part of what is protected",
    "return_train_score": f"return_train_score: {_SECRET}",
    "pre_dispatch": "pre_dispatch: see executor=",
    "iid": "iid: gone from scikit-learn too",
}


def explain_foreign_arguments(kind: type[Search]) -> type[Search]:
    """A class whose `__init__` says what to use in the place of an argument of scikit-learn's searches."""
    init: Callable[..., None] = kind.__init__

    @functools.wraps(init)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in kwargs:
            if name in _FOREIGN_ARGUMENTS:
                raise TypeError(f"PrivateSearchCV takes no {_FOREIGN_ARGUMENTS[name]}")
        init(self, *args, **kwargs)

    kind.__init__ = wrapped  # type: ignore[method-assign]
    return kind
