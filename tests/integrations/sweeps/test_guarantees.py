"""The guarantee of each run: what is taken for it, and what is refused."""

import math

import pytest

from dpselect.errors import ArgumentError
from dpselect.integrations.sweeps.guarantees import RunSettings, count_runs, count_settings, extreme_settings
from dpselect.integrations.sweeps.sweep import RecordedRun, RecordedSweep
from dpselect.privacy import dp_sgd

FULL = {"noise_multiplier": 1.0, "sampling_rate": 0.01, "steps": 100}
SIZES = {"noise_multiplier": 1.0, "batch_size": 64, "dataset_size": 1000, "epochs": 3}


def sweep(*values, **settings):
    return RecordedSweep("x", "x", tuple(RecordedRun(f"r{at}", value, **settings) for at, value in enumerate(values)))


def only(values, given=None):
    (settings,) = count_settings(sweep(values), given or {}).counts
    return settings


def test_equal_settings_are_counted_together_and_retries_too():
    found = count_settings(sweep(FULL, {**FULL, "lr": 1}, {**FULL, "steps": 200}, times=2), {})
    assert sorted(found.counts.values()) == [2, 4]


def test_the_rate_is_the_largest_that_a_loader_makes():
    """A loader that drops the last batch has 15 of 64 rows out of 1000: Opacus then samples at 1/15."""
    rate = only(SIZES).sampling_rate
    assert 1 / 15 <= rate < 1 / 15 * (1 + 1e-15)
    assert only({**SIZES, "batch_size": 1000}).sampling_rate == 1.0


def test_the_steps_are_the_most_that_a_loader_makes():
    assert only(SIZES).steps == 3 * 16
    assert only({**SIZES, "epochs": 0.5}).steps == 8
    assert only({**FULL, "steps": None, "epochs": 3}).steps == 300


def test_what_opacus_samples_with_is_never_below():
    priced = RunSettings(noise_multiplier=1.0, sampling_rate=0.01, steps=100).guarantee()
    assert priced.epsilon(1e-5) >= dp_sgd(noise_multiplier=1, sampling_rate=0.01 + 2**-24, steps=100).epsilon(1e-5)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({}, "no noise multiplier"),
        ({"noise_multiplier": None}, "no noise multiplier"),
        ({"noise_multiplier": 0}, "is 0"),
        ({**FULL, "max_grad_norm": 0}, "no clipping norm"),
        ({**FULL, "max_grad_norm": None}, "no clipping norm"),
    ],
)
def test_runs_without_a_guarantee(values, why):
    found = count_settings(sweep({**FULL, "max_grad_norm": 1.0}, values), {})
    assert list(found.counts.values()) == [1]
    assert why in found.unprotected[0]
    assert "'r1'" in found.unprotected[0]


def test_targets_count_if_there_is_no_noise_multiplier():
    assert only({"target_epsilon": 3, "target_delta": 1e-5}) == RunSettings(epsilon=3.0, delta=1e-5)
    assert only({"target_epsilon": 3}, {"delta": "1e-6"}) == RunSettings(epsilon=3.0, delta=1e-6)
    assert only({**FULL, "target_epsilon": 3}).epsilon is None
    with pytest.raises(ArgumentError, match="the delta of run"):
        only({"target_epsilon": 3})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"lr": 1, "sigma": 2},
            r"no column holds the noise multiplier. There are 'lr', 'sigma'.*noise_multiplier=sigma",
        ),
        ({"noise_multiplier": 1, "steps": 1}, "the sampling rate of run 'r0'"),
        ({"noise_multiplier": 1, "sampling_rate": 0.1}, "the steps of run 'r0'"),
        ({**FULL, "noise_multiplier": -1}, "noise_multiplier must be"),
        ({**FULL, "sampling_rate": 16000}, "sampling_rate must be"),
        ({**FULL, "steps": 1.5}, "steps must be an integer"),
        ({**FULL, "steps": -1}, "steps must be an integer"),
        ({**SIZES, "dataset_size": 0.8}, "dataset_size must be an integer"),
        ({**SIZES, "dataset_size": 10}, "dataset_size must be an integer at least 64"),
        ({**SIZES, "epochs": 0}, "epochs must be"),
        ({**SIZES, "gradient_accumulation_steps": 4}, "'gradient_accumulation_steps' above 1"),
        ({**SIZES, "sampling_rate": 0.01}, "is below its batch size over its data set size"),
        ({**SIZES, "steps": 3}, "fewer than its epochs take"),
        ({**FULL, "steps": 10, "epochs": 100}, "fewer than its epochs take"),
        ({**FULL, "gradient_accumulation_steps": 4}, "'gradient_accumulation_steps' above 1"),
    ],
)
def test_what_is_refused(values, message):
    with pytest.raises(ArgumentError, match=message):
        count_settings(sweep(values), {})


def test_a_setting_that_is_given_counts_against_the_others():
    assert only({**SIZES, "sampling_rate": 0.01}, {"sampling_rate": "sampling_rate"}).sampling_rate == 0.01
    assert only({**SIZES, "steps": 3}, {"steps": "steps"}).steps == 3
    assert only({**SIZES, "steps": 48, "sampling_rate": 1 / 16}).steps == 48


def test_a_parent_without_noise_only_groups():
    runs = (RecordedRun("a", {}, groups=True), RecordedRun("b", FULL))
    found = count_settings(RecordedSweep("x", "x", runs), {})
    assert (found.grouping, found.unprotected) == (1, ())
    bare = (RecordedRun("a", {"noise_multiplier": 0}, groups=True),)
    assert "is 0" in count_settings(RecordedSweep("x", "x", bare), {}).unprotected[0]
    trained = (RecordedRun("a", FULL, groups=True),)
    assert count_settings(RecordedSweep("x", "x", trained), {}).grouping == 0


def test_runs_that_are_declared_to_have_read_nothing():
    found = count_settings(sweep(FULL, {}), {}, frozenset({"r1"}))
    assert found.unprotected == ()
    with pytest.raises(ArgumentError, match="no run is called 'r9'"):
        count_settings(sweep(FULL), {}, frozenset({"r9"}))
    with pytest.raises(ArgumentError, match="no run of it trained"):
        count_settings(sweep(FULL), {}, frozenset({"r0"}))
    with pytest.raises(ArgumentError, match="no run of it trained"):
        count_runs(sweep(FULL), frozenset({"r0"}))


def test_all_runs_of_one_guarantee():
    assert count_runs(sweep({}, {}, times=3)).counts == {RunSettings(): 6}


def test_the_extremes_dominate_every_settings():
    every = [
        RunSettings(noise_multiplier=noise, sampling_rate=rate, steps=steps)
        for noise, rate, steps in ((1.0, 0.005, 100), (2.0, 0.02, 50), (1.5, 0.01, 400))
    ]
    extreme = extreme_settings(every)
    assert extreme == RunSettings(noise_multiplier=1.0, sampling_rate=0.02, steps=400)
    for delta in (1e-8, 1e-5, 1e-2):
        assert extreme.guarantee().epsilon(delta) >= max(each.guarantee().epsilon(delta) for each in every)


def test_extremes_of_targets_and_of_both():
    targets = [RunSettings(epsilon=1.0, delta=1e-5), RunSettings(epsilon=2.0, delta=1e-6)]
    assert extreme_settings(targets) == RunSettings(epsilon=2.0, delta=1e-5)
    assert extreme_settings([targets[0], RunSettings(noise_multiplier=1.0, sampling_rate=0.1, steps=1)]) is None
    assert math.isclose(targets[0].guarantee().epsilon(1e-5), 1.0)


def test_a_name_that_several_runs_have_is_not_declared_untrained():
    record = RecordedSweep("x", "x", (RecordedRun("a", FULL), RecordedRun("a", {}), RecordedRun("b", FULL)))
    with pytest.raises(ArgumentError, match="2 runs are called 'a'"):
        count_settings(record, {}, frozenset({"a"}))
    assert sum(count_settings(record, {}, frozenset({"b"})).counts.values()) == 1


def test_a_rate_of_whole_steps_is_taken_where_it_is_named():
    accumulated = {**FULL, "gradient_accumulation_steps": 4}
    assert only(accumulated, {"sampling_rate": "sampling_rate"}).sampling_rate == 0.01
