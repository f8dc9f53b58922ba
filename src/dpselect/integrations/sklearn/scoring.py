"""How a run of a private search is scored on rows that it was not trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing

from dpselect.errors import ArgumentError, number
from dpselect.randomness import RandomSource
from dpselect.study.metrics import METRICS, RowMetric

__all__ = ["RowScore", "Scoring", "scoring_of"]

_STEPS: Final = 2**20


@dataclass(frozen=True)
class RowScore:
    """The mean over the rows of a bounded function of a row's label and the model's answer; larger is better.

    `function(y, answers)` gives one number a row, shape (rows,), each from that row's label and answer alone (the
    caller must ensure it); it is cut off at `lower` and `upper`, public, and what is not a number counts as `lower`; in
    a search, so does a row that the function or the model fails on, such as one with an unknown label. `answers` is
    what the model's method `response` gives. One row moves the sum by at most upper - lower, which is what the noise
    covers.

    >>> absolute = RowScore(lambda y, answers: -abs(y - answers), lower=-10.0, upper=0.0)
    """

    function: Callable[[Any, Any], Any]
    lower: float = 0.0
    upper: float = 1.0
    response: str = "predict"

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", number("lower", self.lower))
        object.__setattr__(self, "upper", number("upper", self.upper, above=self.lower))

    def of_rows(self, model: Any, X: Any, y: Any) -> NDArray[np.float64]:
        """The score of each row, in [lower, upper], shape (rows,)."""
        given = np.asarray(self.function(y, getattr(model, self.response)(X)), dtype=np.float64)
        if given.shape != (len(y),):
            raise ArgumentError("RowScore's function must give one number for each row")
        return np.clip(np.nan_to_num(given, nan=self.lower), self.lower, self.upper)

    def in_steps(self, model: Any, X: Any, y: Any) -> NDArray[np.float64]:
        """The same as whole steps from `lower` to `upper`, rounded down, shape (rows,)."""
        shares = (self.of_rows(model, X, y) - self.lower) / (self.upper - self.lower)
        return np.asarray(np.floor(shares * _STEPS))

    def __call__(self, model: Any, X: Any, y: Any) -> float:
        """The mean, without noise."""
        return float(np.mean(self.of_rows(model, X, y)))


@dataclass(frozen=True, repr=False)
class Scoring:
    """The scores of a search: of private rows a sum of whole steps with noise, or any scorer on public rows.

    `rows` is the public number of rows that a private sum is divided by.
    """

    rule: RowScore | None
    scorer: Callable[[Any, Any, Any], float] | None
    epsilon: float | None
    rows: float

    def total(self, model: Any, X: Any, y: Any) -> int:
        """The sum over private rows, in whole steps: correct predictions, or fixed-point scores above `lower`.

        A row that the model or the rule fails on counts nothing, and changes nothing for the others.
        """
        try:
            return self.strict_total(model, X, y)
        except Exception:
            return sum(self._one(model, _safe_indexing(X, [k]), y[k : k + 1]) for k in range(len(y)))

    def strict_total(self, model: Any, X: Any, y: Any) -> int:
        """The same; raises what the model or the rule raises, and `ArgumentError` for answers of another shape."""
        return self._metric.total(model, X, y)

    def _one(self, model: Any, X: Any, y: Any) -> int:
        try:
            return self.strict_total(model, X, y)
        except Exception:
            return 0

    def noisy(self, total: int, random: RandomSource) -> float:
        """The released score from the sum: one row moves it by one correct prediction, or by all steps of a score."""
        assert self.epsilon is not None
        noisy = self._metric.noisy(total, epsilon=self.epsilon, random=random)
        return self._metric.score(noisy, rows=self.rows)

    @property
    def _metric(self) -> RowMetric:
        rule = self.rule
        return METRICS["accuracy"] if rule is None else RowMetric(rule.in_steps, _STEPS, rule.lower, rule.upper)


def scoring_of(estimator: Any, scoring: Any, *, public: bool, epsilon: float | None, rows: float) -> Scoring:
    """The scoring that `scoring` names. Raises `ArgumentError` for one that no noise is known for on private rows."""
    if isinstance(scoring, (Mapping, list, tuple, set)):
        raise ArgumentError("scoring must be one score, by which the best run is chosen: several cannot be compared")
    if public:
        return Scoring(None, check_scoring(estimator, scoring=scoring), None, rows)
    if isinstance(scoring, RowScore):
        return Scoring(scoring, None, epsilon, rows)
    if scoring == "accuracy" or (scoring is None and is_classifier(estimator)):
        return Scoring(None, None, epsilon, rows)
    raise ArgumentError(
        f"scoring={scoring!r} on private rows: one row's effect on it is not known, so no noise covers it. Take "
        '"accuracy", a RowScore (a bounded score of each row), or public_validation=(X, y), which any scorer may see'
    )
