"""Designs of a search beside the one in a single stage: a portfolio of what lists name, and a search in two stages.

They are those of studies (`dpselect.study.portfolio`, `dpselect.study.second_stage`), with estimators for learners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from dpselect.accounting.planning.portfolio import CHOICE, MOST_CANDIDATES, PortfolioPrice, portfolio_of
from dpselect.accounting.planning.search_prices import SearchPrice, least_last, least_noise, score_epsilon
from dpselect.errors import ArgumentError, number
from dpselect.integrations.sklearn.distributions import Choices, MixedSpace, finite_choices, spaces_of, with_params
from dpselect.integrations.sklearn.plan import Request, SearchPlan, stated_score
from dpselect.integrations.sklearn.scoring import RowScore, Scoring, label_bounds, row_metric
from dpselect.integrations.sklearn.trial import Settings, TrialRows, pack, train, unpack
from dpselect.learners.column_types import of_any_type
from dpselect.privacy import Guarantee
from dpselect.randomness import RandomSource
from dpselect.repetitions import Fixed, ZeroTruncatedPoisson
from dpselect.selection.portfolio import Portfolio, TrialModel
from dpselect.study.portfolio import agreement, beginning, size, the_choice
from dpselect.study.target import Target
from dpselect.tuning import Space
from dpselect.tuning.trial import TrialOutput

__all__ = ["PortfolioRun", "agreement_of", "listed", "one_by_one", "plan_portfolio", "plan_two_stages"]

_FIRST_STAGE: Final = ZeroTruncatedPoisson(mean=5.0)


def listed(space: Space) -> list[dict[str, Any]]:
    """Every combination of the values that a space lists; raises `ArgumentError` where it does not list two to four."""
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
    return [dict(zip(choices, each, strict=True)) for each in product(*(values or () for values in choices.values()))]


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
        f'scoring={scoring!r}: design="portfolio" compares by a sum over the rows that train: leave it None (right '
        "answers, or how near a number comes), or give a RowScore"
    )


def plan_portfolio(request: Request, scoring: Any) -> SearchPlan:
    """The noises of trials and of the last run with which all of it meets the total, and the price.

    Claim: as `PortfolioPrice.guarantee` says. Source: docs/theory/portfolio.md, Theorem 1.
    """
    epsilon, delta = _total(request)
    candidates = listed(request.space)
    request.refuse_unpriced()
    makes = [partial(_training, request, candidate) for candidate in candidates]
    adjacency = makes[0](1.0).adjacency
    compared = agreement_of(request.estimator, scoring, None).metric
    choice = the_choice(compared, epsilon / CHOICE, adjacency)  # type: ignore[arg-type]
    found = portfolio_of(makes, choice, epsilon=epsilon, delta=delta)
    price = SearchPrice((found.guarantee,), Fixed(count=1))
    return SearchPlan(
        request.as_asked(price.guarantee),
        price.law,
        price.parts,
        None,
        None,
        found.noises[0],
        portfolio=found,
        candidates=tuple(candidates),
    )


def plan_two_stages(request: Request, share: float) -> SearchPlan:
    """The noises of a search with the rest of epsilon, and of one run on all rows with what is left of the total.

    Claim: whatever setting wins, both are covered by the composition of their guarantees. Source:
    docs/theory/portfolio.md, Theorem 2.
    """
    epsilon, delta = _total(request)
    first = (1.0 - number("refit_share", share, above=0.0, below=1.0)) * epsilon
    request.refuse_unpriced()
    law = _FIRST_STAGE if request.repetitions is None else request.repetitions
    score = stated_score(request, first, law, delta)
    training = score if request.models is not None else None
    noise = least_noise(
        "the first stage",
        lambda value: SearchPrice(request.parts(value, training)[:1], law),
        epsilon=first,
        delta=delta,
        relative=1e-3,
    )
    if score is None and not request.public_scoring:
        score = score_epsilon(law, request.fit(noise).adjacency, epsilon=first, delta=delta)
    parts = request.parts(noise, score)

    def last(value: float) -> Guarantee:
        found = request.final(value)
        assert found is not None
        return found

    paid = [SearchPrice((part,), law).guarantee for part in parts]
    final_noise = least_last(last, paid, epsilon=epsilon, delta=delta)
    price = SearchPrice(parts, law, last(final_noise))
    return SearchPlan(request.as_asked(price.guarantee), law, parts, price.final, score, noise, final_noise=final_noise)


def _training(request: Request, candidate: Mapping[str, Any], noise: float) -> Guarantee:
    return request.priced(with_params(request.estimator, candidate), noise)


def _total(request: Request) -> tuple[float, float]:
    if request.epsilon is None:
        raise ArgumentError("epsilon must be given: this design has several noises, which are chosen for a total")
    delta = number("delta", request.delta, at_least=0.0, below=1.0, rounding="down")
    request.refuse_without_delta(delta, 1.0)
    return number("epsilon", request.epsilon, above=0.0, rounding="down"), delta


def _size(model: Any) -> int | None:
    """How many weights the last step of a fitted estimator has, where that can be told."""
    return size(model[-1] if isinstance(model, Pipeline) else model)


def _beginning(trial: TrialModel | None, noise: float) -> dict[str, Any]:
    """What `fit` is told so that the last step goes on from its trial: see `dpselect.study.portfolio.beginning`."""
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
        choice = Portfolio(fits, self.price, self._total, _size, self.settings.nominal_rows)
        model, (place,) = choice(params, random, (everything, everything))
        return TrialOutput(0.0, (pack(model), place))

    def _total(self, model: Any, everything: NDArray[np.intp], _: Any) -> Any:
        return sum(self.scoring.total(model, X, y) for X, y in self.rows.scored(everything))

    def released(self, value: Any, params: Mapping[str, Any], final: Settings) -> tuple[dict[str, Any], Any]:  # noqa: ARG002
        """The candidate that was chosen, and its model."""
        packed, place = value
        return dict(self.candidates[int(place)]), unpack(packed)
