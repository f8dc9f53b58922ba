"""The cost of a search and the noise of its runs, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sklearn.base import clone

from dpselect.accounting.planning.search_prices import SearchPrice, least_noise, longest_within, score_epsilon
from dpselect.capabilities import field_values
from dpselect.errors import AdjacencyError, ArgumentError, BudgetError, integer, number
from dpselect.integrations.sklearn.designs import agreement_of, listed
from dpselect.integrations.sklearn.distributions import spaces_of, with_params
from dpselect.integrations.sklearn.guarantee import UnknownRows, fit_guarantee, mark_unknown_rows, searched_guarantee
from dpselect.integrations.sklearn.trial import Settings, noise_parameter
from dpselect.learners import DPSGDClassifier, DPSGDRegressor
from dpselect.mechanisms import ExponentialMechanism, NoisyCount
from dpselect.numerics.digits import rounded_up
from dpselect.privacy import Adjacency, Guarantee, compose, worst_of
from dpselect.repetitions import Repetitions
from dpselect.repetitions.by_name import expect_law
from dpselect.searching import Design
from dpselect.searching.design import DesignPrice, PriceRequest
from dpselect.study.metrics import ScoreNoise
from dpselect.study.portfolio import the_choice
from dpselect.tuning import Space

__all__ = ["Request", "SearchPlan", "make_search_plan", "summary"]

_BY_RULE = ("learning_rate", "clip_norm", "averaged_share", "intercept_scale", "momentum")
"""Parameters of learners by noisy gradients that are chosen by a rule, or hardly matter beside it."""
_SCORE_SHARE = 0.1
"""Where one row pays for models of a run and for its score: of the price, by default."""


@dataclass(frozen=True, kw_only=True)
class SearchPlan(DesignPrice):
    """A priced search, public: a design's price, and `guarantee`, which covers everything that is released.

    A noise is a noise multiplier or one over epsilon. `final` may be of a further run with the noise of the others.
    `note` says so if one run would probably be better than this search. `candidates` are those of a portfolio.
    """

    guarantee: Guarantee
    note: str | None = None
    candidates: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Request:
    """A search as it is asked for: an estimator, a space, and how its runs are made and paid.

    `final_rows` is the public number of rows of the further run, which trains on all of them. `trained` is the share
    of the rows that trains one model. With `own_scores` the rows that train score too.
    Prices and `score_epsilon` are for persons of so many `rows`.
    """

    estimator: Any
    space: Space
    settings: Settings
    epsilon: float | None
    delta: float
    repetitions: Repetitions | None
    max_runs: int
    score_epsilon: float | None
    public_scoring: bool
    folds: int | None
    refit: bool
    final_rows: float | None
    trained: float
    own_scores: bool = False
    scoring: Any = None
    rows: int = 1
    grouped: bool = False

    @property
    def models(self) -> int | None:
        """How many models of a run a row trains if it scores the run as well, or None if it does one of them."""
        if self.folds is not None:
            return self.folds - 1  # it is left out by one fold's model, and scores that one
        return 1 if self.own_scores else None

    def fit(self, noise: float | None, combine: Callable[[Guarantee], Guarantee] = lambda g: g) -> Guarantee:
        """The cost of one run's training for a row that is in it, with parameters drawn from the space."""
        return searched_guarantee(self.estimator, self.space, lambda e: combine(self.priced(e, noise)))

    def final(self, noise: float | None) -> Guarantee | None:
        """The cost of the further run, regardless of the parameters that won."""
        if not self.refit:
            return None
        found: list[Guarantee] = []

        def note(guarantee: Guarantee) -> Guarantee:
            found.append(guarantee)
            return guarantee

        replace(self, settings=replace(self.settings, nominal_rows=self.final_rows)).fit(noise, note)
        return found[0] if len(found) == 1 else worst_of(*found)

    def last(self, noise: float) -> Guarantee:
        """The cost of the further run of a search that has one."""
        found = self.final(noise)
        assert found is not None
        return found

    def candidate(self, params: Mapping[str, Any], noise: float) -> Guarantee:
        """The cost of one fit with these parameters."""
        return self.priced(with_params(self.estimator, params), noise)

    def parts(self, noise: float | None, score_epsilon: float | None) -> tuple[Guarantee, ...]:
        """The cost of one run for a row: one guarantee for each thing that a run can do with it."""
        if score_epsilon is None:
            return (self.fit(noise),)
        models = self.models
        if models is None:
            training = self.fit(noise)
            return training, NoisyCount(epsilon=score_epsilon, adjacency=training.adjacency).guarantee

        def with_score(fit: Guarantee) -> Guarantee:
            return compose(*[fit] * models, NoisyCount(epsilon=score_epsilon, adjacency=fit.adjacency).guarantee)

        return (self.fit(noise, with_score),)

    def price(
        self, law: Repetitions, parts: tuple[Guarantee, ...], noise: float | None, *, quick: bool = False
    ) -> SearchPrice:
        """The cost of the search with the further run. `quick`: a little more than needed with a further run."""
        return SearchPrice(parts, law, self.final(noise), bound="quick" if quick else "smallest")

    def score_noise(self, epsilon: float | None, adjacency: Adjacency) -> ScoreNoise | None:
        """The noise of a score that costs a person `epsilon`. None without one."""
        return None if epsilon is None else ScoreNoise(epsilon, adjacency).of_rows(self.rows)

    def refuse_unpriced(self) -> None:
        """Raise `ArgumentError` where the noise is searched, or a price follows from rows that were not given."""
        for place in self.settings.steps(clone(self.estimator)):
            name = f"{place.path}{noise_parameter(place)[0]}"
            if name in self.searched_names:
                raise ArgumentError(
                    f"param_distributions[{name!r}] is the noise, which epsilon and repetitions together settle: leave "
                    "it out, or leave epsilon out"
                )
        try:  # before a noise is looked for, which would say that none was found
            self.fit(1.0)
        except UnknownRows:
            raise
        except (ArgumentError, BudgetError):
            pass  # of this noise alone

    def refuse_without_delta(self, delta: float, noise: float | None) -> None:
        """Raise `ArgumentError` where a total at delta 0 is asked of an estimator that promises nothing there."""
        if self.epsilon is None or delta > 0.0:
            return
        try:
            single = self.fit(noise)
        except (ArgumentError, BudgetError):
            return  # which the plan itself says
        if math.isinf(single.epsilon(0.0)):
            raise ArgumentError(
                "give delta=, e.g. 1e-6: this estimator adds noise (such as Gaussian noise) that promises an epsilon "
                "only at a delta above 0. Write delta=1e-6"
            )

    def as_asked(self, total: Guarantee) -> Guarantee:
        """The price. Raises `AdjacencyError` if it is under another adjacency than was asked for."""
        asked = self.settings.adjacency
        if asked is not None and total.adjacency is not asked:
            raise AdjacencyError(
                f"the estimator is private under {total.adjacency.value}, not under {asked.value}; it is not converted"
            )
        if self.grouped and total.adjacency is Adjacency.REPLACE_ONE:
            raise AdjacencyError(
                "rows_per_group needs add_or_remove_one, and this search is private under replace_one: give "
                'adjacency="add_or_remove_one", or an estimator that knows it. A person in the place of another may '
                "have fewer rows, or more"
            )
        return total

    @property
    def searched_names(self) -> set[str]:
        """The names of the parameters that are searched."""
        return {name for space in spaces_of(self.space) for name in space.parameters}

    def priced(self, estimator: Any, noise: float | None) -> Guarantee:
        """The cost of one fit of an estimator. Its steps are set for it."""
        settings = replace(self.settings, noise=noise)
        steps = settings.steps(estimator)
        if settings.nominal_rows is None:
            mark_unknown_rows(steps)
        return fit_guarantee(estimator, settings.base, columns=settings.columns, rows=self.rows)


def make_search_plan(request: Request, design: Design) -> SearchPlan:
    """Choose the number of runs and the noises of a design, and price it all.

    Raises `ArgumentError` or `TypeError` for arguments, `BudgetError` when the total cannot be met.
    """
    delta = number("delta", request.delta, at_least=0.0, below=1.0, rounding="down")
    epsilon = None if request.epsilon is None else number("epsilon", request.epsilon, above=0.0, rounding="down")
    if request.score_epsilon is not None:
        number("score_epsilon", request.score_epsilon, above=0.0, rounding="down")
    candidates = listed(request.space) if design.tries and request.epsilon is not None else []
    trials = [partial(request.candidate, each) for each in candidates]

    def choice(epsilon: float) -> ExponentialMechanism:
        request.refuse_without_delta(delta, 1.0)
        request.refuse_unpriced()
        compared = agreement_of(request.estimator, request.scoring, None).metric
        return the_choice(compared, epsilon, trials[0](1.0).adjacency, request.rows)  # type: ignore[arg-type]

    found = design.priced(
        PriceRequest(
            epsilon=epsilon,
            delta=delta,
            searched=partial(_searched, request, epsilon, delta),
            last=request.last,
            trials=lambda: trials,
            choice=choice,
            repetitions=request.repetitions,
        )
    )
    total = request.as_asked(found.search.guarantee)
    simple = found.portfolio is None and found.final_noise is None
    if epsilon is not None and not found.search.within(epsilon, delta):
        raise BudgetError(
            f"the search costs epsilon {rounded_up(found.search.epsilon(delta))} at delta {delta:g}, "
            f"above the total {epsilon:g}: raise epsilon or lower score_epsilon"
        )
    return SearchPlan(
        **field_values(found),
        guarantee=total,
        note=_note(request, found.search, delta) if simple else None,
        candidates=tuple(candidates),
    )


def _searched(
    request: Request, total: float | None, delta: float, law: Repetitions | None, share: float
) -> DesignPrice:
    """The noises and the price of a search with a share of the total. Below 1 it is a first stage without further run.

    `epsilon` with a law: the least noise that meets it. `epsilon` alone: the longest harmonic law that the estimator's
    own noise allows. (With a further run both are chosen by a quicker bound, 1 % above.) A law alone: the
    price that results. The score's noise, unless given, is the least with which
    the held-out rows pay no more than the training rows.
    """
    first, epsilon = share < 1.0, None if total is None else share * total
    if first:
        request = replace(request, refit=False)
    noise = None
    if law is not None:
        expect_law(law)
    request.refuse_without_delta(delta, None if law is None else 1.0)
    score = _stated_score(request, epsilon, law, delta)
    training = score if request.models is not None else None
    if law is None:
        if epsilon is None:
            raise ArgumentError(
                "a total or the number of runs is needed. Write epsilon=3.0, delta=1e-5, or give repetitions=, or both"
            )
        law = longest_within(
            lambda offered: request.price(offered, request.parts(None, training)[:1], None, quick=True),
            epsilon=epsilon,
            delta=delta,
            max_runs=integer("max_runs", request.max_runs, at_least=1),
        ).law
    elif epsilon is not None:
        request.refuse_unpriced()
        chosen = law
        noise = least_noise(
            "the first stage" if first else "the estimator",
            lambda value: request.price(chosen, request.parts(value, training)[:1], value, quick=True),
            epsilon=epsilon,
            delta=delta,
            relative=1e-3 if request.refit or first else 1e-4,
            unspent=5e-4 if request.refit else 1e-4,
        )
    if score is None and not request.public_scoring:
        trained = request.price(law, request.parts(noise, training)[:1], noise)
        paid = epsilon if epsilon is not None and (request.refit or first) else trained.epsilon(delta)
        score = _matching_score(request, law, noise, paid, delta)
    final = None if first else request.final(noise)
    return DesignPrice(
        repetitions=law, noise=noise, parts=request.parts(noise, score), score_epsilon=score, final=final
    )


def _note(request: Request, price: SearchPrice, delta: float) -> str | None:
    """A note on what one run would have, if only parameters are searched that the learner chooses by a rule."""
    place = request.settings.steps(clone(request.estimator))[-1]
    if not isinstance(place.step, (DPSGDClassifier, DPSGDRegressor)):
        return None
    if not request.searched_names <= {place.path + name for name in _BY_RULE}:
        return None
    # the sharp price beside a further run takes as long as the rest
    whole = replace(price, bound="quick").epsilon(delta)
    one, alone = (rounded_up(each, digits=4) for each in (price.parts[0].epsilon(delta), whole))
    rows = "" if request.trained == 1.0 else " and all the rows"
    return (
        f"only settings are searched that {type(place.step).__name__} chooses by a rule from public numbers; a run of "
        f"this search is trained at epsilon {one}, and one fit that leaves them alone would have all of {alone}{rows}"
    )


def _matching_score(request: Request, law: Repetitions, noise: float | None, target: float, delta: float) -> float:
    """The score epsilon with which a held-out row pays what is paid for a training row, `target`."""
    if not target < math.inf:
        raise ArgumentError("give delta (at 0 nothing is promised), or score_epsilon for the noise of the scores")
    final = request.final(noise)
    adjacency = request.fit(noise).adjacency
    if final is not None:
        # adding up is safe, and quick; what is promised is computed from the curves
        target -= final.epsilon(delta)
    if not target > 0.0:
        raise BudgetError("nothing is left for the score beside the further run: give score_epsilon")
    return score_epsilon(law, adjacency, epsilon=target, delta=delta if final is None else 0.0)


def _stated_score(request: Request, epsilon: float | None, law: Repetitions | None, delta: float) -> float | None:
    """The score epsilon as given, or where rows pay for models and scores a tenth of the total or of a model's price.

    None where it follows from the price of training, and on public rows.
    """
    if request.public_scoring or request.score_epsilon is not None or request.models is None:
        return None if request.public_scoring else request.score_epsilon
    if epsilon is not None and law is not None:
        return score_epsilon(law, Adjacency.ADD_OR_REMOVE_ONE, epsilon=_SCORE_SHARE * epsilon, delta=delta)
    single = request.fit(None).epsilon(delta)
    if not 0.0 < single < math.inf:
        raise ArgumentError("give delta (at 0 nothing is promised), or score_epsilon for the noise of the scores")
    return _SCORE_SHARE * single


def summary(plan: SearchPlan, delta: float, classes: Sequence[Any] | None) -> str:
    """The public facts of a search that begins, for people."""
    law = plan.repetitions
    said = [
        f"PrivateSearchCV: {type(law).__name__} law, {law.mean:.3g} runs on average; "
        f"epsilon {rounded_up(plan.guarantee.epsilon(delta))} at delta {delta:g} for all that is released",
        "note: cells that are missing or no number count as zero for dpselect's learners; nothing tells how many are",
    ]
    if classes is not None:
        said.append(
            f"note: rows with labels other than {list(classes)} train nothing; nothing tells how many there are"
        )
    return "\n".join(said if plan.note is None else [*said, f"note: {plan.note}"])
