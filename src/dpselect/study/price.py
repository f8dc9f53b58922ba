"""Step 2 of a study: the noise that makes the whole search meet its total, from public facts alone, and the price."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Final

from dpselect.accounting.planning.portfolio import PortfolioPrice
from dpselect.accounting.planning.search_prices import SearchPrice, least_noise, score_epsilon, score_multiplier
from dpselect.errors import BudgetError, StudyError
from dpselect.ledger.accounting import Amounts
from dpselect.mechanisms import NoisyCount
from dpselect.numerics.digits import rounded_down, rounded_up
from dpselect.privacy import Guarantee, compose, gaussian, worst_of
from dpselect.repetitions import Repetitions
from dpselect.searching.design import DesignPrice, PriceRequest, Scored
from dpselect.study.bounds import Purchase, purchase_of
from dpselect.study.candidates import PortfolioCandidate
from dpselect.study.cell_counts import CellPrice, cell_price
from dpselect.study.expected import check_figure
from dpselect.study.learners.recipe import Recipe
from dpselect.study.metrics import ScoreNoise
from dpselect.study.portfolio import agreement, the_choice
from dpselect.study.row_parts import SPLIT
from dpselect.study.schema import Study
from dpselect.study.second_stage import SecondStage
from dpselect.study.user_module import code_digest
from dpselect.study.validate import Settled
from dpselect.tuning import SearchStore
from dpselect.tuning.options import SearchRequest
from dpselect.tuning.tuner import check_store

__all__ = ["Price", "Priced", "check_budget", "price", "price_study"]

_SCORES: Final = 0.1
"""The share of epsilon that scores of rows that train would cost by themselves. See docs/reference/study-file.md."""
_WHERE: Final = {"executor", "workers", "address", "resources"}


@dataclass(frozen=True)
class Price:
    """The noise and the guarantees of a study.

    `parts` are the guarantees of one run for a row that trains and for a row that validates. A row is in one part only,
    so one run costs it the larger, and the whole search the larger of the two finished curves. If training's guarantee
    covers the score too, it is the only part. If the rows that train also score, there is one part with both composed.
    A score has Laplace noise (`score_epsilon`) or Gaussian noise (`score_multiplier`). If the study protects persons,
    all of it is for a person's rows together: see `Priced.score_noise`.
    `purchase` are bounds that every row pays for first, `cells` counts of its cells. `search` has their price too.
    `portfolio` are the noises of candidates, the first of which is `noise`, and the price of the choice. `second` is a
    second stage.
    """

    noise: float
    score_epsilon: float | None
    parts: tuple[Guarantee, ...]
    search: Guarantee
    epsilon: float
    delta: float
    purchase: Purchase | None = None
    portfolio: PortfolioPrice | None = None
    second: SecondStage | None = None
    cells: CellPrice | None = None
    score_multiplier: float | None = None

    @property
    def single(self) -> Guarantee:
        """The cost of one run for a row in any part."""
        return worst_of(*self.parts)

    @property
    def beside(self) -> Guarantee | None:
        """The cost for every row beside the runs: for bounds, for counts of cells, and for a run on all rows."""
        return _paid(self.purchase, self.cells, self.second)


@dataclass(frozen=True, repr=False)
class Priced:
    """A settled study and its price."""

    settled: Settled
    price: Price

    @property
    def score_noise(self) -> ScoreNoise | None:
        """The noise of a score, None if public rows validate."""
        epsilon, multiplier = self.price.score_epsilon, self.price.score_multiplier
        if epsilon is None and multiplier is None:
            return None
        privacy = self.settled.study.privacy
        return ScoreNoise(epsilon, privacy.adjacency, multiplier).of_rows(privacy.per_person)

    @property
    def request(self) -> SearchRequest:
        """The search as the tuner asks for it."""
        settled = self.settled
        scored, beside = settled.releases_score, self.price.beside
        base, law = self.price.parts, settled.law
        return SearchRequest(space=settled.space, base=base, repetitions=law, declare_score=scored, beside=beside)

    @property
    def store(self) -> SearchStore:
        """The place of the search."""
        settled = self.settled
        return SearchStore(
            path=settled.place.store,
            resume=settled.place.resume,
            key_variable=settled.study.output.key_variable,
            payload_bytes=settled.payload_bytes,
            fingerprint=_fingerprint(settled),
        )

    @property
    def mark(self) -> str:
        """The name of this search in a ledger of its own."""
        return hashlib.sha256(json.dumps(_fingerprint(self.settled), sort_keys=True).encode()).hexdigest()


def price(settled: Settled) -> Priced:
    """Choose the noise and return the price. Raises `BudgetError` if no noise meets the total."""
    study, law, purchase = settled.study, settled.law, purchase_of(settled.study, settled.columns)
    if not settled.candidates and settled.second is None:
        return Priced(settled, price_study(study, settled.recipe, law, purchase))
    cells = cell_price(study, settled.columns, pure=settled.recipe.pure)
    found = _finished(study, settled.recipe, law, (purchase, cells), settled.candidates, settled.second)
    return Priced(settled, found)


def check_budget(priced: Priced) -> Priced:
    """Return the same if the budget has room for it, and if a store to continue with is that of this search.

    Raises `BudgetError` or `StudyError`, also for a figure that would be noise. Charges nothing and reads no row.
    """
    settled, found = priced.settled, priced.price
    if settled.shows_score and settled.study.validation.metric is not None:
        check_figure(settled.study, settled.metric, priced.score_noise, settled.law.mean)
    left = None if settled.place.resume else settled.left
    # delta as the study writes it: 1e-5 is less than the float64 next to it, and fits a budget of 1e-5
    if left is not None and (left.epsilon < Fraction(found.epsilon) or left.delta < Fraction(repr(found.delta))):
        raise BudgetError(
            f"the search costs epsilon {rounded_up(found.epsilon)} at delta {found.delta:g}; budget "
            f"{settled.study.privacy.budget!r} has epsilon {rounded_down(float(left.epsilon))} and delta "
            f"{rounded_down(float(left.delta))} left{_cure(settled.study, left)}"
        )
    check_store(priced.request, priced.store, settled.execution, has_ledger=True)
    return priced


def _cure(study: Study, left: Amounts) -> str:
    """The cure for a total that the budget does not have."""
    if left.epsilon <= 0 or (study.privacy.delta > 0 and left.delta <= 0):
        return "; create another budget, or do without this search"
    if left.delta < Fraction(repr(study.privacy.delta)):
        return f". Write delta = {rounded_down(float(left.delta))}"
    return f". Write epsilon = {rounded_down(float(left.epsilon))}"


def price_study(study: Study, recipe: Recipe, law: Repetitions, purchase: Purchase | None) -> Price:
    """Calibrate the noise of training and of the score. Raises `BudgetError` if no noise meets the total."""
    cells = cell_price(study, recipe.columns, pure=recipe.pure)
    return _finished(study, recipe, law, (purchase, cells))


def _searched(
    study: Study, recipe: Recipe, beside: Guarantee | None, law: Repetitions | None, share: float
) -> DesignPrice:
    """The noise of runs with which their search, and what is paid beside it, meet a share of the total."""
    assert law is not None
    privacy, first = study.privacy, share < 1.0
    if first:
        beside = None  # the last run makes room for it
    total = None if privacy.epsilon is None else share * privacy.epsilon
    scores = _scores_of_training(study, law, total)
    run = _run(study, recipe, scores)

    def whole(noise: float) -> SearchPrice:
        return SearchPrice((run(noise),), law, beside)

    if total is not None:
        what, relative = ("the first stage", 1e-3) if first else ("the learner", 1e-4)
        noise = least_noise(what, whole, epsilon=total, delta=privacy.delta, relative=relative)
    else:
        assert privacy.noise_multiplier is not None
        if recipe.noise_name != "noise_multiplier":
            raise StudyError(f"privacy.noise_multiplier: learner {recipe.kind!r} has none; give epsilon")
        noise = privacy.noise_multiplier
        total = whole(noise).epsilon(privacy.delta)
        if not total < float("inf"):
            raise BudgetError("privacy: nothing is guaranteed at this noise_multiplier and delta")
    parts, scores, multiplier = _parts(study, law, run(noise), scores, total, beside)
    return DesignPrice(repetitions=law, noise=noise, parts=parts, score_epsilon=scores, score_multiplier=multiplier)


def _scores_of_training(study: Study, law: Repetitions, total: float | None) -> float | None:
    """Epsilon of the noisy count by which a run scores the rows that trained it, None if others score.

    By default a search of such counts alone would cost a share of the total.
    """
    privacy, validation = study.privacy, study.validation
    if validation.data != "training":
        return None
    epsilon = validation.score_epsilon
    if epsilon is None and total is None:
        raise StudyError("validation.score_epsilon: needed where [privacy] gives a noise_multiplier and all rows score")
    if epsilon is None:
        assert total is not None
        return score_epsilon(law, privacy.adjacency, epsilon=_SCORES * total, delta=privacy.delta)
    alone = SearchPrice((NoisyCount(epsilon=epsilon, adjacency=privacy.adjacency).guarantee,), law)
    if total is not None and (price := alone.epsilon(privacy.delta)) >= total:
        raise BudgetError(
            f"validation.score_epsilon: scores alone cost epsilon {rounded_up(price)} at delta {privacy.delta:g}, and "
            f"they and training have {total:g}: lower it"
        )
    return epsilon


def _run(study: Study, recipe: Recipe, scores: float | None) -> Callable[[float], Guarantee]:
    """The cost of one run for a row that trains, by its noise.

    Claim: a run that trains on rows and then scores the same rows by a noisy count keeps the composition of both.
    Source: docs/theory/portfolio.md, Theorem 3.
    """
    if scores is None:
        return recipe.guarantee
    score = NoisyCount(epsilon=scores, adjacency=study.privacy.adjacency).guarantee
    return lambda noise: compose(recipe.guarantee(noise), score)


def _parts(
    study: Study, law: Repetitions, training: Guarantee, scores: float | None, total: float, beside: Guarantee | None
) -> Scored:
    """The cost of one run for a row, part by part, and epsilon or the noise multiplier of its score.

    Rows aside score with what the total allows: with Gaussian noise, or if training is purely private with Laplace
    noise. `scores` is the epsilon of rows that train.
    """
    privacy, validation = study.privacy, study.validation
    if validation.data != "private":
        return (training,), scores, None
    scores = validation.score_epsilon
    if scores is None and privacy.delta > 0.0 and not training.pure_epsilon < math.inf:
        noise, covered = score_multiplier(training, law, epsilon=total, delta=privacy.delta, final=beside)
        score = gaussian(noise_multiplier=noise, adjacency=privacy.adjacency)
        return ((training,) if covered else (training, score)), None, noise
    if scores is None:
        scores = score_epsilon(law, privacy.adjacency, epsilon=total, delta=privacy.delta, final=beside)
    return (training, NoisyCount(epsilon=scores, adjacency=privacy.adjacency).guarantee), scores, None


def _finished(
    study: Study,
    recipe: Recipe,
    law: Repetitions,
    before: tuple[Purchase | None, CellPrice | None],
    candidates: Sequence[PortfolioCandidate] = (),
    last: Recipe | None = None,
) -> Price:
    """The price of the study's design, with all of it; raises `BudgetError` where that is above the total.

    `last` is how a last run on all rows trains.
    """
    privacy, beside, share = study.privacy, _paid(*before), study.refit.share
    compared = agreement(study.data.target, recipe.shared.get("class_weights"))
    request = PriceRequest(
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        searched=partial(_searched, study, recipe, beside),
        last=(last or recipe).guarantee,
        trials=lambda: [each.recipe.guarantee for each in candidates],
        choice=partial(the_choice, compared, adjacency=privacy.adjacency, rows=privacy.per_person),
        repetitions=law,
        beside=beside,
        scored=lambda paid: _parts(study, law, paid, None, privacy.epsilon or 0.0, beside),
    )
    found, second = study.search.kind.of(None if share == "auto" else share).priced(request), None
    assert found.noise is not None
    if found.repetitions != law:
        raise StudyError(f"repetitions: must be {found.repetitions.describe()} with this search.design")
    if found.final_noise is not None:
        second = SecondStage(last or recipe, found.final_noise, recipe, found.noise)
    search = SearchPrice(found.parts, found.repetitions, _paid(*before, second))
    epsilon = search.epsilon(privacy.delta)
    if privacy.epsilon is not None and epsilon > privacy.epsilon:
        raise BudgetError(
            f"the search costs epsilon {rounded_up(epsilon)} at delta {privacy.delta:g}, above the total "
            f"{privacy.epsilon:g}: raise epsilon or lower validation.score_epsilon"
        )
    return Price(
        noise=found.noise,
        score_epsilon=found.score_epsilon,
        parts=found.parts,
        search=search.guarantee,
        epsilon=epsilon,
        delta=privacy.delta,
        purchase=before[0],
        portfolio=found.portfolio,
        second=second,
        cells=before[1],
        score_multiplier=found.score_multiplier,
    )


def _paid(*ones: Purchase | CellPrice | SecondStage | None) -> Guarantee | None:
    """What every row pays for these altogether; None where there is none."""
    paid = [one.guarantee for one in ones if one is not None]
    return compose(*paid) if paid else None


def _fingerprint(settled: Settled) -> dict[str, str]:
    """What must not change before a resume, key by key: not the study's place, how it is executed, words for people.

    The order of the columns is part of it, because weights belong to columns by it, and so is the way to split the
    rows; `tune` adds the order of the space.
    """
    data, privacy = {"like"}, set()
    if not settled.study.data.count_cells:  # as before there were such keys
        data |= {"count_cells", "most_unreadable"}
    if settled.study.person is None:
        data, privacy = data | {"person"}, {"rows_per_person"}
    left_out: dict[str, Any] = {"output": True, "runs": _WHERE, "card": True, "data": data, "privacy": privacy}
    code = {f"the code of {name!r}": code_digest(name) for name in settled.modules}
    document = settled.study.model_dump(mode="json", exclude=left_out)
    parts = {"the columns or their order": list(settled.columns), "the parts of the rows": SPLIT, **code}
    for name, table in document.items():
        parts |= {f"{name}.{key}": table[key] for key in table} if isinstance(table, dict) else {name: table}
    return {name: json.dumps(value, sort_keys=True) for name, value in parts.items()}
