"""A portfolio of estimators that lists name: that of `dpselect.study.portfolio`, with estimators as learners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from dpselect.accounting.planning.portfolio import MOST_CANDIDATES, PortfolioPrice
from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn.distributions import Choices, MixedSpace, finite_choices, spaces_of
from dpselect.integrations.sklearn.scoring import RowScore, Scoring, label_bounds, row_metric
from dpselect.integrations.sklearn.trial import Settings, TrialRows, pack, train, unpack
from dpselect.learners.column_types import of_any_type
from dpselect.randomness import RandomSource
from dpselect.searching.design import listed as combinations
from dpselect.searching.portfolio import CandidateTrials, TrialModel
from dpselect.study.portfolio import agreement, beginning, size
from dpselect.study.target import Target
from dpselect.tuning import Space
from dpselect.tuning.trial import TrialOutput

__all__ = ["PortfolioRun", "agreement_of", "listed", "one_by_one"]


def listed(space: Space) -> list[dict[str, Any]]:
    """Every combination of the values that a space lists. Raises `ArgumentError` if there are not two to four."""
    found = [each for part in spaces_of(space) for each in _combinations(part)]
    if not 2 <= len(found) <= MOST_CANDIDATES:
        raise ArgumentError(
            f'design="portfolio" is of 2 to {MOST_CANDIDATES} candidates, each of which is tried once, and '
            f'param_distributions has {len(found)}; for more take design="one-stage"'
        )
    return found


def _combinations(space: Space) -> list[dict[str, Any]]:
    choices = {name: finite_choices(law) for name, law in space.parameters.items()}
    for name, values in choices.items():
        if values is None:
            raise ArgumentError(
                f'param_distributions[{name!r}] must be a list of values: design="portfolio" tries each of them once'
            )
    return combinations(choices)


def one_by_one(candidates: Sequence[Mapping[str, Any]]) -> Space:
    """A space of these settings alone."""
    return MixedSpace({}, tuple(Space({k: Choices((v,)) for k, v in each.items()}) for each in candidates))


def agreement_of(estimator: Any, scoring: Any, classes: NDArray[Any] | None) -> Scoring:
    """By what candidates are compared on the rows that train: see `dpselect.study.portfolio.agreement`."""
    if isinstance(scoring, RowScore):
        return Scoring(row_metric(scoring), None, 1.0, rule=scoring)
    if is_classifier(estimator) and scoring in (None, "accuracy"):
        known = np.arange(2) if classes is None else classes
        return Scoring(agreement(Target(tuple(known.tolist()))), None, 1.0, known)
    if not is_classifier(estimator) and scoring is None:
        return Scoring(agreement(Target(bounds=label_bounds(estimator, 'design="portfolio"'))), None, 1.0)
    raise ArgumentError(
        f'scoring={scoring!r}: design="portfolio" compares by a sum over the rows that train: leave it None '
        "(correct predictions, or how near a number comes), or give a RowScore"
    )


def _size(model: Any) -> int | None:
    """How many weights the last step of a fitted estimator has, where that can be told."""
    return size(model[-1] if isinstance(model, Pipeline) else model)


def _beginning(trial: TrialModel | None, noise: float) -> dict[str, Any]:
    """Arguments of `fit` to continue from the step's trial: see `dpselect.study.portfolio.beginning`."""
    if trial is None or get_config()["enable_metadata_routing"]:
        return {}  # a pipeline then passes on what its steps have asked for alone
    model = trial.model
    learner, path = (model[-1], f"{model.steps[-1][0]}__") if isinstance(model, Pipeline) else (model, "")
    return {f"{path}{name}": value for name, value in beginning(learner, noise / trial.noise).items()}


@dataclass(frozen=True, repr=False)
class PortfolioRun:
    """The objective of a portfolio: the packed model of the last run, and the place of its candidate."""

    estimator: Any
    candidates: Sequence[Mapping[str, Any]]
    settings: Settings
    price: PortfolioPrice
    rows: TrialRows
    scoring: Scoring
    shows_sums: ClassVar = False
    """Nothing is shown of how well any fits."""

    @of_any_type()
    def __call__(self, params: Mapping[str, Any], random: RandomSource) -> TrialOutput:
        """Try every candidate, choose, and train that one."""
        everything = np.arange(len(self.rows.y))
        X, y, beside = self.rows.training(everything)

        def fit(candidate: Mapping[str, Any], noise: float, source: RandomSource, rows: Any, trial: Any) -> Any:  # noqa: ARG001
            given = (X, y, beside | _beginning(trial, noise))
            return train(self.estimator, candidate, replace(self.settings, noise=noise), given, source)

        fits = [partial(fit, candidate) for candidate in self.candidates]
        choice = CandidateTrials(fits, self.price, self._total, _size, self.settings.nominal_rows)
        model, (place,) = choice(params, random, (everything, everything))
        return TrialOutput(0.0, (pack(model), place))

    def _total(self, model: Any, everything: NDArray[np.intp], _: Any) -> Any:
        return sum(self.scoring.total(model, X, y) for X, y in self.rows.scored(everything))

    def released(self, value: Any, params: Mapping[str, Any], final: Settings) -> tuple[dict[str, Any], Any]:  # noqa: ARG002
        """The candidate that was chosen, and its model."""
        packed, place = value
        return dict(self.candidates[int(place)]), unpack(packed)
