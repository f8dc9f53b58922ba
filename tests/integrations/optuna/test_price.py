"""Which price a past Optuna search can honestly have, and what is missing for a lower one."""

import json
from dataclasses import replace

import pytest

from dpselect.accounting import best_of
from dpselect.errors import ArgumentError
from dpselect.integrations.optuna.price import BEST_OF_FIXED, COMPOSITION, price_study
from dpselect.integrations.optuna.study import DRAWN, MARK, PastStudy, PastTrial
from dpselect.privacy import compose, gaussian
from dpselect.repetitions import Fixed
from tests.integrations.optuna.past_studies import BASE, DECLARED, base

LAW = json.dumps({"name": "FloatDistribution", "attributes": {"low": 1.0, "high": 8.0, "log": False, "step": None}})


def independent(number, **changes):
    """A trial as `IndependentSampler` leaves it."""
    settings = {
        "number": number,
        "state": "COMPLETE",
        "parameters": {"x": 2.0 + number},
        "distributions": {"x": LAW},
        "system_attributes": {MARK: ["s", number], DRAWN + "x": 1},
    }
    return PastTrial(**{**settings, **changes})


def study(*trials, **changes):
    return PastStudy(
        **{"name": "s", "directions": 1, "trials": trials or tuple(map(independent, range(10))), **changes}
    )


def assert_costs(priced, guarantee):
    assert priced.guarantee.epsilon(1e-6) == pytest.approx(guarantee.epsilon(1e-6), rel=1e-9)


# prices


def test_by_default_everything_that_began_is_composed():
    """Ten Gaussians of noise 4 are one of noise 4 / sqrt(10)."""
    priced = price_study(study(), base=base)
    assert priced.rule == COMPOSITION
    assert_costs(priced, gaussian(noise_multiplier=4 / 10**0.5))
    assert priced.guarantee.epsilon_bracket(1e-6)[0] == 0.0  # only part of it may have been seen
    assert len(priced.missing) == 2
    assert priced.rests_on[0].startswith("must hold: the number of runs was fixed in advance")


def test_an_independent_study_with_both_declarations_is_the_best_of_a_fixed_number():
    priced = price_study(study(), base=base, **DECLARED)
    assert priced.rule == BEST_OF_FIXED
    assert priced.missing == ()
    assert priced.guarantee.epsilon(1e-6) == best_of(BASE, Fixed(count=10)).epsilon(1e-6)
    assert priced.guarantee.epsilon(1e-6) < price_study(study(), base=base).guarantee.epsilon(1e-6)


OTHER = LAW.replace("8.0", "4.0")
BROKEN = {
    "pruned": ([independent(1, state="PRUNED")], "not every run is complete"),
    "failed": ([independent(1, state="FAIL")], "not every run is complete"),
    "running": ([independent(1, state="RUNNING")], "not every run is complete"),
    "waiting": ([independent(1, state="WAITING", system_attributes={})], "not every run is complete"),
    "no mark": ([independent(1, system_attributes={DRAWN + "x": 1})], "does not show independent sampling"),
    "other mark": ([independent(1, system_attributes={MARK: 2, DRAWN + "x": 1})], "does not show independent"),
    "not drawn": ([independent(1, system_attributes={MARK: ["s", 1]})], "not drawn by the independent sampler"),
    "copied": ([independent(1, system_attributes={MARK: ["t", 1], DRAWN + "x": 1})], "copied from another study"),
    "picked": ([independent(1, system_attributes={MARK: ["s", 7], DRAWN + "x": 1})], "copied from another study"),
    "enqueued": (
        [independent(1, system_attributes={MARK: ["s", 1], DRAWN + "x": 1, "fixed_params": {"y": 1}})],
        "enqueued",
    ),
    "retry": (
        [independent(1, system_attributes={MARK: ["s", 1], DRAWN + "x": 1, "failed_trial": 0, "retry_history": [0]})],
        "tried again",
    ),
    "narrowed": ([independent(1, distributions={"x": OTHER})], "search space"),
    "conditional": ([independent(1, distributions={}, parameters={})], "search space"),
}


@pytest.mark.parametrize(("more", "condition"), BROKEN.values(), ids=BROKEN)
def test_each_missing_condition_is_named_and_alone_decides(more, condition):
    priced = price_study(study(independent(0), *more), base=base, **DECLARED)
    assert len(priced.missing) == 1
    assert condition in priced.missing[0]
    assert priced.rule == COMPOSITION


@pytest.mark.parametrize(("flag", "option"), [("fixed_beforehand", "--fixed-b"), ("only_winner_seen", "--only-w")])
def test_each_declaration_is_needed(flag, option):
    priced = price_study(study(), base=base, **{**DECLARED, flag: False})
    assert len(priced.missing) == 1
    assert option in priced.missing[0]


def test_several_objectives_and_fewer_runs_than_planned():
    assert "several objectives" in price_study(study(directions=2), base=base, **DECLARED).missing[0]
    priced = price_study(study(), base=base, planned=40, **DECLARED)
    assert priced.missing == ("40 runs were planned and 10 began",)
    assert_costs(priced, gaussian(noise_multiplier=4 / 40**0.5))
    with pytest.raises(ArgumentError, match="10 runs began"):
        price_study(study(), base=base, planned=9)


def test_runs_that_never_began_cost_nothing_and_a_study_without_runs_has_no_price():
    waiting = independent(10, state="WAITING")
    more = study(*map(independent, range(10)), waiting)
    assert price_study(more, base=base).guarantee.epsilon(1e-6) == price_study(study(), base=base).guarantee.epsilon(
        1e-6
    )
    with pytest.raises(ArgumentError, match="no run that began"):
        price_study(study(replace(waiting, number=0)), base=base)


def test_other_and_deleted_studies_are_owed_for():
    rests_on = price_study(study(others=("b",), deleted=2), base=base).rests_on
    assert any("1 other studies" in line for line in rests_on)
    assert any("2 studies deleted" in line for line in rests_on)


# noise that differs between runs


def test_noise_drawn_independently_is_composed_as_drawn():
    priced = price_study(study(), base=base, noise_parameter="x", **DECLARED)
    assert_costs(priced, compose(*[gaussian(noise_multiplier=2.0 + k) for k in range(10)]))
    assert "different guarantees" in priced.missing[0]
    assert any(line.startswith("recorded: the noise") for line in priced.rests_on)


@pytest.mark.parametrize(
    "trials",
    [
        [independent(0, system_attributes={}), independent(1, system_attributes={})],
        [independent(0), independent(1, distributions={"x": LAW.replace("8.0", "9.0")})],
        [independent(0), independent(1, parameters={}, distributions={})],
    ],
    ids=["any sampler", "range moved", "one holds none"],
)
def test_noise_that_may_follow_the_scores_is_priced_at_the_least_possible(trials):
    """A sampler may go down to noise 1 after seeing good scores: the composition of 2 and 3 is no bound for that."""
    priced = price_study(study(*trials), base=base, noise_parameter="x")
    assert_costs(priced, gaussian(noise_multiplier=1 / 2**0.5))
    assert any("less noise than 1" in line for line in priced.rests_on)


def test_noise_from_attributes():
    trials = [independent(k, user_attributes={"sigma": 5.0 + k}) for k in range(2)]
    priced = price_study(study(*trials), base=base, noise_parameter="sigma")
    assert_costs(priced, gaussian(noise_multiplier=5 / 2**0.5))
    with pytest.raises(ArgumentError, match="planned"):
        price_study(study(), base=base, noise_parameter="x", planned=20)
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(ArgumentError, match="sigma"):
            price_study(study(independent(0, user_attributes={"sigma": wrong})), base=base, noise_parameter="sigma")
    with pytest.raises(ArgumentError, match="noise_parameter: no run holds"):
        price_study(study(), base=base, noise_parameter="sgima")
    with pytest.raises(TypeError, match="sigma"):
        price_study(study(independent(0, user_attributes={"sigma": "5"})), base=base, noise_parameter="sigma")


def test_equal_noise_that_could_have_been_less_is_not_taken_for_a_constant():
    """A sampler that follows the scores may have gone down to 1, and in all runs stayed at 5 this time."""
    same = [independent(k, parameters={"x": 5.0}, system_attributes={}) for k in range(3)]
    priced = price_study(study(*same), base=base, noise_parameter="x", planned=4)
    assert_costs(priced, gaussian(noise_multiplier=1 / 4**0.5))
    assert any("less noise than 1" in line for line in priced.rests_on)


def test_equal_noise_that_was_drawn_says_nothing_of_runs_that_were_not_made():
    same = study(*[independent(k, parameters={"x": 5.0}) for k in range(3)])
    priced = price_study(same, base=base, noise_parameter="x", **DECLARED)
    assert priced.rule == COMPOSITION
    assert "could have had, different guarantees" in priced.missing[0]
    with pytest.raises(ArgumentError, match="planned"):
        price_study(same, base=base, noise_parameter="x", planned=4)
    one_value = LAW.replace("1.0", "5.0").replace("8.0", "5.0")
    constant = [independent(k, parameters={"x": 5.0}, distributions={"x": one_value}) for k in range(3)]
    assert price_study(study(*constant), base=base, noise_parameter="x", **DECLARED).rule == BEST_OF_FIXED


def test_a_run_with_two_values_for_its_noise_is_refused():
    with pytest.raises(ArgumentError, match="run 0 holds two values"):
        price_study(study(independent(0, user_attributes={"x": 7.0})), base=base, noise_parameter="x")
    with pytest.raises(ArgumentError, match="run 0 wrote several"):
        price_study(study(independent(0, user_attributes={"s": 7.0}, rewritten={"s"})), base=base, noise_parameter="s")
