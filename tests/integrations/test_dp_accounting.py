"""An accountant for users of dp-accounting: against its own accountants, and the calls that its callers make."""

import copy
import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import NeighboringRelation, dp_event as de
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from dpselect.accounting import best_of
from dpselect.errors import ArgumentError
from dpselect.integrations.dp_accounting import SelectionAccountant
from dpselect.privacy import compose, gaussian, pure_dp
from dpselect.repetitions import Geometric
from tests.privacy.exports.finite_laws import hockey_stick

ADD, REPLACE, SPECIAL = NeighboringRelation
GAUSSIAN = de.GaussianDpEvent(4.0)
SEARCH = de.RepeatAndSelectDpEvent(GAUSSIAN, 10, 1)
STEPS = de.SelfComposedDpEvent(de.PoissonSampledDpEvent(0.05, de.GaussianDpEvent(2.0)), 50)


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    "event",
    [
        de.RepeatAndSelectDpEvent(GAUSSIAN, 10, 0),
        SEARCH,
        de.RepeatAndSelectDpEvent(GAUSSIAN, 10, math.inf),
        de.RepeatAndSelectDpEvent(GAUSSIAN, 5, 0.5),
        de.RepeatAndSelectDpEvent(STEPS, 10, 1),
        de.RepeatAndSelectDpEvent(de.LaplaceDpEvent(4.0), 10, 1),
        de.RepeatAndSelectDpEvent(de.ZCDpEvent(0.03), 10, 1),
        de.RepeatAndSelectDpEvent(de.ComposedDpEvent([GAUSSIAN, de.LaplaceDpEvent(8.0)]), 4, 1),
        de.RepeatAndSelectDpEvent(SEARCH, 3, 1),
        de.ComposedDpEvent([GAUSSIAN, SEARCH]),
        de.SelfComposedDpEvent(SEARCH, 3),
    ],
)
def test_searches_cost_less_than_by_renyi_accounting(event):
    for delta in (1e-4, 1e-6, 1e-8):
        ours = SelectionAccountant().compose(event).get_epsilon(delta)
        assert ours < 0.9 * RdpAccountant().compose(event).get_epsilon(delta)


@pytest.mark.cases(3)
@pytest.mark.parametrize("relation", [ADD, SPECIAL])
@pytest.mark.parametrize(
    "event",
    [
        GAUSSIAN,
        STEPS,
        de.LaplaceDpEvent(2.0),
        de.DiscreteLaplaceDpEvent(0.5, 2),
        de.PoissonSampledDpEvent(0.1, de.LaplaceDpEvent(1.0)),
        de.ComposedDpEvent([GAUSSIAN, de.LaplaceDpEvent(3.0), STEPS]),
    ],
)
def test_other_events_cost_what_their_loss_distributions_say(event, relation):
    for delta in (1e-4, 1e-6):
        theirs = PLDAccountant(relation).compose(event).get_epsilon(delta)
        # theirs is up to a cell of its mesh too large: .15859 for a pure mechanism of .15857
        assert 0.9995 * theirs <= SelectionAccountant(relation).compose(event).get_epsilon(delta) <= 1.0001 * theirs


def test_a_search_is_above_what_a_finite_mechanism_attains():
    """The best of K geometric runs of randomised response, with the rarer answer the better one, by enumeration."""
    epsilon, mean = 1.0, 6.0
    chance = 1.0 / (1.0 + math.exp(epsilon))
    event = de.RepeatAndSelectDpEvent(de.DiscreteLaplaceDpEvent(epsilon, 1), mean, 1)
    accountant = SelectionAccountant().compose(event)
    k = np.arange(1, 2000)
    weights = (1 - 1 / mean) ** (k - 1) / mean
    none = [float(np.sum(weights * (1 - p) ** k)) for p in (chance, 1 - chance)]
    laws = [np.array([part, 1 - part]) for part in none]
    for delta in (0.0, 1e-3, 0.05):
        found = accountant.get_epsilon(delta)
        for p, q in (laws, laws[::-1]):
            assert hockey_stick(p, q, found) <= delta + 1e-12
    assert accountant.get_delta(0.0) >= max(hockey_stick(p, q, 0.0) for p, q in (laws, laws[::-1]))


def test_the_guarantee_is_that_of_the_parts():
    accountant = SelectionAccountant().compose(GAUSSIAN, 2).compose(SEARCH).compose(GAUSSIAN)
    parts = compose(
        *[gaussian(noise_multiplier=4)] * 3, best_of(gaussian(noise_multiplier=4), Geometric.with_mean(mean=10))
    )
    assert accountant.guarantee().epsilon(1e-6) == pytest.approx(parts.epsilon(1e-6), rel=1e-4)
    assert accountant.ledger == de.ComposedDpEvent([de.SelfComposedDpEvent(GAUSSIAN, 2), SEARCH, GAUSSIAN])
    assert SelectionAccountant().guarantee().epsilon(0.0) == pure_dp(epsilon=0).epsilon(0.0)


def test_counts_are_multiplied():
    six = SelectionAccountant().compose(de.SelfComposedDpEvent(GAUSSIAN, 3), 2).get_epsilon(1e-6)
    assert six == pytest.approx(gaussian(noise_multiplier=4 / math.sqrt(6)).epsilon(1e-6), rel=1e-9)
    search = best_of(gaussian(noise_multiplier=4), Geometric.with_mean(mean=10))
    three = SelectionAccountant().compose(SEARCH, 3).get_epsilon(1e-6)
    assert three == pytest.approx(compose(search, search, search).epsilon(1e-6), rel=1e-6)


@pytest.mark.parametrize("event", [GAUSSIAN, SEARCH, de.ComposedDpEvent([GAUSSIAN, SEARCH])])
@pytest.mark.parametrize("count", [-1, 2.5, 1 << 40])
def test_a_count_that_cannot_be_is_refused_before_anything_is_composed(event, count):
    if count == 1 << 40 and event is GAUSSIAN:
        return
    accountant = SelectionAccountant()
    with pytest.raises((dp_accounting.UnsupportedEventError, TypeError)):
        accountant.compose(event, count)
    assert accountant.get_epsilon(1e-6) == 0.0
    assert accountant.ledger == de.NoOpDpEvent()


def test_equal_searches_are_counted():
    accountant = SelectionAccountant()
    for _ in range(50):
        accountant.compose(SEARCH)
    assert [part.times for part in accountant._parts] == [50]


def test_supports_composes_nothing():
    accountant = SelectionAccountant()
    assert accountant.supports(SEARCH)
    assert accountant.supports(de.NonPrivateDpEvent())
    assert accountant.get_epsilon(1e-6) == 0.0
    assert accountant.get_delta(0.0) == 0.0


def test_it_can_be_copied():
    accountant = SelectionAccountant().compose(GAUSSIAN)
    copied = copy.deepcopy(accountant).compose(GAUSSIAN)
    assert copied.get_epsilon(1e-6) > accountant.get_epsilon(1e-6)


@pytest.mark.parametrize(
    "event",
    [
        de.NonPrivateDpEvent(),
        de.GaussianDpEvent(0.0),
        de.PoissonSampledDpEvent(0.1, de.LaplaceDpEvent(0.0)),
        de.RepeatAndSelectDpEvent(de.NonPrivateDpEvent(), 3, 1),
        de.ComposedDpEvent([GAUSSIAN, de.NonPrivateDpEvent()]),
    ],
)
def test_without_noise_nothing_is_private(event):
    accountant = SelectionAccountant().compose(event).compose(GAUSSIAN)
    assert (accountant.get_epsilon(0.5), accountant.get_delta(10.0)) == (math.inf, 1.0)
    with pytest.raises(ArgumentError, match="NonPrivate"):
        accountant.guarantee()


@pytest.mark.parametrize(
    ("event", "relation"),
    [
        (de.UnsupportedDpEvent(), ADD),
        (de.RepeatAndSelectDpEvent(de.UnsupportedDpEvent(), 3, 1), ADD),
        (de.RepeatAndSelectDpEvent(GAUSSIAN, 0.5, 1), ADD),
        (de.RepeatAndSelectDpEvent(GAUSSIAN, 3, -0.5), ADD),
        (de.RepeatAndSelectDpEvent(GAUSSIAN, math.nan, 1), ADD),
        (de.GaussianDpEvent(-1.0), ADD),
        (de.GaussianDpEvent(math.nan), ADD),
        (de.SelfComposedDpEvent(GAUSSIAN, -1), ADD),
        (de.SampledWithoutReplacementDpEvent(1000, 10, GAUSSIAN), ADD),
        (de.RandomizedResponseDpEvent(0.5, 2), SPECIAL),
        (de.TruncatedSubsampledGaussianDpEvent(1000, 0.1, 200, 1.0), SPECIAL),
        (de.PoissonSampledDpEvent(0.1, SEARCH), SPECIAL),
    ],
)
def test_refusals_are_those_of_dp_accounting(event, relation):
    accountant = SelectionAccountant(relation)
    assert not accountant.supports(event)
    with pytest.raises(dp_accounting.UnsupportedEventError):
        accountant.compose(event)
    assert accountant.get_epsilon(1e-6) == 0.0


def test_a_repetition_of_one_run_costs_one_run():
    one = SelectionAccountant().compose(de.RepeatAndSelectDpEvent(GAUSSIAN, 1, 1))
    assert one.get_epsilon(1e-6) == pytest.approx(gaussian(noise_multiplier=4).epsilon(1e-6), rel=1e-9)
    assert SelectionAccountant().compose(de.RepeatAndSelectDpEvent(de.NoOpDpEvent(), 3, 1)).get_epsilon(0.0) == 0.0


@pytest.mark.parametrize("relation", [ADD, SPECIAL])
def test_noise_is_calibrated_as_by_its_own_accountants(relation):
    """`calibrate_dp_mechanism` tries noise 0, and JAX-Privacy calls it with a function of the relation."""
    noise = dp_accounting.calibrate_dp_mechanism(
        lambda: SelectionAccountant(relation),
        lambda sigma: de.RepeatAndSelectDpEvent(de.GaussianDpEvent(sigma), 10, 1),
        target_epsilon=1.0,
        target_delta=1e-6,
        tol=1e-2,
    )
    assert noise == pytest.approx(6.0, rel=0.05)


def test_special_neighbours_have_no_guarantee():
    with pytest.raises(ArgumentError, match="REPLACE_SPECIAL"):
        SelectionAccountant(SPECIAL).compose(GAUSSIAN).guarantee()
    with pytest.raises(ArgumentError, match="neighboring_relation"):
        SelectionAccountant("add")


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_a_bad_delta_is_named(bad):
    with pytest.raises(ArgumentError, match="target_delta"):
        SelectionAccountant().get_epsilon(bad)
