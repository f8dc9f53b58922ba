"""Laws that every guarantee obeys, alone and composed, on drawn examples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from dpselect.caching import cache_key
from dpselect.mechanisms import bounded_range
from dpselect.ordered import PrivateRange, Quantiles
from dpselect.privacy import approximate_dp, compose, from_profile, gaussian, laplace, pure_dp, renyi_dp, worst_of, zcdp
from dpselect.privacy.composition import together
from dpselect.privacy.mechanisms.pure import RandomizedResponseRenyi
from dpselect.privacy.output.optimal_composition import composition_delta
from dpselect.privacy.renyi import LinearRenyi

SIMPLE = st.one_of(
    st.floats(0.0, 20.0).map(lambda e: pure_dp(epsilon=e)),
    st.builds(lambda e, d: approximate_dp(epsilon=e, delta=d), st.floats(0.0, 20.0), st.floats(0.0, 0.99)),
    st.floats(-8.0, 3.0).map(lambda x: zcdp(rho=10**x)),
    st.floats(-3.0, 3.0).map(lambda x: laplace(scale=10**x)),
    st.floats(-2.0, 4.0).map(lambda x: gaussian(noise_multiplier=10**x)),
    st.builds(
        lambda o, e: renyi_dp(orders=[o, 2 * o, 5 * o], epsilons=[e, e * 1.5, e * 4]),
        st.floats(1.01, 100.0),
        st.floats(0.0, 10.0),
    ),
    st.builds(
        lambda a, b: from_profile([a, a + b, a + 2 * b], [0.2, 1e-3, 1e-7]), st.floats(0.0, 3.0), st.floats(0.01, 3.0)
    ),
)
DELTA = st.floats(-15.0, -0.01).map(lambda x: 10**x)


@pytest.mark.full
@given(SIMPLE, DELTA, DELTA)
def test_epsilon_falls_with_delta(g, first, second):
    low, high = sorted((first, second))
    assert g.epsilon(delta=high) <= g.epsilon(delta=low) * (1 + 1e-6)


@pytest.mark.full
@given(SIMPLE, st.lists(st.floats(0.0, 50.0), min_size=2, max_size=20))
def test_delta_falls_with_epsilon(g, epsilons):
    deltas = g.delta(np.sort(np.array(epsilons)))
    assert np.all(np.diff(deltas) <= 1e-3 * deltas[:-1])  # the orders tried differ from point to point


@pytest.mark.full
@given(SIMPLE, st.floats(0.0, 30.0))
def test_epsilon_and_delta_answer_each_other(g, epsilon):
    delta = g.delta(epsilon)
    assert g.epsilon(delta=min(delta, 1.0)) <= epsilon * (1 + 1e-9) + 1e-9 or delta < 1e-290


@pytest.mark.full
@given(SIMPLE, DELTA)
def test_what_epsilon_proves_delta_confirms(g, delta):
    epsilon = g.epsilon(delta=delta)
    assume(epsilon < math.inf)
    # both search over orders, on different grids: 2 parts in a thousand of delta at most
    assert g.delta(epsilon) <= delta * (1 + 2e-3)


@given(SIMPLE, st.lists(st.floats(0.001, 1e4), min_size=2, max_size=10))
def test_renyi_curve_rises_with_the_order_and_its_moments_are_convex(g, excess):
    assume(g.renyi_curve is not None)
    orders = 1.0 + np.unique(excess)
    values = g.renyi_curve(orders)
    finite = np.isfinite(values)
    assert np.all(values >= 0)
    if g.terms["mechanism"] not in ("renyi",):
        assert np.all(finite)
        assert np.all(np.diff(values) >= -1e-11 * values[1:])


@pytest.mark.full
@given(SIMPLE, DELTA)
def test_the_bracket_holds_its_upper_end(g, delta):
    lower, upper = g.epsilon_bracket(delta=delta)
    assert 0.0 <= lower <= upper == g.epsilon(delta=delta)


@given(st.lists(st.floats(0.3, 50.0), min_size=2, max_size=5), DELTA)
def test_gaussians_compose_exactly(noises, delta):
    total = compose(*[gaussian(noise_multiplier=n) for n in noises])
    alone = gaussian(noise_multiplier=1 / math.hypot(*[1 / n for n in noises]))
    assert total.epsilon(delta=delta) == pytest.approx(alone.epsilon(delta=delta), rel=1e-8, abs=1e-9)


LIGHT = st.one_of(
    st.floats(0.01, 1.0).map(lambda e: pure_dp(epsilon=e)),
    st.floats(0.001, 0.3).map(lambda r: zcdp(rho=r)),
    st.floats(1.0, 20.0).map(lambda s: laplace(scale=s)),
    st.floats(1.0, 20.0).map(lambda s: gaussian(noise_multiplier=s)),
    st.builds(lambda e, d: approximate_dp(epsilon=e, delta=d), st.floats(0.01, 1.0), st.floats(0.0, 1e-4)),
)


@pytest.mark.full
@settings(max_examples=8)
@given(st.lists(LIGHT, min_size=2, max_size=3), st.sampled_from([1e-3, 0.01, 0.1]))
def test_composition_commutes_and_is_never_below_a_part(parts, delta):
    total, turned = compose(*parts), compose(*reversed(parts))
    assert total.epsilon(delta=delta) == pytest.approx(turned.epsilon(delta=delta), rel=1e-6, abs=1e-6)
    for part in parts:
        assert total.epsilon(delta=delta) >= part.epsilon(delta=delta) * (1 - 1e-9) - 1e-9
        assert total.delta(0.3) >= part.delta(0.3) * (1 - 1e-9)
    assert total.pure_epsilon == compose(*reversed(parts)).pure_epsilon
    assert total.failure == pytest.approx(turned.failure, rel=1e-9, abs=0)


@pytest.mark.full
@settings(max_examples=4)
@given(LIGHT, LIGHT, LIGHT)
def test_composition_associates(a, b, c):
    left, right, flat = compose(compose(a, b), c), compose(a, compose(b, c)), compose(a, b, c)
    for g in (left, right):
        assert g.epsilon(delta=1e-3) == pytest.approx(flat.epsilon(delta=1e-3), rel=1e-5, abs=1e-5)
        assert g.pure_epsilon == pytest.approx(flat.pure_epsilon, rel=1e-14)
        if flat.renyi_curve is not None:
            assert g.renyi(4.0) == pytest.approx(flat.renyi(4.0), rel=1e-12)


@pytest.mark.full
@given(st.lists(SIMPLE, min_size=1, max_size=4), DELTA, st.floats(0.0, 10.0))
def test_worst_of_is_above_every_part_and_not_above_the_largest(parts, delta, epsilon):
    worst = worst_of(*parts)
    assert worst.delta(epsilon) >= max(p.delta(epsilon) for p in parts) * (1 - 1e-12)
    assert worst.epsilon(delta=delta) >= max(p.epsilon(delta=delta) for p in parts) * (1 - 1e-9)
    assert worst_of(parts[0], parts[0]).epsilon(delta=delta) <= parts[0].epsilon(delta=delta) * (1 + 1e-2) + 1e-6


def test_randomised_response_dominates_every_pure_mechanism():
    orders = 1 + np.geomspace(1e-3, 1e4, 200)
    for epsilon in (1e-6, 0.1, 1.0, 5.0):
        worst, better = pure_dp(epsilon=epsilon), laplace(scale=1 / epsilon)
        assert np.all(worst.renyi_curve(orders) >= better.renyi_curve(orders) * (1 - 1e-12))
        assert np.all(worst.renyi_curve(orders) <= LinearRenyi(epsilon**2 / 2)(orders) * (1 + 2e-12))
        grid = np.linspace(0, 2 * epsilon, 50)
        assert np.all(worst.delta(grid) >= better.delta(grid) * (1 - 1e-12))


def test_the_work_of_a_composition_is_by_its_different_parts(monkeypatch):
    """A hundred thousand equal runs took half a minute."""
    calls = []
    curve = RandomizedResponseRenyi.__call__
    counted = lambda self, orders: calls.append(1) or curve(self, orders)  # noqa: E731
    monkeypatch.setattr(RandomizedResponseRenyi, "__call__", counted)
    one, other = pure_dp(epsilon=1e-9), pure_dp(epsilon=2e-9)
    both = compose(*[one] * 2000, *[other] * 1000)
    assert both.epsilon(1e-6) == 0.0
    assert both.renyi(2.0) == pytest.approx(2000 * one.renyi(2.0) + 1000 * other.renyi(2.0), rel=1e-12)
    assert len(calls) < 100


def test_compositions_are_taken_apart_and_equal_parts_put_together():
    a, b, c = laplace(scale=2.0), laplace(scale=2.5), laplace(scale=3.0)
    folded = compose(compose(compose(a, b), laplace(scale=2.0)), compose(c, b))
    assert [count for _, count in folded.loss.sources] == [2, 2, 1]
    flat = compose(a, b, a, c, b)
    assert folded.loss == flat.loss
    assert sum(count for _, count in folded.renyi_curve.curves) == 5
    assert folded.epsilon_bracket(1e-5) == pytest.approx(flat.epsilon_bracket(1e-5), rel=1e-9)
    assert cache_key(folded.lower_profile) == cache_key(flat.lower_profile)


@pytest.mark.full
def test_many_unlike_parts_keep_a_fine_mesh():
    """They cost more than as many of the least, and less than as many of the largest, whose costs are exact."""
    parts = [pure_dp(epsilon=0.1 + 0.0005 * k) for k in range(100)]
    lower, upper = compose(*parts).epsilon_bracket(1e-6)
    assert composition_delta(count=100, epsilon=0.1, total_epsilon=upper) <= 1e-6
    assert composition_delta(count=100, epsilon=0.1 + 0.0005 * 99, total_epsilon=lower) >= 1e-6
    assert lower <= upper < lower * 1.002  # .0014 by the mesh of 5 sqrt(n) transforms; all at once it was .0032


def test_mechanisms_named_at_once_have_no_lower_end_of_an_adversary_who_chooses():
    """The two exponential mechanisms of a range: their best fixed pair has .22987 at .2, an adaptive one .23653."""
    one = bounded_range(epsilon=1.0)
    assert together(one) is one
    both = together(one, one)
    assert both.epsilon_bracket(1e-6) == (0.0, compose(one, one).epsilon(1e-6))
    for named in (PrivateRange(epsilon=2.0), Quantiles(qs=[0.2, 0.8], epsilon=2.0, method="independent")):
        assert named.guarantee.lower_profile is None
