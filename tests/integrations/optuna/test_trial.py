"""Trials that suggest as Optuna's do: the distributions of the draws, streams by name, refused parts."""
# ruff: noqa: E402

import functools
import math
import warnings

import numpy as np
import pytest
from scipy import stats

optuna = pytest.importorskip("optuna")

from dpselect.integrations.optuna import IndependentTrial
from dpselect.integrations.optuna.trial import TrialRefusal, check_objective, draw
from dpselect.randomness import keyed_source
from dpselect.tuning import IntegerUniform
from tests.integrations.optuna.wrapper_cases import Reports, objective

Float, Int = optuna.distributions.FloatDistribution, optuna.distributions.IntDistribution
Choice = optuna.distributions.CategoricalDistribution


# the laws of the draws


def optuna_draws(distribution, count, seed):
    sampler = optuna.samplers.RandomSampler(seed=seed)
    return [sampler.sample_independent(None, None, "x", distribution) for _ in range(count)]


@pytest.mark.statistical
@pytest.mark.parametrize("law", [Float(-2.0, 5.0), Float(1e-4, 1e2, log=True)], ids=str)
def test_continuous_draws_have_the_law_of_optunas_random_sampler(law):
    """Two-sample Kolmogorov-Smirnov, seeded. An equal law is rejected with probability 1e-4; a law at distance 0.08
    escapes with probability below 1e-4 (4,000 draws each)."""
    source = keyed_source("continuous")
    ours = [draw(law, source) for _ in range(4000)]
    assert all(law.low <= x <= law.high for x in ours)
    assert stats.ks_2samp(ours, optuna_draws(law, 4000, 1)).pvalue > 1e-4


DISCRETE = [
    (Float(0.5, 2.0, step=0.5), lambda x: 1 / 4),
    (Float(0.0, 1.0, step=0.3), lambda x: 1 / 4),  # the end is 0.9
    (Int(3, 11, step=4), lambda x: 1 / 3),
    (Int(-2, 2), lambda x: 1 / 5),
    (Int(1, 6, log=True), lambda x: math.log((x + 0.5) / (x - 0.5)) / math.log(6.5 / 0.5)),
    (Choice(("a", None, 3)), lambda x: 1 / 3),
]


def fits(draws, law, probability):
    values = sorted({repr(x): x for x in draws}.values(), key=repr)
    counts = [sum(repr(x) == repr(value) for x in draws) for value in values]
    expected = [len(draws) * probability(value) for value in values]
    return sum(expected) == pytest.approx(len(draws)) and stats.chisquare(counts, expected).pvalue > 1e-4


@pytest.mark.cases(1)
@pytest.mark.statistical
@pytest.mark.parametrize(("law", "probability"), DISCRETE, ids=[str(law) for law, _ in DISCRETE])
def test_discrete_draws_have_the_law_of_optunas_random_sampler(law, probability):
    """Chi-square against Optuna's rule in closed form, for us and (so that the rule is Optuna's) for Optuna. Seeded;
    a right law is rejected with probability 1e-4."""
    source = keyed_source("discrete")
    assert fits([draw(law, source) for _ in range(6000)], law, probability)
    assert fits(optuna_draws(law, 6000, 2), law, probability)


def test_the_test_of_laws_rejects_our_other_log_uniform_integers():
    """`IntegerUniform(log=True)` rounds down, Optuna to the nearest: P(1) is 0.36 against 0.43."""
    source = keyed_source("discrete")
    law, probability = DISCRETE[4]
    assert not fits([IntegerUniform(1, 6, log=True).sample(source) for _ in range(6000)], law, probability)


def test_a_parameter_does_not_depend_on_what_else_is_asked():
    one, other = IndependentTrial(keyed_source(5)), IndependentTrial(keyed_source(5))
    first = one.suggest_float("x", 0, 1), one.suggest_int("n", 1, 1000)
    other.random.bytes(100)
    other.suggest_categorical("more", [1, 2, 3])
    assert first == (other.suggest_int("n", 1, 1000), other.suggest_float("x", 0, 1))[::-1]
    assert isinstance(one, optuna.trial.BaseTrial)


def test_names_have_streams_of_their_own():
    trial = IndependentTrial(keyed_source(5))
    assert len({trial.suggest_float(name, 0, 1) for name in "abcdefgh"}) == 8


def test_one_name_has_one_distribution():
    trial = IndependentTrial(keyed_source(1))
    assert trial.suggest_uniform("x", 0, 1) == trial.suggest_float("x", 0, 1)
    assert trial.suggest_loguniform("y", 1, 2) == trial.params["y"]
    assert trial.suggest_discrete_uniform("z", 0, 1, 0.5) in (0.0, 0.5, 1.0)


AGAIN = {
    "another range": lambda trial: (trial.suggest_float("x", 0, 1), trial.suggest_float("x", 2, 3)),
    "another step": lambda trial: (trial.suggest_int("x", 1, 9), trial.suggest_int("x", 1, 9, step=2)),
    "the same": lambda trial: (trial.suggest_int("x", 1, 9), trial.suggest_int("x", 1, 9)),
    "another log": lambda trial: (trial.suggest_float("x", 1, 2), trial.suggest_float("x", 1, 2, log=True)),
    "another kind": lambda trial: (trial.suggest_float("x", 1, 2), trial.suggest_int("x", 1, 2)),
    "other choices": lambda trial: (trial.suggest_categorical("x", "ab"), trial.suggest_categorical("x", "abc")),
}


@pytest.mark.parametrize("what", AGAIN)
def test_a_name_that_is_asked_for_again_gets_what_optuna_gives(what):
    def asked(trial):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                first, second = AGAIN[what](trial)
            except ValueError:
                return "refused", []
        return first == second, [warning.category for warning in told]

    optunas = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1)).ask()
    assert asked(IndependentTrial(keyed_source(1))) == asked(optunas)


def test_huge_integers_are_exact():
    drawn = [IndependentTrial(keyed_source(k)).suggest_int("n", 2**60, 2**60 + 2) for k in range(40)]
    assert set(drawn) == {2**60, 2**60 + 1, 2**60 + 2}


@pytest.mark.parametrize("arguments", [{"low": 2, "high": 1}, {"low": 0, "high": 1, "log": True}])
def test_wrong_ranges_are_optunas_errors(arguments):
    with pytest.raises(ValueError):
        IndependentTrial(keyed_source(1)).suggest_float("x", **arguments)


# what is refused


METHODS = {"report": (1.0, 0), "should_prune": (), "set_user_attr": ("k", 1), "set_constraint": ("k", 1.0)}
PROPERTIES = ["number", "user_attrs", "constraints", "datetime_start", "study", "storage", "system_attrs"]


@pytest.mark.parametrize("name", [*METHODS, *PROPERTIES, "set_system_attr", "relative_params"])
def test_what_a_private_search_cannot_have_is_refused_with_a_reason(name):
    trial = IndependentTrial(keyed_source(1))
    with pytest.raises(TrialRefusal, match=rf"trial\.{name} does not exist in a private search: \w+"):
        getattr(trial, name)(*METHODS.get(name, (1, 2)))


@functools.wraps(objective)
def wrapped(*arguments):
    return objective(*arguments)


@pytest.mark.parametrize("good", [objective, wrapped, lambda trial: float(np.zeros(3).size), print, Reports])
def test_other_attributes_are_nobodys_business(good):
    check_objective(good)


def test_an_objective_that_is_no_function():
    with pytest.raises(TypeError, match="function of a trial"):
        check_objective(3)
