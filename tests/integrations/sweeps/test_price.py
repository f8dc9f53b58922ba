"""The price of a sweep: each rule against its own composition, and what it rests on."""

import math

import pytest

from dpselect.accounting import best_of, mixture
from dpselect.accounting.stopping.odometer import odometer_epsilon
from dpselect.errors import ArgumentError
from dpselect.integrations.sweeps.price import BOUNDED, COMPOSITION, NOTHING, ODOMETER, price_sweep
from dpselect.integrations.sweeps.sweep import RecordedRun, RecordedSweep
from dpselect.privacy import compose, dp_sgd, gaussian
from dpselect.repetitions.by_name import law_named

DELTA = 1e-5
RATE = 1.0
"""With it DP-SGD is Gaussian noise, whose composition has a closed form."""


def values(noise, steps=1):
    return {"noise_multiplier": noise, "sampling_rate": RATE, "steps": steps, "max_grad_norm": 1.0}


def sweep(*noises, independent=None, times=1, extra=()):
    runs = tuple(RecordedRun(f"r{at}", values(noise), times=times) for at, noise in enumerate(noises))
    return RecordedSweep("x", "x", (*runs, *extra), ("must hold: x",), independent)


def exact(*noises):
    """The epsilon of Gaussian noise of all of these runs together."""
    return gaussian(noise_multiplier=1 / math.sqrt(sum(noise**-2 for noise in noises))).epsilon(DELTA)


def test_equal_runs_compose_whatever_chose_them():
    price = price_sweep(sweep(4.0, 4.0, 4.0, times=2), delta=DELTA)
    assert (price.rule, price.runs) == (COMPOSITION, 6)
    assert price.epsilon == price.composed == price.bounded == pytest.approx(exact(*[4.0] * 6), rel=1e-9)
    assert price.epsilon < price.adaptive
    assert "no run could have had other noise" in price.rests_on[0]
    assert any("number of runs was fixed in advance" in line for line in price.rests_on)
    assert price.missing == ()


def test_unequal_runs_are_an_odometer_unless_something_is_declared():
    noises = (4.0, 5.0, 8.0)
    price = price_sweep(sweep(*noises), delta=DELTA)
    assert price.rule == ODOMETER
    assert price.epsilon == odometer_epsilon([(gaussian(noise_multiplier=n), 1) for n in noises], DELTA)
    assert "--settings fixed" in price.missing[0]
    assert not any("number of runs" in line for line in price.rests_on)
    fixed = price_sweep(sweep(*noises), delta=DELTA, known="fixed")
    assert fixed.rule == COMPOSITION
    assert fixed.epsilon == price.composed == pytest.approx(exact(*noises), rel=1e-9)
    assert fixed.rests_on[0].startswith("declared: no run's noise")
    bounded = price_sweep(sweep(*noises), delta=DELTA, known="bounded")
    assert bounded.rule == BOUNDED
    assert bounded.epsilon == pytest.approx(exact(4.0, 4.0, 4.0), rel=1e-9)
    assert price.composed < bounded.epsilon
    assert bounded.missing == fixed.missing == ()


def test_a_number_that_is_given_is_a_declaration():
    runs = (RecordedRun("a", {"noise_multiplier": 4, "sampling_rate": 1}),)
    price = price_sweep(RecordedSweep("x", "x", runs), delta=DELTA, columns={"steps": "2"})
    assert price.epsilon == pytest.approx(exact(4.0, 4.0), rel=1e-9)
    assert "declared: steps is 2 in every run (--columns)" in price.rests_on


def test_a_record_of_independent_settings_is_enough():
    price = price_sweep(sweep(4.0, 5.0, independent="recorded: a grid"), delta=DELTA)
    assert (price.rule, price.rests_on[0]) == (COMPOSITION, "recorded: a grid")
    stricter = price_sweep(sweep(4.0, 5.0, independent="recorded: a grid"), delta=DELTA, known="bounded")
    assert stricter.rule == BOUNDED


def test_unlike_training_composes_exactly():
    runs = tuple(
        RecordedRun(str(noise), {"noise_multiplier": noise, "sampling_rate": 0.01, "steps": 100}) for noise in (1, 2, 2)
    )
    price = price_sweep(RecordedSweep("x", "x", runs), delta=DELTA, known="fixed")
    rate = 0.01 + 2.0**-23
    one, two = (dp_sgd(noise_multiplier=noise, sampling_rate=rate, steps=100) for noise in (1, 2))
    assert price.epsilon == pytest.approx(compose(one, two, two).epsilon(DELTA), rel=1e-9)
    assert [(each.runs, each.epsilon) for each in price.settings] == [(2, two.epsilon(DELTA)), (1, one.epsilon(DELTA))]
    assert any("every per-sample gradient was clipped" in line for line in price.rests_on)


def test_a_run_without_noise_takes_every_guarantee():
    bare = RecordedRun("bare", {"noise_multiplier": None}, status="failed")
    price = price_sweep(sweep(4.0, 4.0, extra=(bare,)), delta=DELTA)
    assert (price.epsilon, price.rule, price.searches) == (math.inf, NOTHING, ())
    assert price.composed == pytest.approx(exact(4.0, 4.0), rel=1e-9)
    assert "run 'bare' (failed): no noise multiplier" in price.missing[0]
    assert "max_grad_norm" in price.missing[1]
    kept = price_sweep(sweep(4.0, 4.0, extra=(bare,)), delta=DELTA, untrained=frozenset({"bare"}))
    assert kept.epsilon == price.composed
    assert kept.rests_on[-1] == "declared: 1 runs read no data (--untrained)"


def test_only_runs_without_noise():
    runs = tuple(RecordedRun(str(at), {"noise_multiplier": 0}) for at in range(15))
    price = price_sweep(RecordedSweep("x", "x", runs), delta=DELTA)
    assert (price.epsilon, price.composed, price.adaptive) == (math.inf, None, None)
    assert "5 more runs" in price.missing[10]


def test_the_same_as_a_private_search():
    price = price_sweep(sweep(4.0, 4.0, 4.0, 4.0), delta=DELTA)
    assert [each.law.describe()["law"] for each in price.searches] == ["logarithmic", "geometric", "poisson"]
    for search in price.searches:
        base = gaussian(noise_multiplier=4.0)
        law = law_named(search.law.describe()["law"], {"mean": 4})
        assert search.epsilon == pytest.approx(best_of(base, law).epsilon(DELTA), rel=1e-9)
    assert price_sweep(sweep(4.0), delta=DELTA).searches == ()


def test_a_private_search_of_unlike_runs_draws_among_them():
    price = price_sweep(sweep(4.0, 4.0, 8.0), delta=DELTA)
    base = mixture([gaussian(noise_multiplier=4.0), gaussian(noise_multiplier=8.0)], [2, 1])
    expected = best_of(base, law_named("geometric", {"mean": 3})).epsilon(DELTA)
    assert price.searches[1].epsilon == pytest.approx(expected, rel=1e-6)


def test_targets_have_no_odometer():
    runs = tuple(RecordedRun(str(e), {"target_epsilon": e, "target_delta": 1e-6}) for e in (1, 2))
    price = price_sweep(RecordedSweep("x", "x", runs), delta=DELTA)
    assert (price.epsilon, price.rule, price.adaptive) == (math.inf, NOTHING, None)
    assert any("no odometer" in line for line in price.missing)
    fixed = price_sweep(RecordedSweep("x", "x", runs), delta=DELTA, known="fixed")
    assert 2.0 < fixed.epsilon <= 3.0 + 1e-9
    assert any("met the epsilon and delta" in line for line in fixed.rests_on)


def test_a_base_prices_every_run():
    price = price_sweep(sweep(1.0, 2.0), delta=DELTA, base=gaussian(noise_multiplier=4, adjacency="replace_one"))
    assert price.epsilon == pytest.approx(exact(4.0, 4.0), rel=1e-9)
    assert price.adjacency.value == "replace_one"
    assert any("the base covers" in line for line in price.rests_on)
    with pytest.raises(ArgumentError, match="leave columns or base out"):
        price_sweep(sweep(1.0), delta=DELTA, base=gaussian(noise_multiplier=4), columns={"steps": "1"})


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan])
def test_a_bad_delta(delta):
    with pytest.raises(ArgumentError, match="delta"):
        price_sweep(sweep(4.0), delta=delta)


def test_statuses_and_repeats_are_counted():
    extra = (RecordedRun("f", values(4.0), status="failed", times=3),)
    assert price_sweep(sweep(4.0, extra=extra), delta=DELTA).statuses == {"unknown": 1, "failed": 1, "repeated": 2}
