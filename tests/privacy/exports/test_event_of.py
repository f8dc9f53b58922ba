"""Events for dp-accounting: which there are, and that its accountants price none below the guarantee."""

import math

import pytest
from dp_accounting import NeighboringRelation, dp_event as de
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from dpselect.accounting import best_of
from dpselect.errors import ArgumentError
from dpselect.privacy import (
    approximate_dp,
    compose,
    dp_sgd,
    from_dp_event,
    from_profile,
    gaussian,
    laplace,
    pure_dp,
    renyi_dp,
    zcdp,
)
from dpselect.repetitions import Fixed, Geometric, Harmonic, Logarithmic, Poisson, TruncatedNegativeBinomial

SGD = {"noise_multiplier": 1.0, "sampling_rate": 0.01, "steps": 1000}


def kinds(event):
    """The names of an event and of those inside it."""
    inner = getattr(event, "events", None) or [getattr(event, "event", None)]
    return [type(event).__name__, *(name for part in inner if part is not None for name in kinds(part))]


@pytest.mark.parametrize(
    ("guarantee", "names"),
    [
        (gaussian(noise_multiplier=2), ["GaussianDpEvent"]),
        (laplace(scale=2), ["LaplaceDpEvent"]),
        (zcdp(rho=0.1), ["ZCDpEvent"]),
        (pure_dp(epsilon=1), ["DiscreteLaplaceDpEvent"]),
        (pure_dp(epsilon=0), ["NoOpDpEvent"]),
        (dp_sgd(**SGD), ["SelfComposedDpEvent", "PoissonSampledDpEvent", "GaussianDpEvent"]),
        (gaussian(noise_multiplier=2, adjacency="replace_one"), ["ZCDpEvent"]),
        (laplace(scale=2, adjacency="replace_one"), ["LaplaceDpEvent"]),
        (gaussian(noise_multiplier=2).of_rows(3), ["GaussianDpEvent"]),
        (
            compose(laplace(scale=2), gaussian(noise_multiplier=2)),
            ["ComposedDpEvent", "LaplaceDpEvent", "GaussianDpEvent"],
        ),
        (compose(zcdp(rho=0.1), zcdp(rho=0.1)), ["ComposedDpEvent", "SelfComposedDpEvent", "ZCDpEvent"]),
        (from_dp_event(de.DiscreteLaplaceDpEvent(0.5, 2)), ["DiscreteLaplaceDpEvent"]),
        (from_dp_event(de.DiscreteLaplaceDpEvent(0.5, 1)), ["DiscreteLaplaceDpEvent"]),
        (from_dp_event(de.GaussianDpEvent(2.0), adjacency="replace_one"), ["ZCDpEvent"]),
        (
            from_dp_event(
                de.SampledWithoutReplacementDpEvent(1000, 10, de.GaussianDpEvent(2.0)), adjacency="replace_one"
            ),
            ["SampledWithoutReplacementDpEvent", "GaussianDpEvent"],
        ),
    ],
)
def test_kinds(guarantee, names):
    assert kinds(guarantee.to_dp_event()) == names


@pytest.mark.parametrize(
    ("event", "parameter", "exact", "sign"),
    [
        (gaussian(noise_multiplier=2).to_dp_event(), "noise_multiplier", 2.0, -1),
        (laplace(scale=2).to_dp_event(), "noise_multiplier", 2.0, -1),
        (dp_sgd(**SGD).to_dp_event().event.event, "noise_multiplier", 1.0, -1),
        (pure_dp(epsilon=2).to_dp_event(), "noise_parameter", 2.0, 1),
        (zcdp(rho=2).to_dp_event(), "rho", 2.0, 1),
        (gaussian(noise_multiplier=0.5, adjacency="replace_one").to_dp_event(), "rho", 2.0, 1),
        (best_of(gaussian(noise_multiplier=4), Poisson(mean=2)).to_dp_event(), "mean", 2.0, 1),
    ],
)
def test_parameters_are_rounded_to_the_dear_side(event, parameter, exact, sign):
    assert 0.0 < sign * (getattr(event, parameter) - exact) < 1e-4 * exact


def test_composed_alike_are_counted():
    base = laplace(scale=2)
    event = compose(base, base, base).to_dp_event()
    assert event.events[0].count == 3


@pytest.mark.parametrize(
    "guarantee",
    [
        approximate_dp(epsilon=1, delta=1e-6),
        from_profile([0, 1], [0.3, 0]),
        renyi_dp(orders=[2], epsilons=[0.1]),
        pure_dp(epsilon=1, adjacency="replace_one"),
        approximate_dp(epsilon=0, delta=0.1),
        compose(laplace(scale=2), approximate_dp(epsilon=1, delta=1e-6)),
        # dp-accounting's loss distributions count a randomised response once
        from_dp_event(de.RandomizedResponseDpEvent(0.5, 2), adjacency="replace_one"),
        from_dp_event(de.SelfComposedDpEvent(de.RandomizedResponseDpEvent(0.5, 2), 3), adjacency="replace_one"),
        best_of(gaussian(noise_multiplier=4), Harmonic(limit=10)),
        best_of(gaussian(noise_multiplier=4), Fixed(count=3)),
        best_of(gaussian(noise_multiplier=4), Poisson(mean=0.5)),
        best_of(gaussian(noise_multiplier=4), TruncatedNegativeBinomial(eta=-0.5, gamma=0.1)),
        best_of(gaussian(noise_multiplier=4), Geometric.with_mean(mean=5).at_most(10)),
        best_of(gaussian(noise_multiplier=4), Geometric.with_mean(mean=5)).of_rows(2),
    ],
)
def test_others_are_refused_by_name(guarantee):
    with pytest.raises(ArgumentError, match=r"no event in dp-accounting.*to_pld"):
        guarantee.to_dp_event()


@pytest.mark.parametrize(
    ("law", "shape"),
    [
        (Geometric.with_mean(mean=10), 1.0),
        (Logarithmic.with_mean(mean=10), 0.0),
        (Poisson(mean=10), math.inf),
        (TruncatedNegativeBinomial.with_mean(eta=0.5, mean=10), 0.5),
    ],
)
def test_a_search_costs_more_by_dp_accounting(law, shape):
    guarantee = best_of(gaussian(noise_multiplier=4), law)
    event = guarantee.to_dp_event()
    assert (event.shape, event.mean) == (shape, pytest.approx(10, rel=6e-5))
    assert event.mean > 10
    assert RdpAccountant().compose(event).get_epsilon(1e-6) > 1.1 * guarantee.epsilon(1e-6)


@pytest.mark.parametrize(
    ("guarantee", "accountant"),
    [
        (gaussian(noise_multiplier=2, adjacency="replace_one"), RdpAccountant),
        (laplace(scale=2, adjacency="replace_one"), RdpAccountant),
        (pure_dp(epsilon=1), PLDAccountant),
    ],
)
def test_where_their_accountants_differ_neither_is_below(guarantee, accountant):
    relation = NeighboringRelation[guarantee.adjacency.name]
    event = guarantee.to_dp_event()
    for theirs in (accountant(neighboring_relation=relation), PLDAccountant(relation), RdpAccountant(None, relation)):
        if theirs.supports(event):
            assert theirs.compose(event, 3).get_epsilon(1e-6) >= compose(*[guarantee] * 3).epsilon(1e-6)
