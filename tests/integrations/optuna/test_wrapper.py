"""Optuna's define-by-run spaces in the private tuner: the laws of the draws, what is refused, and what is released."""

# ruff: noqa: E402

import functools
import importlib.util
import math
import warnings

import numpy as np
import pytest
from scipy import stats

from dpselect.tuning import SearchStore
from tests.grouped import grouped
from tests.root import ROOT

optuna = pytest.importorskip("optuna")

from dpselect.errors import ArgumentError, BudgetError
from dpselect.integrations.optuna import IndependentTrial, rehearse, tune
from dpselect.integrations.optuna.trial import TrialRefusal, check_objective, draw
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Harmonic
from dpselect.tuning import InlineExecutor, IntegerUniform, ProcessExecutor

Float, Int = optuna.distributions.FloatDistribution, optuna.distributions.IntDistribution
Choice = optuna.distributions.CategoricalDistribution
BASE = pure_dp(epsilon=1.0)
EXAMPLE = ROOT / "examples" / "optuna_space.py"


def objective(trial):
    """Conditional, and its value tells the parameters that it saw."""
    kind = trial.suggest_categorical("kind", ["linear", "deep"])
    rate = trial.suggest_float("rate", 1e-3, 1.0, log=True)
    layers = trial.suggest_int("layers", 1, 4) if kind == "deep" else None
    return rate + float(trial.random.laplace(1)[0]), (kind, rate, layers)


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


def test_a_search_whose_objective_narrows_a_range_finds_something():
    def objective(trial):
        high = trial.suggest_float("high", 0.5, 1.0)
        trial.suggest_float("x", 0.0, 1.0)
        return trial.suggest_float("x", 0.0, high)

    result = tune(
        objective, direction="maximize", base=pure_dp(epsilon=1.0), repetitions=Fixed(count=3), random=keyed_source(1)
    )
    assert 0.0 <= result.params["x"] <= 1.0


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


class Reports:
    def __call__(self, trial):
        trial.report(1.0, 0)

    def bound(self, trial):
        return trial.number

    @staticmethod
    def inner(trial):
        return sum(trial.number for _ in range(3))


@functools.wraps(objective)
def wrapped(*arguments):
    return objective(*arguments)


@pytest.mark.parametrize(
    "bad",
    [
        lambda trial: float(trial.number),
        lambda trial: 1.0 if trial.should_prune() else 0.0,
        Reports(),
        Reports().bound,
        Reports.inner,
        functools.partial(lambda trial, scale: trial.report(scale, 1), scale=2.0),
    ],
)
def test_a_refused_use_is_found_before_anything_is_drawn_or_charged(bad):
    class Ledger:
        def reserve(self, *arguments, **named):
            raise AssertionError("charged")

    with pytest.raises(TrialRefusal, match="private search"):
        tune(bad, direction="maximize", base=BASE, repetitions=Fixed(count=1), ledger=Ledger())


@pytest.mark.parametrize("good", [objective, wrapped, lambda trial: float(np.zeros(3).size), print, Reports])
def test_other_attributes_are_nobodys_business(good):
    check_objective(good)


def test_an_objective_that_is_no_function():
    with pytest.raises(TypeError, match="function of a trial"):
        check_objective(3)


@pytest.mark.parametrize(
    "options",
    [
        {"sampler": optuna.samplers.TPESampler()},
        {"sampler": optuna.samplers.BruteForceSampler()},
        {"sampler": optuna.samplers.GridSampler({"x": [1, 2]})},
        {"sampler": optuna.samplers.PartialFixedSampler({"x": 1}, optuna.samplers.RandomSampler())},
        {"pruner": optuna.pruners.MedianPruner()},
        {"space": {}},
        {"proposal": None},
        {"direction": "up"},
    ],
)
def test_adaptive_samplers_pruners_and_fixed_spaces_are_refused(options):
    with pytest.raises(ArgumentError, match=next(iter(options))):
        tune(objective, base=BASE, repetitions=Fixed(count=1), **{"direction": "maximize", **options})


def test_a_random_sampler_and_no_pruner_are_what_happens_anyway():
    result = tune(
        objective,
        direction="maximize",
        base=BASE,
        repetitions=Fixed(count=1),
        sampler=optuna.samplers.RandomSampler(),
        pruner=optuna.pruners.NopPruner(),
    )
    assert result.params


# what is released


def search(key=3, **options):
    settings = {"direction": "maximize", "base": BASE, "repetitions": Fixed(count=6), "random": keyed_source(key)}
    return tune(objective, **{**settings, **options})


def test_the_winners_parameters_are_those_that_its_run_saw():
    kinds = set()
    for key in range(12):
        result = search(key)
        kind, rate, layers = result.value
        kinds.add(kind)
        assert result.params == {"kind": kind, "rate": rate} | ({"layers": layers} if kind == "deep" else {})
    assert kinds == {"linear", "deep"}


@pytest.mark.parametrize(("direction", "best"), [("maximize", max), ("minimize", min)])
def test_the_direction_says_which_run_wins(direction, best):
    seen = []

    def noted(trial):
        seen.append(trial.suggest_float("x", 0, 1))
        return seen[-1]

    released = []
    result = tune(
        noted,
        direction=direction,
        base=BASE,
        repetitions=Fixed(count=7),
        declare_score=True,
        release=released.append,
    )
    assert len(seen) == 7
    assert result.score == best(seen)
    assert result.params == {"x": best(seen)}
    assert result.value is None
    assert released[0].params == result.params
    assert released[0].score == result.score


def test_the_price_is_that_of_the_tuner():
    assert search().guarantee.epsilon(0.0) == pytest.approx(6.0)
    with pytest.raises(BudgetError):
        search(epsilon=0.5, delta=0.0)


def test_an_interrupted_search_goes_on_to_the_same_release(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    whole = search(store=tmp_path / "whole.db")
    calls = []

    def interrupted(trial):
        calls.append(None)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return objective(trial)

    options = {"direction": "maximize", "base": BASE, "repetitions": Fixed(count=6), "store": tmp_path / "cut.db"}
    with pytest.raises(KeyboardInterrupt):
        tune(interrupted, random=keyed_source(3), **options)
    resumed = tune(interrupted, **grouped(resume=True, **options))
    assert len(calls) == 7
    assert (resumed.value, resumed.params) == (whole.value, whole.params)


def test_a_run_that_raises_ranks_below_all_others_and_is_silent(capfd):
    def pruned_unless_small(trial):
        if trial.suggest_float("x", 0, 1) > 0.5:
            raise optuna.TrialPruned
        return 1.0

    result = tune(pruned_unless_small, direction="minimize", base=BASE, repetitions=Fixed(count=20))
    assert result.params["x"] <= 0.5  # all twenty above: 1e-6
    nothing = tune(lambda trial: 1 / 0, direction="minimize", base=BASE, repetitions=Fixed(count=2))
    assert (nothing.value, nothing.params, nothing.score) == (None, None, None)
    assert capfd.readouterr() == ("", "")


def test_no_study_no_storage_and_no_log(monkeypatch, capfd):
    def forbidden(*arguments, **named):
        raise AssertionError("a study or a storage was made")

    monkeypatch.setattr(optuna, "create_study", forbidden)
    monkeypatch.setattr(optuna.storages.InMemoryStorage, "__init__", forbidden)
    monkeypatch.setattr(optuna.study.Study, "__init__", forbidden)

    def chatty(trial):
        optuna.logging.get_logger("optuna.study").error("a line for each run")
        return objective(trial)

    optuna.logging.enable_default_handler()
    before = optuna.logging.get_verbosity()
    options = {"direction": "maximize", "base": BASE, "repetitions": Fixed(count=3)}
    assert tune(chatty, executor=InlineExecutor(quiet=False), **options).value is not None
    assert capfd.readouterr() == ("", "")
    assert optuna.logging.get_verbosity() == before


@pytest.mark.full
def test_the_same_release_from_worker_processes():
    assert search(executor=ProcessExecutor(workers=1), repetitions=Fixed(count=3)).value == (
        search(repetitions=Fixed(count=3)).value
    )


def test_the_example_value_must_leave_room():
    with pytest.raises(ArgumentError, match="example"):
        search(store=SearchStore(example="x" * 100, payload_bytes=50))


def test_a_rehearsal_shows_errors():
    params, score, value = rehearse(objective, random=keyed_source(1))
    assert params["rate"] == value[1]
    assert isinstance(score, float)

    def hidden(trial):
        return helper(trial)

    def helper(trial):
        return trial.number

    with pytest.raises(TrialRefusal, match="secret"):
        rehearse(hidden)
    nothing = tune(hidden, direction="maximize", base=BASE, repetitions=Harmonic(limit=2))
    assert nothing.params is None
    with pytest.raises(TypeError, match="score"):
        rehearse(lambda trial: "high")


def test_the_example(capsys):
    spec = importlib.util.spec_from_file_location("optuna_space", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.TRAINING["steps"] = 20
    kinds = set()
    for key in range(3):
        result = example.main(keyed_source(key), law=Fixed(count=1))
        params = dict(result.params)
        kinds.add(params["kind"])
        assert result.value.learning_rate == params["learning_rate"]
        assert result.value.hidden_units == params.get("hidden_units", 0)
        printed = capsys.readouterr().out
        assert f"the whole search: epsilon {result.guarantee.epsilon(example.DELTA):.3f} at delta 1e-05" in printed
    assert kinds == {"linear", "network"}
