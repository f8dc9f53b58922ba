"""Optuna's define-by-run spaces in the private tuner: refused samplers, price, winners, resumed and dry runs."""
# ruff: noqa: E402

import functools
import importlib.util

import pytest

optuna = pytest.importorskip("optuna")

from dpselect.errors import ArgumentError, BudgetError
from dpselect.integrations.optuna import rehearse, tune
from dpselect.integrations.optuna.trial import TrialRefusal
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Harmonic
from dpselect.tuning import InlineExecutor, ProcessExecutor, SearchStore
from tests.grouped import grouped
from tests.integrations.optuna.wrapper_cases import Reports, objective
from tests.root import ROOT

BASE = pure_dp(epsilon=1.0)
EXAMPLE = ROOT / "examples" / "optuna_space.py"


def test_a_search_whose_objective_narrows_a_range_finds_something():
    def objective(trial):
        high = trial.suggest_float("high", 0.5, 1.0)
        trial.suggest_float("x", 0.0, 1.0)
        return trial.suggest_float("x", 0.0, high)

    result = tune(
        objective, direction="maximize", base=pure_dp(epsilon=1.0), repetitions=Fixed(count=3), random=keyed_source(1)
    )
    assert 0.0 <= result.params["x"] <= 1.0


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
