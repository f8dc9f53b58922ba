"""How a run of a private search is scored on rows that it was not trained on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from dpselect.cures import meant_value, write_one_of
from dpselect.errors import ArgumentError, number
from dpselect.integrations.sklearn.methods import answers, has_method
from dpselect.learners.rows import class_numbers, public_bounds
from dpselect.randomness import RandomSource
from dpselect.study.metrics import METRICS, Metric, RowMetric, ScoreNoise
from dpselect.study.target import Target

__all__ = ["PublicScores", "RowScore", "Scoring", "label_bounds", "row_metric", "scoring_of"]

_STEPS: Final = 2**20
_FAILURE: Final = 0.05
_NAMES: Final = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced-accuracy",
    "neg_log_loss": "log-loss",
    "roc_auc": "auc",
    "r2": "r2",
    "neg_mean_absolute_error": "absolute-error",
    "neg_mean_squared_error": "squared-error",
}
"""scikit-learn's names of the metrics of studies."""


@dataclass(frozen=True)
class RowScore:
    """The mean over the rows of a bounded function of a row's label and the model's answer, larger being better.

    One row moves the sum by at most upper - lower, which is what the noise covers.

    Args:
        function: `function(y, answers)` returns one number a row, shape (rows,). You must ensure that each comes from
            that row's label and answer alone. It is clipped at `lower` and `upper`, and NaN counts as `lower`. In a
            search, so does a row that the function or the model fails on, such as one with an unknown label.
        lower: the smallest number, public.
        upper: the largest number, public, above `lower`.
        response: the method of the model that gives `answers`, "predict" by default.

    Raises:
        ArgumentError: for ends that are not finite, or `upper` not above `lower`. A score raises it for a function that
            does not return one number for each row.

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
        given = np.asarray(self.function(y, answers(model, self.response, X)), dtype=np.float64)
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
    """The scores of a search on private rows: sums of integers with noise.

    `rows` is the public number of rows. For a metric of classes, labels and answers become their places in `classes`.
    `rule` is the caller's own, if there is one.
    """

    metric: Metric
    noise: ScoreNoise | None
    rows: float
    classes: NDArray[Any] | None = None
    rule: RowScore | None = None

    def total(self, model: Any, X: Any, y: Any) -> NDArray[np.int64]:
        """The sums over private rows. One row can move them only so much.

        A row that the model or the rule fails on counts as the worst, and changes nothing for the others.
        """
        if not len(y):  # in the shape of others: a run that no row is scored by must not fail for that
            return self._lost(y)
        try:
            return self.strict_total(model, X, y)
        except Exception:
            rows = (self._one(model, _safe_indexing(X, [k]), y[k : k + 1]) for k in range(len(y)))
            return np.sum(list(rows), axis=0)

    def strict_total(self, model: Any, X: Any, y: Any) -> NDArray[np.int64]:
        """The same. Raises what the model or the rule raises, and `ArgumentError` for answers of another shape."""
        if self.classes is None:
            return self.metric.cells(model, X, y)
        return self.metric.cells(_InPlaces(model, self.classes), X, class_numbers(np.asarray(y), self.classes))

    def _one(self, model: Any, X: Any, y: Any) -> NDArray[np.int64]:
        try:
            return self.strict_total(model, X, y)
        except Exception:
            return self._lost(y)

    def _lost(self, y: Any) -> NDArray[np.int64]:
        return self.metric.lost(y if self.classes is None else class_numbers(np.asarray(y), self.classes))

    def noisy(self, total: NDArray[np.int64], random: RandomSource) -> NDArray[np.int64]:
        """The sums, with noise for what one row can move."""
        assert self.noise is not None
        return self.metric.noisy(total, self.noise, random)

    def score(self, sums: NDArray[np.int64]) -> float:
        """The score that noisy sums make, larger being better."""
        return self.metric.score(sums, rows=self.rows, noise=self.noise)

    @property
    def room(self) -> int:
        """Bytes that the sums take at most."""
        return 256 + 8 * math.prod(self.metric.noisy_shape)

    @property
    def rules(self) -> list[RowScore]:
        """The caller's own rule, if there is one."""
        return [] if self.rule is None else [self.rule]

    def shown(self, sums: NDArray[np.int64], *, runs: float, proved: bool) -> dict[str, Any]:
        """The attributes of a search that these sums tell, besides the score."""
        return {"best_score_interval_": self.interval(sums, runs=runs)} if proved else {}

    def interval(self, sums: NDArray[np.int64], *, runs: float) -> tuple[float | None, float | None]:
        """An interval of the winner's score for new rows, with probability 0.95. None for an end without a bound.

        `runs` is the average number of runs. Each has an interval that fails with probability at most 0.05/runs. Their
        number is independent of the rows, so that all hold together with probability 0.95.
        """
        found = self.metric.estimate(sums, noise=self.noise, failure=_FAILURE / max(1.0, runs))
        if not self.metric.loss:
            return found.low, found.high
        return (None if found.high is None else -found.high), (None if found.low is None else -found.low)


@dataclass(frozen=True, repr=False)
class PublicScores:
    """The scores of a search on public rows, by any scorers. The first decides."""

    scorers: Mapping[str, Callable[[Any, Any, Any], float]]
    X: Any
    y: Any

    def __call__(self, model: Any) -> float:
        """The score of a model, without noise."""
        return float(next(iter(self.scorers.values()))(model, self.X, self.y))

    def all(self, model: Any) -> dict[str, float]:
        """All scores of a model by name, without noise."""
        return {name: float(scorer(model, self.X, self.y)) for name, scorer in self.scorers.items()}


@dataclass(frozen=True, repr=False)
class _InPlaces:
    """A classifier whose answers are places in `classes`, -1 for one that is none of them."""

    model: Any
    classes: NDArray[Any]

    def predict(self, X: Any) -> NDArray[Any]:
        answers = np.asarray(self.model.predict(X))
        return class_numbers(answers, self.classes) if answers.ndim == 1 else answers

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        chances = np.asarray(self.model.predict_proba(X), dtype=np.float64)
        places = class_numbers(np.asarray(getattr(self.model, "classes_", self.classes)), self.classes)
        found = np.zeros((len(chances), len(self.classes)))
        found[:, places[places >= 0]] = chances[:, places >= 0]
        return found


def scoring_of(
    estimator: Any,
    scoring: Any,
    *,
    noise: ScoreNoise | None,
    rows: float,
    classes: NDArray[Any] | None = None,
) -> Scoring:
    """The scoring that `scoring` names, on private rows.

    Raises `ArgumentError` for one that no noise is known for.
    """
    if isinstance(scoring, RowScore):
        return Scoring(row_metric(scoring), noise, rows, rule=scoring)
    if scoring is None and is_classifier(estimator):
        scoring = "accuracy"
    name = _NAMES.get(scoring) if isinstance(scoring, str) else None
    if name is None:
        cure = write_one_of("scoring", scoring, _NAMES) if meant_value(scoring, _NAMES) else ""
        raise ArgumentError(
            f"scoring={scoring!r} on private rows: one row's effect on it is not known, so no noise covers it. Take "
            f"one of {', '.join(_NAMES)}, a RowScore (a bounded score of each row), or public_validation=(X, y), which "
            f"any scorer may see{cure}"
        )
    task = "regression" if classes is None else "classification"
    if METRICS.facts(name)["task"] != task:
        raise ArgumentError(f"scoring={scoring!r} is not for a {task}")
    if name in ("log-loss", "auc") and not has_method(estimator, "predict_proba"):
        raise ArgumentError(f"scoring={scoring!r} needs an estimator with predict_proba")
    target = (
        Target(bounds=label_bounds(estimator, f"scoring={scoring!r}"))
        if classes is None
        else Target(tuple(classes.tolist()))
    )
    return Scoring(METRICS[name](target), noise, rows, classes)


def row_metric(rule: RowScore) -> RowMetric:
    """The metric of a rule of the caller's own."""
    return RowMetric(rule.in_steps, _STEPS, rule.lower, rule.upper)


def label_bounds(estimator: Any, what: str) -> tuple[float, float]:
    """The public bounds of the label that a step of the estimator names."""
    settings = estimator.get_params(deep=True)
    found = [value for name, value in settings.items() if name.split("__")[-1] == "label_bounds" and value is not None]
    if len(found) != 1:
        raise ArgumentError(
            f"{what} needs public bounds of the labels: an estimator with label_bounds=(low, high), as "
            "DPSGDRegressor has them, or a RowScore with bounds of its own"
        )
    return public_bounds(found[0])
