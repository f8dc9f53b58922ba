"""Guarantees from dp-accounting's events, and that library's traps."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import pytest
from dp_accounting import dp_event as de

from dpselect.accounting import best_of
from dpselect.errors import ArgumentError
from dpselect.privacy import Adjacency, compose, dp_sgd, from_dp_event, gaussian, laplace, zcdp
from dpselect.repetitions import Logarithmic

GAUSSIAN = de.GaussianDpEvent(2.0)
SAMPLED = de.PoissonSampledDpEvent(0.05, de.GaussianDpEvent(4.0))
RESPONSE = de.RandomizedResponseDpEvent(0.3, 4)


def test_dp_sgd_is_the_same_as_its_event():
    event = de.SelfComposedDpEvent(de.PoissonSampledDpEvent(0.01, de.GaussianDpEvent(1.0)), 1000)
    ours = dp_sgd(noise_multiplier=1.0, sampling_rate=0.01, steps=1000)
    # their meshes differ: each is within 2e-5 of the limit
    assert from_dp_event(event).epsilon(delta=1e-5) == pytest.approx(ours.epsilon(delta=1e-5), rel=4e-5)
    assert from_dp_event(event).epsilon(delta=1e-5) == pytest.approx(1.829, abs=2e-3)


@pytest.mark.cases(1)
@pytest.mark.parametrize("wrap", [lambda e: de.SelfComposedDpEvent(e, 100), lambda e: de.ComposedDpEvent([e] * 3)])
def test_an_integer_noise_multiplier_is_not_a_discount(wrap):
    whole = from_dp_event(wrap(de.PoissonSampledDpEvent(0.05, de.GaussianDpEvent(4))))
    real = from_dp_event(wrap(de.PoissonSampledDpEvent(0.05, de.GaussianDpEvent(4.0))))
    single = from_dp_event(de.PoissonSampledDpEvent(0.05, de.GaussianDpEvent(4.0)))
    assert whole.epsilon(delta=1e-5) == real.epsilon(delta=1e-5) > 1.2 * single.epsilon(delta=1e-5)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("event", "adjacency"),
    [
        (GAUSSIAN, "add_or_remove_one"),
        (GAUSSIAN, "replace_one"),
        (SAMPLED, "add_or_remove_one"),
        (SAMPLED, "replace_one"),
        (de.PoissonSampledDpEvent(0.1, de.LaplaceDpEvent(4.0)), "add_or_remove_one"),
        (de.LaplaceDpEvent(2.0), "add_or_remove_one"),
        (de.DiscreteLaplaceDpEvent(0.5, 1), "add_or_remove_one"),
        (RESPONSE, "replace_one"),
        (de.ZCDpEvent(0.05), "replace_one"),
        (de.SampledWithoutReplacementDpEvent(1000, 10, de.GaussianDpEvent(2.0)), "replace_one"),
    ],
)
def test_a_self_composition_costs_as_much_as_its_parts_written_out(event, adjacency):
    # dp-accounting 0.6.0's loss-distribution accountant ignores the count of a randomised response
    thrice = from_dp_event(de.SelfComposedDpEvent(event, 3), adjacency=adjacency)
    written = from_dp_event(de.ComposedDpEvent([event, event, event]), adjacency=adjacency)
    alone = from_dp_event(event, adjacency=adjacency)
    for delta in (1e-6, 1e-3):
        assert thrice.epsilon(delta=delta) == pytest.approx(written.epsilon(delta=delta), rel=1e-4)
        assert thrice.epsilon(delta=delta) > 1.02 * alone.epsilon(delta=delta)


def test_known_mechanisms_agree_with_their_closed_forms():
    assert from_dp_event(GAUSSIAN).epsilon(1e-6) == pytest.approx(gaussian(noise_multiplier=2).epsilon(1e-6), rel=1e-6)
    assert from_dp_event(GAUSSIAN).epsilon(1e-6) >= gaussian(noise_multiplier=2).epsilon(1e-6)
    assert from_dp_event(de.LaplaceDpEvent(2)).epsilon(1e-3) == pytest.approx(laplace(scale=2).epsilon(1e-3), rel=1e-6)
    assert from_dp_event(de.LaplaceDpEvent(2)).epsilon(1e-3) >= laplace(scale=2).epsilon(1e-3)
    ours, theirs = zcdp(rho=0.1).epsilon(1e-6), from_dp_event(de.ZCDpEvent(0.1)).epsilon(1e-6)
    assert ours == theirs
    assert from_dp_event(de.NoOpDpEvent()).epsilon(delta=1e-6) == 0.0


def test_replace_one_doubles_the_distance_of_an_add_or_remove_gaussian():
    # the Renyi accountant of the library does not double it: its smaller answer must not win
    assert from_dp_event(GAUSSIAN, adjacency="replace_one").epsilon(1e-6) == pytest.approx(
        gaussian(noise_multiplier=1).epsilon(1e-6), rel=1e-5
    )
    assert from_dp_event(GAUSSIAN, adjacency="replace_one").adjacency is Adjacency.REPLACE_ONE


def test_noise_that_is_relative_to_one_row_is_halved_under_replace_one():
    """A row is taken out and another one put in, so the sum moves by twice the norm that the event's noise is of."""
    for event, ours in (
        (GAUSSIAN, gaussian(noise_multiplier=1, adjacency="replace_one")),
        (de.LaplaceDpEvent(2.0), laplace(scale=1, adjacency="replace_one")),
        (
            de.ComposedDpEvent([de.ZCDpEvent(0.1), GAUSSIAN]),
            compose(zcdp(rho=0.1, adjacency="replace_one"), gaussian(noise_multiplier=1, adjacency="replace_one")),
        ),
    ):
        assert from_dp_event(event, adjacency="replace_one").epsilon(1e-5) == pytest.approx(
            ours.epsilon(1e-5), rel=1e-9
        )


@pytest.mark.parametrize(
    "wrap", [lambda e: e, lambda e: de.SelfComposedDpEvent(e, 3), lambda e: de.ComposedDpEvent([GAUSSIAN, e])]
)
class TestRefusals:
    def test_no_privacy(self, wrap):
        # dp-accounting keeps such an event out of its distribution: its price read there would be zero
        with pytest.raises(ArgumentError, match="NonPrivate"):
            from_dp_event(wrap(de.NonPrivateDpEvent()))
        for event in (
            de.GaussianDpEvent(0.0),
            de.GaussianDpEvent(-1.0),
            de.GaussianDpEvent(float("nan")),
            de.LaplaceDpEvent(0),
            de.PoissonSampledDpEvent(0.1, de.GaussianDpEvent(0)),
        ):
            with pytest.raises(ArgumentError, match="noise_multiplier"):
                from_dp_event(wrap(event))

    def test_a_negative_count_does_not_give_budget_back(self, wrap):
        for count in (-1, 0, 1.5):
            with pytest.raises(ArgumentError, match="count"):
                from_dp_event(wrap(de.ComposedDpEvent([GAUSSIAN, de.SelfComposedDpEvent(GAUSSIAN, count)])))
        for rate in (-0.1, 1.1):
            with pytest.raises(ArgumentError, match="sampling_probability"):
                from_dp_event(wrap(de.PoissonSampledDpEvent(rate, GAUSSIAN)))

    def test_unsupported(self, wrap):
        for event in (
            de.UnsupportedDpEvent(),
            de.SampledWithReplacementDpEvent(100, 10, GAUSSIAN),
            de.SingleEpochTreeAggregationDpEvent(1.0, [8]),
            de.SampledWithoutReplacementDpEvent(100, 10, GAUSSIAN),
            RESPONSE,
        ):
            with pytest.raises(ArgumentError, match="cannot account"):
                from_dp_event(wrap(event))


def test_what_is_not_an_event_is_a_type_error():
    for wrong in ("gaussian", None, 1.0, gaussian(noise_multiplier=1)):
        with pytest.raises(TypeError, match="event"):
            from_dp_event(wrong)


def test_events_pickle_after_use_and_describe_themselves():
    g = from_dp_event(de.SelfComposedDpEvent(SAMPLED, 10))
    epsilon = g.epsilon(delta=1e-6)
    again = pickle.loads(pickle.dumps(g))
    assert again.epsilon(delta=1e-6) == epsilon
    told = json.dumps(g.describe(delta=0.0), allow_nan=False)
    assert "PoissonSampledDpEvent" in told
    assert json.loads(told)["epsilon"] is None


def test_an_imported_event_keeps_every_statement_of_ours():
    law = Logarithmic.with_mean(mean=10)
    imported, ours = from_dp_event(de.LaplaceDpEvent(1)), laplace(scale=1)
    assert imported.epsilon(0) == 1.0
    assert imported.epsilon_bracket(1e-3) == ours.epsilon_bracket(1e-3)
    assert best_of(imported, law).epsilon(0) == best_of(ours, law).epsilon(0) < 2.5
    assert from_dp_event(de.GaussianDpEvent(4)).gaussian_mu == pytest.approx(0.25, rel=1e-11)
    twice = from_dp_event(de.SelfComposedDpEvent(de.LaplaceDpEvent(2), 3))
    assert twice.epsilon(0) == 1.5


@pytest.mark.full
def test_only_three_kinds_load_dp_accountings_accountants():
    code = """
import sys
from dp_accounting import dp_event as de
loaded = [name for name in sys.modules if name.startswith("dp_accounting.pld")]
for name in loaded:
    del sys.modules[name]
from dpselect.privacy import from_dp_event
event = de.ComposedDpEvent([de.GaussianDpEvent(1.0), de.PoissonSampledDpEvent(0.1, de.LaplaceDpEvent(1.0))])
assert 1.0 < from_dp_event(event).epsilon(1e-5) < 6.0
assert not [name for name in sys.modules if name.startswith("dp_accounting.pld")]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_many_equal_events_are_counted():
    many = from_dp_event(de.ComposedDpEvent([SAMPLED] * 300 + [GAUSSIAN]))
    counted = from_dp_event(de.ComposedDpEvent([de.SelfComposedDpEvent(SAMPLED, 300), GAUSSIAN]))
    assert many.epsilon(1e-5) == counted.epsilon(1e-5)


def test_steps_within_a_whole_sample_are_all_counted():
    five = de.PoissonSampledDpEvent(1.0, de.SelfComposedDpEvent(SAMPLED, 5))
    found = from_dp_event(de.SelfComposedDpEvent(five, 3))
    assert found.epsilon(1e-5) == from_dp_event(de.SelfComposedDpEvent(SAMPLED, 15)).epsilon(1e-5)
