"""Searches that are priced wrongly in the wild: each violates its claimed price by exact computation, ours covers it.

Bases are finite; outputs are listed worst first. Attained losses are exact output probabilities, no sampling.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpselect.accounting import best_of
from dpselect.privacy import approximate_dp, compose, pure_dp
from dpselect.repetitions import Fixed, Geometric, Poisson, Tabulated
from dpselect.testing.exact import FinitePair, best_of_masses, finite_guarantee, hockey_stick, renyi_divergence

E = math.e
RESPONSE = (E / (1 + E), 1 / (1 + E))  # randomised response at epsilon = 1


def three_point_base(beta=1e-9):
    """Log ratios +1, +1, -1: a tiny output just above the worse answer (Papernot, Steinke 2022, Appendix D.3)."""
    worse, better = RESPONSE
    return FinitePair((worse - E * beta, E * beta, 1 - worse), (better - beta, beta, 1 - better))


def attained_loss(law):
    pair = three_point_base().best_of(law)
    return float(renyi_divergence(pair.upper, pair.lower, math.inf))


def shifted_law(law, terms=4000):
    """K + 1 for a law of K."""
    return Tabulated(probabilities=[0.0, *law.pmf(np.arange(float(terms))).tolist()])


def test_fixed_count_priced_as_random():
    """Best of 5 at epsilon = 1 leaks 5, not the 3 that a geometric K with the same mean costs."""
    leaked = attained_loss(Fixed(count=5))
    claimed = best_of(pure_dp(epsilon=1.0), Geometric.with_mean(mean=5)).epsilon(delta=0)
    assert leaked > 4.9 > 3.0 > claimed
    # the price is 5, the limit of the loss for small tiny outputs; the masses above are rounded to doubles
    assert best_of(pure_dp(epsilon=1.0), Fixed(count=5)).epsilon(delta=0) >= leaked * (1 - 1e-15)


def best_of_grid(candidates):
    """The law of (index, output) of the best of different candidates, each run once; ties to the later candidate.

    Outputs are ranked by (level, index): level 0 is worst.
    """
    law = {}
    for outcome in itertools.product(*[range(len(c)) for c in candidates]):
        probability = math.prod(c[level] for c, level in zip(candidates, outcome, strict=True))
        best = max((level, index) for index, level in enumerate(outcome))
        law[best] = law.get(best, 0.0) + probability
    return law


def test_grid_priced_as_draws_of_one():
    """Randomised response at 1, three runs: draws of one reach delta(.5) = .3760, three candidates .4718.

    Each candidate may map its two likelihood ratios to outputs as it likes; the worst ranking of them is searched.
    """
    high, low = RESPONSE
    worst = 0.0
    # every candidate has the outputs "ratio e" and "ratio 1/e"; a ranking orders all six (candidate, output) pairs
    for ranking in itertools.permutations(range(6)):
        p, q = np.zeros(6), np.zeros(6)
        for outcome in itertools.product(range(2), repeat=3):
            best = max(ranking[2 * c + o] for c, o in enumerate(outcome))
            p[best] += math.prod(high if o == 0 else low for o in outcome)
            q[best] += math.prod(low if o == 0 else high for o in outcome)
        worst = max(worst, float(hockey_stick(p, q, 0.5)), float(hockey_stick(q, p, 0.5)))
    assert_allclose(worst, 0.4718, atol=5e-5)
    one = max(
        float(hockey_stick(best_of_masses(p, Fixed(count=3)), best_of_masses(q, Fixed(count=3)), 0.5))
        for p, q in ((RESPONSE, RESPONSE[::-1]), (RESPONSE[::-1], RESPONSE))
    )
    assert one <= 0.3760 + 5e-5 < worst
    # what a grid costs is composition
    base = pure_dp(epsilon=1.0)
    assert compose(base, base, base).delta(0.5) >= worst


def test_independent_negative_binomial_counts_per_candidate():
    """Each of m candidates run K_j times, K_j independent geometric: not one geometric number of draws of a mixture.

    With every candidate the same and each K_j >= 1 the total is a sum of m geometric counts, a negative binomial law
    with shape m: its loss passes the price of one geometric law of any gamma.
    """
    m, gamma = 4, 0.1
    k = np.arange(4000.0)
    single = Geometric(gamma=gamma).pmf(k)
    total = single
    for _ in range(m - 1):
        total = np.convolve(total, single)[: k.size]
    law = Tabulated(probabilities=(total / total.sum()).tolist())
    leaked = attained_loss(law)
    assert leaked > 5.0 > 3.0 > best_of(pure_dp(epsilon=1.0), Geometric(gamma=gamma)).epsilon(delta=0)
    assert best_of(pure_dp(epsilon=1.0), law).epsilon(delta=0) >= leaked * (1 - 1e-9)


def test_off_by_one_geometric():
    """K = 1 + Geometric on {1, 2, ..}: 3.3214 at epsilon = 1, gamma = .1, where 3 is claimed."""
    law = shifted_law(Geometric(gamma=0.1))
    leaked = attained_loss(law)
    assert_allclose(leaked, 3.3214, atol=5e-5)
    assert leaked > 3.0
    assert best_of(pure_dp(epsilon=1.0), law).epsilon(delta=0) >= leaked * (1 - 1e-9)


@pytest.mark.parametrize(("rate", "loss"), [(9.0, 5.95), (19.0, 10.67), (99.0, 47.7)])
def test_one_plus_poisson(rate, loss):
    """K = 1 + Poisson claimed at 3 epsilon for every mean."""
    law = shifted_law(Poisson(mean=rate), terms=int(rate + 20 * math.sqrt(rate) + 20))
    leaked = attained_loss(law)
    assert_allclose(leaked, loss, rtol=2e-3)
    assert leaked > 3.0
    assert best_of(pure_dp(epsilon=1.0), law).epsilon(delta=0) >= leaked * (1 - 1e-9)


def test_delta_not_amplified():
    """A base that fails with probability delta fails somewhere in K runs with about E[K] delta."""
    law, delta, epsilon = Geometric(gamma=0.01), 1e-4, 0.5
    # outputs: a shared answer, and one that only this data set can give, ranked best
    base = FinitePair((1 - delta, delta), (1.0, 0.0))
    leaked = float(base.best_of(law).remove(np.array([50.0]))[0])
    assert_allclose(leaked, law.success_probability(delta), rtol=1e-9)
    assert leaked > 0.99 * law.mean * delta > 3 * math.exp(epsilon) * delta
    total = best_of(approximate_dp(epsilon=epsilon, delta=delta), law)
    assert total.delta(50.0) >= leaked * (1 - 1e-12)
    assert best_of(finite_guarantee(base.upper, base.lower), law).delta(50.0) >= leaked * (1 - 1e-12)


def test_released_count():
    """With K released the loss at K = k is that of k fixed runs: no price of random K covers it."""
    law = Geometric(gamma=0.1)
    k = law.quantile(0.9)
    assert attained_loss(Fixed(count=k)) > 20 > best_of(pure_dp(epsilon=1.0), law).epsilon(delta=0)


def test_cap_priced_as_redrawn():
    """min(K, 12) has a lump at 12: it leaks more than K redrawn until it is at most 12."""
    from dpselect.repetitions import capped

    law = Geometric(gamma=0.05)
    lump, redrawn = capped(law, 12), law.at_most(12)
    leaked = attained_loss(lump)
    claimed = best_of(pure_dp(epsilon=1.0), redrawn).epsilon(delta=0)
    assert leaked > claimed
    assert best_of(pure_dp(epsilon=1.0), lump).epsilon(delta=0) >= leaked * (1 - 1e-9)
