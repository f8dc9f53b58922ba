"""The quality of a released model: scores that were paid for, and baselines to compare them with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.study.expected import metric_with_intervals
from dpselect.study.learners import LEARNERS
from dpselect.study.learners.recipe import learner_keys
from dpselect.study.metrics import Metric
from dpselect.study.metrics.metric import Estimate, Figure, metrics_for
from dpselect.study.model_file import load_model
from dpselect.study.price import Priced
from dpselect.study.schema import DEFAULT_METRICS, Study
from dpselect.study.target import Target
from dpselect.study.task import declared_shares

__all__ = ["Constant", "PublicTest", "accuracy_warning", "class_weights_warning", "figures"]

_FAILURE: Final = 0.05
_RARE: Final = 0.1
"""A class with a smaller part of the rows than this hardly counts in the accuracy."""


def figures(priced: Priced, cells: NDArray[np.int64]) -> dict[str, Any]:
    """The winner's figures with their intervals, JSON-able, from the noisy counts that were released with it.

    Each interval holds by itself. `better_than_constant` says whether it excludes the figure of the constant answer,
    the most common class or the middle label. That figure is made of noisy counts too, and has no interval.

    The interval holds with probability 0.95 for new rows like those that validated, although the winner is the best of
    many noisy runs. The interval of each run fails with probability at most 0.05/E[K]. K does not depend on the rows,
    so the intervals of all K runs fail with probability at most 0.05 together.

    If nothing is proved for rows of persons or of row keys, there is no interval: all ends and `confidence` are None.
    """
    from dpselect.report.card import better_than_constant  # a check needs no report

    settled, noise = priced.settled, priced.score_noise
    failure, counting = _FAILURE / max(1.0, settled.law.mean), metric_with_intervals(settled.study, settled.metric)
    metric = counting or settled.metric

    def ends(one: Estimate) -> dict[str, Any]:
        return asdict(Estimate(one.value, None, None) if counting is None else one)

    found = metric.estimate(cells, noise=noise, failure=failure)
    counts, shares = metric.rows_by_class(cells), metric.shares(cells, noise=noise, failure=failure)
    several = metric.figures(cells, noise=noise, failure=failure)
    constant = _constant(settled.study, metric, counts)
    if several and several[0].constant is not None and (constant is None or constant["from"] != "metric"):
        constant = {"value": several[0].constant, "answer": several[0].answer, "from": "counts"}
    own = {
        "name": settled.study.metric,
        **ends(found),
        "constant": None if constant is None else constant["value"],
        "answer": None if constant is None else constant["answer"],
        "less_is_better": metric.loss,
    }
    every = [own, *({"name": one.name, **ends(one.estimate), **_beside(one)} for one in several[1:])]
    return {
        "metric": settled.study.metric,
        **ends(found),
        "confidence": None if counting is None else 1.0 - _FAILURE,
        "rows_by_class": None if counts is None else [round(count) for count in counts],
        "less_is_better": metric.loss,
        "constant": constant,
        "figures": [{**one, "better_than_constant": better_than_constant(one)} for one in every],
        "shares": None if shares is None else [ends(share) for share in shares],
    }


def _beside(figure: Figure) -> dict[str, Any]:
    """The constant answer of a figure, JSON-able."""
    return {"constant": figure.constant, "answer": figure.answer, "less_is_better": figure.less_is_better}


def _constant(study: Study, metric: Metric, counts: list[float] | None) -> dict[str, Any] | None:
    """The baseline of a constant prediction, if it is public or was paid for. It costs nothing more.

    `from` is "counts" for noisy counts that were released with the score, "declared" for declared shares, or "metric"
    if the metric alone decides it.
    """
    sources = [("metric", None), *([("counts", _counted_shares(counts))] if counts is not None else [])]
    for name, found in (*sources, ("declared", declared_shares(study.data))):
        shares = [share for share in found or () if share is not None]
        known = bool(shares) and len(shares) == len(study.data.classes or ())
        value = metric.constant(shares if known else None)
        if value is not None:
            answer = (study.data.classes or ())[int(np.argmax(shares))] if study.metric == "accuracy" else None
            return {"value": value, "answer": answer, "from": name}
    return None


def accuracy_warning(study: Study, validation: Mapping[str, Any] | None = None) -> str | None:
    """Warn if a constant prediction has a high accuracy by public facts. None if there is nothing to warn of.

    `validation` is what `figures` made: its shares of the classes, with noise, take the place of declared ones.
    """
    shares: Sequence[float | None] = declared_shares(study.data)
    if validation is not None and validation["shares"] is not None:
        shares = [share["value"] for share in validation["shares"]]
    elif validation is not None and validation["rows_by_class"] is not None:
        shares = _counted_shares(validation["rows_by_class"])
    known = {place: share for place, share in enumerate(shares) if share is not None}
    if study.data.task == "regression" or len(known) < 2 or min(known.values()) >= _RARE:
        return None
    place = max(known, key=known.__getitem__)
    name = (study.data.classes or ())[place]
    said = f"always predicting {name!r} is right for about {known[place]:.3g} of the rows"
    if study.metric == "accuracy":
        other = "balanced-accuracy or auc" if len(shares) == 2 else "balanced-accuracy"
        return f"{said}: accuracy says little of the rarest class, take validation.metric = {other}"
    return f"{said}: compare the accuracy of any model with that"


def class_weights_warning(study: Study) -> str | None:
    """Warn if a metric counts classes alike and training counts rows alike. None if there is nothing to warn of."""
    if study.metric != "balanced-accuracy" or "class_weights" not in learner_keys(LEARNERS[study.learner.name]):
        return None
    shares = declared_shares(study.data)
    common = None not in shares and min(filter(None, shares), default=0.0) >= _RARE
    if common or "class_weights" in study.learner.parameters:
        return None
    return (
        "balanced-accuracy counts all classes alike, training counts all rows alike: so that the model finds a rare "
        "class, declare data.class_shares, from which weights follow, or give it a weight, such as class_weights = "
        "{ RARE = 10 } under [learner] for one row in ten; the price stays"
    )


def _counted_shares(counts: list[float]) -> list[float | None]:
    positive = [max(count, 0.0) for count in counts]
    total = sum(positive)
    return [count / total for count in positive] if total > 0.0 else []


@dataclass(frozen=True)
class Constant:
    """A model that gives the same answer for all rows: a class, with the shares of all as probabilities, or a number.

    `place` is what a metric takes for the answer, `answer` what a person does.
    """

    answer: Any
    place: float
    shares: tuple[float, ...] = ()

    @classmethod
    def best(cls, target: Target, labels: NDArray[Any]) -> Constant:
        """The commonest class of these public labels, or their mean."""
        if target.bounds is not None:
            mean = float(np.mean(labels))
            return cls(mean, mean)
        counts = np.bincount(labels[labels >= 0], minlength=len(target.classes))
        place = int(np.argmax(counts))
        return cls(target.classes[place], place, tuple(counts / max(1, counts.sum())))

    def predict(self, X: Any) -> NDArray[Any]:
        """The answer for each row, shape (rows,)."""
        return np.full(len(X), self.place)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The shares for each row, shape (rows, classes)."""
        return np.tile(self.shares, (len(X), 1))


@dataclass(frozen=True, repr=False)
class PublicTest:
    """Public rows as they stand in their source, and their labels as `Target.read` gives them."""

    source: str
    columns: Mapping[str, Any]
    labels: NDArray[Any]
    target: Target

    def of(self, model: Path, *, module: str | None = None) -> dict[str, Any]:
        """Return the entry of release.json for the model in this file. It costs nothing, because both are public.

        All metrics that the label admits, and by itself the accuracy or the absolute error. `constant` is what one
        answer for all rows reaches, the commonest class of these rows or the mean of their labels. `module` made a
        network.
        """
        loaded = load_model(model, module=module)
        found = self._metrics(loaded.estimator, loaded.encode(self.columns))
        constant = Constant.best(self.target, self.labels)
        usual = DEFAULT_METRICS[self.target.task]
        return {
            "source": self.source,
            "rows": len(self.labels),
            usual.replace("-", "_"): found[usual],
            "metrics": found,
            "constant": {"answer": constant.answer, "metrics": self._metrics(constant, self.labels)},
        }

    def _metrics(self, model: Any, features: Any) -> dict[str, float]:
        """The value of each metric that the label admits."""
        return {
            name: metric.estimate(metric.cells(model, features, self.labels), noise=None, failure=0.05).value
            for name, metric in metrics_for(self.target).items()
        }
