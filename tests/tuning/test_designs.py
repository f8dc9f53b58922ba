"""Designs of `tune`: two stages and portfolios of a caller's own runs cost, draw, resume and fail as they say."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from dpselect.accounting import best_of
from dpselect.accounting.planning.portfolio import CHOICE
from dpselect.errors import AdjacencyError, ArgumentError, BudgetError, NothingFoundWarning, PromiseError, StudyError
from dpselect.ledger import Ledger
from dpselect.privacy import Adjacency, Guarantee, compose, gaussian, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Harmonic
from dpselect.tuning import (
    AdaptiveProposal,
    Categorical,
    Execution,
    GaussianProcessProposer,
    Limits,
    PortfolioDesign,
    SearchStore,
    SharedRelease,
    TwoStageDesign,
    Uniform,
    count,
    tune,
)
from dpselect.tuning.trial import encode_value

pytestmark = pytest.mark.usefixtures("state")

TOTAL = {"epsilon": 3.0, "delta": 1e-6}
SPACE = {"x": Categorical([1, 2])}
PURE = {"epsilon": 2.0, "delta": 0.0}


def normal(noise):
    return gaussian(noise_multiplier=noise)


def pure(noise):
    return pure_dp(epsilon=1.0 / noise)


def pure_of(adjacency, noise):
    return pure_dp(epsilon=1.0 / noise, adjacency=adjacency)


class Runs:
    """An objective that writes down the noises it is told; its values are drawn."""

    def __init__(self):
        self.noises = []

    def __call__(self, params, random, noise):
        self.noises.append(noise)
        return float(params["x"]), float(random.uniform(1)[0])


def never(*_):
    pytest.fail("was run")


two_stages = partial(tune, space=SPACE, base=normal, design="two-stage", **TOTAL)
PORTFOLIO = PortfolioDesign(score=float)
ONE = {"repetitions": Fixed(count=1)}
"""A law with which prices take no time."""
REPLACED = Adjacency.REPLACE_ONE
portfolio = partial(tune, space=SPACE, base=pure, design=PORTFOLIO, **PURE)


# The price


@pytest.mark.full
def test_two_stages_cost_the_composition_of_a_search_and_a_run_with_a_noise_of_its_own():
    runs, law = Runs(), Harmonic(limit=3)
    result = two_stages(runs, repetitions=law, random=keyed_source(1))
    *search, last = runs.noises
    assert len(set(search)) == 1
    assert last < 0.6 * search[0]
    first = best_of(normal(search[0]), law)
    assert result.guarantee.terms == compose(first, normal(last)).terms
    assert 0.99 * 0.9 <= first.epsilon(1e-6) <= 0.9
    assert 0.999 * 3.0 <= result.guarantee.epsilon(1e-6) <= 3.0
    assert result.guarantee.epsilon(1e-6) == pytest.approx(compose(first, normal(last)).epsilon(1e-6), rel=1e-4)
    assert result.score is None


@pytest.mark.full
@pytest.mark.theorem("docs/theory/portfolio.md, Theorem 2", exact=False, loose="the settings are paid for in full")
def test_of_pure_mechanisms_the_prices_add_up():
    """And each part of the rows pays for its own runs: here the scores, which the noise does not change."""
    noises = []

    def run(params, random, noise):
        noises.append(noise)
        return 0.0, params["x"]

    result = tune(
        run,
        space=SPACE,
        base=lambda noise: [pure(noise), pure_dp(epsilon=0.2)],
        design=TwoStageDesign(last=run, price=pure, share=0.5),
        repetitions=Harmonic(limit=2),
        random=keyed_source(1),
        **PURE,
    )
    first = max(best_of(part, Harmonic(limit=2)).pure_epsilon for part in (pure(noises[0]), pure_dp(epsilon=0.2)))
    assert first <= 1.0
    assert result.guarantee.pure_epsilon == pytest.approx(first + 1.0 / noises[-1], rel=1e-9)
    assert 0.999 * 2.0 <= result.guarantee.pure_epsilon <= 2.0


@pytest.mark.full
@pytest.mark.theorem("docs/theory/portfolio.md, Theorem 1", exact=False, loose="the trials are paid for in full")
def test_a_portfolio_costs_the_composition_of_trials_choice_and_last_run():
    runs = Runs()
    result = tune(runs, space=SPACE, base=pure, design=PortfolioDesign(score=lambda _: 0.0), **PURE)
    assert runs.noises[1] == pytest.approx(8 * runs.noises[0], rel=1e-3)
    assert runs.noises[0] > runs.noises[2]
    whole = sum(1.0 / noise for noise in runs.noises) + 2.0 / CHOICE
    assert result.guarantee.pure_epsilon == pytest.approx(whole, rel=1e-9)
    assert 0.999 * 2.0 <= whole <= 2.0


def test_the_last_run_costs_what_the_dearest_part_of_base_does():
    runs = Runs()
    result = two_stages(runs, base=lambda noise: [normal(3 * noise), normal(noise), normal(2 * noise)], **ONE)
    first, last = runs.noises
    whole = math.hypot(1.0 / first, 1.0 / last)
    assert result.guarantee.epsilon(1e-6) == pytest.approx(normal(1.0 / whole).epsilon(1e-6), rel=1e-6)
    assert 0.999 * 3.0 <= result.guarantee.epsilon(1e-6) <= 3.0


@pytest.mark.full
def test_only_where_rows_are_added_or_removed_do_scores_that_never_fall_halve_the_noise():
    for adjacency, halved in ((Adjacency.ADD_OR_REMOVE_ONE, True), (REPLACED, False)):
        base, design = partial(pure_of, adjacency), PortfolioDesign(score=float, monotonic=True, sensitivity=2)
        guarantee = portfolio(Runs(), base=base, design=design).guarantee
        choice = guarantee.terms["composition"][-1]
        assert (choice["monotonic"], choice["sensitivity"]) == (halved, 2.0)
        assert guarantee.adjacency is adjacency


def test_settings_that_cost_nothing_are_compared_for_a_tenth_of_epsilon():
    found = portfolio(Runs(), base=lambda noise: pure_dp(epsilon=0.0))
    assert found.guarantee.epsilon(0.0) == pytest.approx(0.2)


# What the runs draw and keep


@pytest.mark.full
def test_what_a_run_does_to_the_value_of_another_is_not_seen():
    shared, scored = [], []

    def run(params, random, noise):
        shared.append(params["x"])
        return shared

    found = portfolio(run, design=PortfolioDesign(score=lambda value: scored.append(list(value)) or 0.0))
    assert scored == [[1], [1, 2]]
    assert found.value == [1, 2, found.params["x"]]
    assert found.value is not shared
    last = TwoStageDesign(last=run)
    assert two_stages(Runs(), design=last, **ONE).value is not shared


@pytest.mark.parametrize("sensitivity", [Fraction(1, 3), 0.1, 1.0, 7, 2.0**-299, 2.0**299])
def test_a_sensitivity_is_rounded_up_by_little(sensitivity):
    choice = portfolio(Runs(), design=PortfolioDesign(score=float, sensitivity=sensitivity)).guarantee.terms
    found = Fraction(choice["composition"][-1]["sensitivity"])
    assert Fraction(sensitivity) <= found <= Fraction(sensitivity) * (1 + Fraction(1, 2**11))
    assert found == sensitivity or sensitivity in (Fraction(1, 3), 0.1)


def test_the_last_run_draws_of_a_key_of_its_own():
    drawn = []

    def run(params, random, noise):
        drawn.append(float(random.uniform(1)[0]))
        return 0.0, drawn[-1]

    result = two_stages(run, random=keyed_source(1), **ONE)
    assert result.value == drawn[-1]
    assert len(set(drawn)) == len(drawn) == 2
    assert two_stages(run, random=keyed_source(1), **ONE).value == result.value
    assert two_stages(run, random=keyed_source(2), **ONE).value != result.value


def test_what_the_search_has_drawn_says_nothing_of_the_key_of_the_last_run():
    drawn = []

    def run(params, random, noise):
        drawn.append(random.bytes(32))
        return 0.0, None

    design = TwoStageDesign(last=lambda params, random, noise: random.bytes(32))
    result = two_stages(run, design=design, random=keyed_source(1), **ONE)
    known = [keyed_source(key) for key in (drawn[0], bytes(32))]
    assert result.value not in {drawn[0], *(source.bytes(32) for source in known)}


# What fails


def test_a_trial_that_fails_is_not_chosen_and_a_score_that_fails_is_nothing(capsys):
    def run(params, random, noise):
        if params["x"] == 1:
            print("seven")
            raise ValueError("seven")
        return [params["x"]]

    found = portfolio(run, design=PortfolioDesign(score=lambda value: value.append(7) or 1 / 0))
    assert found.value == [2]  # and the model is not the one that was scored
    assert found.params == {"x": 2}
    assert portfolio(run, design=PortfolioDesign(score=lambda _: math.nan)).params == {"x": 2}
    assert "seven" not in "".join(capsys.readouterr())


def test_a_last_run_that_fails_looks_like_nothing_found(capsys):
    def failing(params, random, noise):
        print("seven")
        raise ValueError("seven")

    told = []
    for run, options in ((Runs(), {"design": TwoStageDesign(last=failing), **ONE}), (failing, {"design": PORTFOLIO})):
        with pytest.warns(NothingFoundWarning) as warned:
            result = two_stages(run, release=told.append, **options)
        assert (result.value, result.params) == (None, None)
        assert "seven" not in str(warned[0].message)
        assert (told[-1].value, told[-1].params) == (None, None)
    assert "seven" not in "".join(capsys.readouterr())


def test_each_run_of_a_portfolio_has_the_limit_of_a_count_for_itself():
    """Else what the others have counted, which is not paid for, would decide whether it fails."""

    def run(steps, params, random, noise):
        count("steps", steps)
        return 0.0

    limited = partial(portfolio, execution=Execution(limits=Limits(counts={"steps": 10})))
    assert limited(partial(run, 10)).value == 0.0
    with pytest.warns(NothingFoundWarning):
        assert limited(partial(run, 11)).value is None


def test_what_a_design_keeps_beside_a_value_takes_no_room_from_it():
    room = SearchStore(payload_bytes=len(encode_value(0.5)))
    assert isinstance(two_stages(Runs(), store=SearchStore(payload_bytes=1), rehearse=False, **ONE).value, float)
    assert portfolio(lambda params, random, noise: 0.5, store=room).value == 0.5


# Kills


def test_a_search_is_not_resumed_at_another_total_though_its_guarantees_have_no_name(tmp_path):
    def kill(result):
        raise KeyboardInterrupt

    def unnamed(noise):
        return Guarantee(adjacency=REPLACED, theorem="by hand", pure_epsilon=1.0 / noise)

    search = partial(tune, Runs(), space=SPACE, base=unnamed, design="two-stage", delta=0.0, release=kill, **ONE)
    with pytest.raises(KeyboardInterrupt):
        search(epsilon=1.0, store=tmp_path / "search")
    again = SearchStore(path=tmp_path / "search", resume=True)
    for changed in ({"epsilon": 2.0}, {"design": TwoStageDesign(last=never)}, {"design": TwoStageDesign(share=0.6)}):
        with pytest.raises(StudyError, match="has changed"):
            search(**{"epsilon": 1.0, "store": again, **changed})
    with pytest.raises(KeyboardInterrupt):
        search(epsilon=1.0, store=again)


def test_a_portfolio_is_not_resumed_with_other_settings_which_cost_the_same(tmp_path):
    def kill(result):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        portfolio(Runs(), store=tmp_path / "search", release=kill)
    with pytest.raises(StudyError, match="has changed"):
        portfolio(never, space={"x": Categorical([2, 1])}, store=SearchStore(path=tmp_path / "search", resume=True))


@pytest.mark.full
@pytest.mark.parametrize("killed", [0, 1])
def test_a_search_that_is_killed_goes_on_and_draws_and_charges_once(tmp_path, killed):
    alive, written = [False], []

    def last(params, random, noise):
        if not alive[0] and killed == 0:
            raise KeyboardInterrupt
        return float(random.uniform(1)[0])

    def write(result):
        if not alive[0] and killed == 1:
            raise KeyboardInterrupt
        written.append(result)

    with Ledger.open(tmp_path / "ledger.db") as ledger:
        budget = ledger.create_budget("b", epsilon=4, delta=1e-6)

        def search(*, resume):
            store = SearchStore(path=tmp_path / "search", resume=resume)
            options = {
                "store": store,
                "ledger": budget.at(delta=1e-6),
                "release": write,
                "random": keyed_source(2),
                **ONE,
            }
            return two_stages(Runs(), design=TwoStageDesign(last=last), **options)

        with pytest.raises(KeyboardInterrupt):
            search(resume=False)
        alive[0] = True
        result = search(resume=True)
        assert result.value == written[0].value
        assert result.value == two_stages(Runs(), design=TwoStageDesign(last=last), random=keyed_source(2), **ONE).value
        assert float(budget.spent().epsilon) == pytest.approx(result.guarantee.epsilon(1e-6), rel=1e-9)


# What is refused, before anything is drawn or charged


LEARNING = AdaptiveProposal(GaussianProcessProposer(), lower_ratio=0.5, upper_ratio=2.0)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"design": "grid"}, "design must be"),
        ({"design": np.zeros(2)}, "design must be"),
        ({"epsilon": None, "delta": None}, "epsilon and delta must be given"),
        ({"proposal": LEARNING}, "proposal does not go with this design"),
        ({"declare_score": True}, "declare_score does not go with"),
        ({"execution": Execution(pad_seconds=1)}, "pad_seconds does not go with"),
        ({"design": PORTFOLIO, "repetitions": Harmonic(limit=2)}, "repetitions does not go with"),
        ({"design": PORTFOLIO, "space": {"x": Uniform(0, 1)}}, "the space must list them"),
        ({"design": PORTFOLIO, "space": {"x": Categorical([1])}}, "2 to 4 settings"),
        ({"design": PORTFOLIO, "space": {"x": Categorical([1, 1])}}, "two settings that are the same"),
        ({"design": PORTFOLIO, "base": lambda noise: [normal(noise)] * 2}, "base must return one Guarantee"),
        ({"base": lambda noise: []}, "what base returns must be a Guarantee, or one for each part"),
        ({"design": PORTFOLIO, "base": lambda noise: []}, "what base returns must be a Guarantee, or one for each"),
    ],
)
def test_what_does_not_go_together_is_refused(changed, said):
    with pytest.raises(ArgumentError, match=said):
        two_stages(never, ledger=None, **changed)


def test_functions_of_another_kind_are_refused():
    with pytest.raises(PromiseError, match="base must be a function from the noise"):
        two_stages(never, base=normal(1.0))
    with pytest.raises(PromiseError, match="what base returns must be a Guarantee"):
        two_stages(never, base=lambda noise: noise)
    with pytest.raises(ArgumentError, match=r"objective cannot be called as objective\(params, random, noise\)"):
        two_stages(lambda params, random: (0.0, None), **ONE)
    with pytest.raises(ArgumentError, match="misspelt"):
        two_stages(Runs(), design=TwoStageDesign(last=lambda params, random, noise: misspelt), **ONE)  # noqa: F821
    with pytest.raises(ArgumentError, match="a SharedRelease goes with a search in one stage"):
        two_stages(SharedRelease(never, pure_dp(epsilon=1.0)))
    with pytest.raises(TypeError, match="last must be callable"):
        TwoStageDesign(last=3)
    with pytest.raises(TypeError, match="score must be callable"):
        PortfolioDesign(score=None)
    with pytest.raises(TypeError, match="weights must be callable"):
        PortfolioDesign(score=float, weights=17)
    with pytest.raises(ArgumentError, match="nominal_rows goes with weights"):
        PortfolioDesign(score=float, nominal_rows=100)
    with pytest.raises(ArgumentError, match="nominal_rows must be"):
        PortfolioDesign(score=float, weights=float, nominal_rows=-1)
    with pytest.raises(ArgumentError, match=r"weights cannot be called as weights\(value\)"):
        portfolio(Runs(), design=PortfolioDesign(score=float, weights=lambda: 3))
    replaced = partial(pure_of, REPLACED)
    with pytest.raises(AdjacencyError):
        two_stages(never, base=lambda noise: [pure(noise), replaced(noise)], **ONE)
    with pytest.raises(AdjacencyError):
        two_stages(never, design=TwoStageDesign(last=never, price=replaced), **ONE)
    with pytest.raises(ArgumentError, match="price is that of `last`"):
        TwoStageDesign(price=normal)
    with pytest.raises(PromiseError, match="base must be"):
        tune(never, space=SPACE, base=normal, repetitions=Harmonic(limit=2))


@dataclass(frozen=True)
class Elsewhere:
    """An executor in which nothing can run."""

    def session(self, job):
        raise StudyError("cannot run there")


def test_an_objective_that_the_executor_refuses_costs_nothing(tmp_path):
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        budget = ledger.create_budget("b", epsilon=4, delta=1e-6)
        for options in (ONE, {"design": PORTFOLIO}):
            with pytest.raises(StudyError, match="cannot run there"):
                two_stages(never, **options, ledger=budget.at(delta=1e-6), executor=Elsewhere())
        assert float(budget.spent().epsilon) == 0.0


def test_a_total_that_no_noise_meets_and_one_that_the_ledger_has_not_are_refused(tmp_path):
    with pytest.raises(BudgetError, match="the search"):
        two_stages(never, base=lambda noise: [normal(noise), pure_dp(epsilon=1.0)], **ONE)
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        budget = ledger.create_budget("b", epsilon=1, delta=1e-6)
        with pytest.raises(BudgetError, match="the smallest epsilon there is inf"):
            two_stages(never, design=PORTFOLIO, epsilon=1, delta=0, ledger=budget.at(delta=0))
        for options in (ONE, {"design": PORTFOLIO}):
            with pytest.raises(BudgetError):
                two_stages(never, **options, ledger=budget.at(delta=1e-6))
        assert float(budget.spent().epsilon) == 0.0
