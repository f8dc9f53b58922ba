"""The optimal bound against adversaries that enumerate: no mechanism on finite outputs may exceed it.

For random pairs of laws on up to six outputs (zeros, ties and infinite ratios among them) every order of the outputs is
tried, also after the outputs were split into unequal fragments, and the exact hockey-stick divergence of best-of-K is
compared with the certified bound in both directions.
"""

import itertools

import numpy as np
import pytest

from dpselect.accounting.optimal.best_of import optimal_best_of
from dpselect.repetitions import (
    BetaBinomial,
    Binomial,
    Fixed,
    Geometric,
    Harmonic,
    Poisson,
    Tabulated,
    TruncatedNegativeBinomial,
    Uniform,
    ZeroTruncatedPoisson,
)
from dpselect.testing.exact import best_of_masses, finite_guarantee, hockey_stick

# rounding of the exact side: sums of a few products of doubles
TOLERANCE = 1e-12


def random_pair(rng, size):
    upper, lower = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 5.0])), size=2)
    kind = rng.integers(4)
    if kind == 1:  # an output that only one law has, or both directions of it
        upper[rng.integers(size)] = 0.0
        lower[rng.integers(size)] = 0.0
    elif kind == 2:  # ties in the ratio
        lower[: size // 2] = upper[: size // 2] * rng.uniform(0.3, 1.5)
    elif kind == 3:  # nearly equal laws
        lower = upper * np.exp(rng.uniform(-0.2, 0.2, size))
    if not upper.sum() > 0 or not lower.sum() > 0:
        return random_pair(rng, size)
    return upper / upper.sum(), lower / lower.sum()


def random_law(rng):
    mean = float(np.exp(rng.uniform(0.05, 4.0)))
    count = int(rng.integers(1, 12))
    return [
        lambda: TruncatedNegativeBinomial.with_mean(eta=float(rng.uniform(-0.9, 5.0)), mean=mean),
        lambda: TruncatedNegativeBinomial.with_mean(eta=0.0, mean=mean),
        lambda: Geometric.with_mean(mean=mean),
        lambda: Poisson(mean=mean / 2),
        lambda: ZeroTruncatedPoisson(mean=mean),
        lambda: Binomial(trials=count, probability=float(rng.uniform(0.05, 0.95))),
        lambda: BetaBinomial(trials=count, shape=float(rng.uniform(0.2, 2.0))),
        lambda: Harmonic(limit=count),
        lambda: Uniform(limit=count),
        lambda: Fixed(count=count),
        lambda: Tabulated(probabilities=tuple(rng.dirichlet(np.full(5, 0.5)))),
        lambda: Geometric.with_mean(mean=mean).at_most(count),
    ][rng.integers(12)]()


def fragments(rng, upper, lower, pieces):
    """Randomised maps: outputs split into fragments of the same ratio and unequal size."""
    parts = np.sort(rng.integers(0, upper.size, pieces))
    counts = np.bincount(parts, minlength=upper.size) + 1
    shares = np.concatenate([rng.dirichlet(np.ones(c)) for c in counts])
    owner = np.repeat(np.arange(upper.size), counts)
    return upper[owner] * shares, lower[owner] * shares


def largest_over_orders(upper, lower, law, epsilons):
    """The largest exact divergence over all orders of the outputs, at each epsilon."""
    orders = np.array(list(itertools.permutations(range(upper.size))))
    search = best_of_masses(upper[orders], law), best_of_masses(lower[orders], law)
    return np.array([np.max(hockey_stick(*search, np.full(len(orders), e))) for e in epsilons])


def check(seed, pairs):
    rng = np.random.default_rng(seed)
    worst = -np.inf
    for _ in range(pairs):
        upper, lower = random_pair(rng, int(rng.integers(2, 6)))
        law = random_law(rng)
        epsilons = np.array([0.0, *np.exp(rng.uniform(-3, 1.2, 2))])
        bound = optimal_best_of(finite_guarantee(upper, lower), law, atoms=400)
        split = fragments(rng, upper, lower, 6 - upper.size)
        for p, q, curve in ((upper, lower, bound.profile.remove), (lower, upper, bound.profile.add)):
            fine = split if p is upper else split[::-1]
            truth = np.maximum(largest_over_orders(p, q, law, epsilons), largest_over_orders(*fine, law, epsilons))
            worst = max(worst, float(np.max(truth - curve(epsilons))))
            assert np.all(truth <= curve(epsilons) + TOLERANCE), (law, epsilons)
    return worst


@pytest.mark.full
@pytest.mark.theorem("docs/theory/optimal-selection.md, Theorem 1", exact=True)
@pytest.mark.parametrize("seed", range(4))
def test_no_order_exceeds_the_bound(seed):
    check(seed, 12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_no_order_exceeds_the_bound_at_length(seed):
    check(seed, 25)


@pytest.mark.theorem("docs/theory/optimal-selection.md, Theorem 1", exact=True, sharp=True)
def test_a_bound_one_per_cent_smaller_is_caught():
    """Randomised response and a geometric law: orders of fragments come within 1 % of the bound."""
    from dpselect.privacy import pure_dp

    e, law, epsilon = 1.0, Geometric(gamma=0.5), 0.8
    likely = np.exp(e) / (1 + np.exp(e))
    bound = float(optimal_best_of(pure_dp(epsilon=e), law).profile.remove(np.array([epsilon]))[0])
    best = 0.0
    for cut in np.linspace(0.0, 1.0, 101):
        # worst first: a part of the outputs that favour the neighbour, then S ascending, then the rest
        upper = np.array([(1 - likely) * cut, likely, (1 - likely) * (1 - cut)])
        lower = np.array([likely * cut, 1 - likely, likely * (1 - cut)])
        best = max(best, float(hockey_stick(best_of_masses(upper, law), best_of_masses(lower, law), epsilon)))
    assert 0.99 * bound < best <= bound
