"""Mechanisms on samples against every sample enumerated: random tables of outputs, and the cases that attain."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.privacy import approximate_dp, compose, gaussian, laplace, pure_dp
from dpselect.privacy.profile import LaplaceProfile, TwoSidedProfile, both_directions
from dpselect.privacy.sampled import (
    FixedSampleProfile,
    PoissonSampleProfile,
    RepeatedSampleProfile,
    fixed_sample,
    poisson_sample,
    repeated_sample,
)

EPSILONS = np.concatenate([np.linspace(0.0, 4.0, 41), [1e-9, 1e-6, 1e-3]])


def stick(first, second, epsilons=EPSILONS):
    """The hockey-stick divergence of two finite distributions, exact."""
    return np.sum(np.maximum(first - np.exp(epsilons)[:, None] * second, 0.0), axis=1)


class Supremum(TwoSidedProfile):
    """The profile of a table of outputs: the supremum over pairs of neighbours, exact."""

    def __init__(self, pairs):
        self.pairs = pairs

    def at(self, direction, epsilons):
        flat = np.ravel(epsilons)
        found = [stick(*(pair if direction == 0 else pair[::-1]), flat) for pair in self.pairs]
        return np.max(found, axis=0).reshape(np.shape(epsilons))


def table(keys, seed, outputs=4):
    """Random output distributions: some outputs are rare, so that losses are of all sizes."""
    random = np.random.default_rng(seed)
    return {key: random.dirichlet(np.full(outputs, random.choice([0.3, 1.0, 5.0]))) for key in keys}


def subsets(rows):
    return [frozenset(s) for k in range(len(rows) + 1) for s in itertools.combinations(rows, k)]


@pytest.mark.cases(8)
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.theorem("Zhu, Dong, Wang 2022, Theorem 11", "docs/theory/samples.md, Theorem 1", exact=True)
def test_a_poisson_sample_is_never_below_all_samples(seed):
    rate = (0.05, 0.3, 0.7, 0.95)[seed % 4]
    rows = list(range(3))
    outputs = table(subsets(rows), seed)
    pairs = [(outputs[s | {r}], outputs[s]) for s in subsets(rows) for r in rows if r not in s]
    profile = PoissonSampleProfile(Supremum(pairs), rate)

    def on(data):
        weights = [rate ** len(s) * (1 - rate) ** (len(data) - len(s)) for s in subsets(data)]
        return np.sum([w * outputs[s] for w, s in zip(weights, subsets(data), strict=True)], axis=0)

    for size in (1, 2, 3):
        larger, smaller = on(rows[:size]), on(rows[: size - 1])
        assert np.all(profile.remove(EPSILONS) >= stick(larger, smaller) - 1e-15)
        assert np.all(profile.add(EPSILONS) >= stick(smaller, larger) - 1e-15)


@pytest.mark.theorem("Zhu, Dong, Wang 2022, Theorem 11", "docs/theory/samples.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.parametrize("rate", [1e-6, 0.05, 0.5, 0.99])
def test_a_poisson_sample_of_one_row_attains_it(rate):
    pair = np.array([0.7, 0.2, 0.1]), np.array([0.1, 0.3, 0.6])
    profile = PoissonSampleProfile(Supremum([pair]), rate)
    mixed = rate * pair[0] + (1 - rate) * pair[1]
    for found, exact in (
        (profile.remove(EPSILONS), stick(mixed, pair[1])),
        (profile.add(EPSILONS), stick(pair[1], mixed)),
    ):
        assert np.all(found >= exact - 1e-16)
        assert np.all(found <= exact * (1 + 1e-9) + 1e-13)


@pytest.mark.cases(4)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.theorem("Balle, Barthe, Gaboardi 2018, Theorem 9", exact=True)
def test_a_sample_without_replacement_is_never_below_all_samples(seed):
    universe, draws = range(5), 2
    outputs = table([frozenset(s) for s in itertools.combinations(universe, draws)], seed)
    pairs = [(outputs[a], outputs[b]) for a in outputs for b in outputs if len(a - b) == 1]
    profile = FixedSampleProfile(Supremum(pairs), draws / 4)

    def on(data):
        return np.mean([outputs[frozenset(s)] for s in itertools.combinations(data, draws)], axis=0)

    data = on([0, 1, 2, 3])
    for place in range(4):
        neighbour = on([4 if k == place else k for k in range(4)])
        assert np.all(profile.remove(EPSILONS) >= stick(data, neighbour) - 1e-15)
        assert np.all(profile.add(EPSILONS) >= stick(neighbour, data) - 1e-15)


class Groups:
    """A mechanism by its table over samples with repeats, with the profile of each size of group."""

    def __init__(self, outputs):
        self.outputs = outputs

    def of_rows(self, k):
        def apart(a, b):
            return sum((Counter(a) - Counter(b)).values())

        pairs = [(self.outputs[a], self.outputs[b]) for a in self.outputs for b in self.outputs if apart(a, b) <= k]
        return SimpleNamespace(best_profile=lambda: Supremum(pairs))


@pytest.mark.cases(4)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.theorem("Balle, Barthe, Gaboardi 2018, Theorem 10", exact=True)
def test_a_sample_with_replacement_is_never_below_all_samples(seed):
    size, draws = 3, (1, 2, 3)[seed % 3]
    outputs = table(list(itertools.combinations_with_replacement(range(4), draws)), seed)
    profile = RepeatedSampleProfile(Groups(outputs), size, draws)

    def on(data):
        return np.mean([outputs[tuple(sorted(s))] for s in itertools.product(data, repeat=draws)], axis=0)

    data, neighbour = on([0, 1, 2]), on([3, 1, 2])
    assert np.all(profile.remove(EPSILONS) >= stick(data, neighbour) - 1e-15)
    assert np.all(profile.add(EPSILONS) >= stick(neighbour, data) - 1e-15)


@pytest.mark.parametrize(("size", "draws"), [(1, 2), (1, 3), (2, 3), (3, 3)])
def test_a_sum_over_a_sample_with_replacement_is_never_below_all_samples(size, draws):
    """Noise on the number of draws of one row: each further copy of it moves the outputs further."""
    x = np.arange(-10, 14)
    outputs = {}
    for s in itertools.combinations_with_replacement(range(4), draws):
        masses = np.exp(-np.abs(x - s.count(3)))
        outputs[s] = masses / masses.sum()
    profile = RepeatedSampleProfile(Groups(outputs), size, draws)

    def on(data):
        return np.mean([outputs[tuple(sorted(s))] for s in itertools.product(data, repeat=draws)], axis=0)

    rest = list(range(size - 1))
    data, neighbour = on([3, *rest]), on([2, *rest])
    assert np.all(profile.remove(EPSILONS) >= stick(data, neighbour) - 1e-14)
    assert np.all(profile.add(EPSILONS) >= stick(neighbour, data) - 1e-14)


@pytest.mark.theorem(
    "Balle, Barthe, Gaboardi 2018, Theorem 9", "Balle, Barthe, Gaboardi 2018, Theorem 10", exact=True, sharp=True
)
@pytest.mark.parametrize("size", [1, 2, 20])
def test_one_draw_attains_the_bounds_on_samples_of_fixed_size(size):
    """All other rows give what the replaced row gives after it is replaced."""
    pair = np.array([0.7, 0.2, 0.1]), np.array([0.1, 0.3, 0.6])
    exact = stick((pair[0] + (size - 1) * pair[1]) / size, pair[1])
    one_way = Supremum([pair])
    groups = SimpleNamespace(of_rows=lambda _: SimpleNamespace(best_profile=lambda: one_way))
    inner = one_way.remove(EPSILONS) >= one_way.add(EPSILONS)
    for profile in (FixedSampleProfile(one_way, 1 / size), RepeatedSampleProfile(groups, size, 1)):
        found = profile.remove(EPSILONS)
        assert np.all(found >= exact - 1e-16)
        near = found <= exact * (1 + 1e-8) + 1e-13
        assert np.all(near[inner]) if size == 1 else near[0]


def test_one_draw_with_replacement_is_one_without():
    inner = gaussian(noise_multiplier=1.0, adjacency="replace_one")
    with_one, without = (make(inner, size=50, draws=1) for make in (repeated_sample, fixed_sample))
    assert with_one.epsilon(1e-5) == pytest.approx(without.epsilon(1e-5), rel=1e-7)


def test_a_laplace_sample_against_its_integral():
    """Of Laplace noise of scale 1 with rate q: the divergence by a fine sum over the outputs."""
    q = 0.2
    profile = PoissonSampleProfile(LaplaceProfile(1.0), q)
    x = np.linspace(-30.0, 31.0, 2_000_001)
    one, other = (0.5 * np.exp(-np.abs(x - shift)) for shift in (1.0, 0.0))
    mixed = q * one + (1 - q) * other
    for epsilon in (0.0, 0.05, 0.2):
        for found, (p, r) in ((profile.remove, (mixed, other)), (profile.add, (other, mixed))):
            exact = np.trapezoid(np.maximum(p - math.exp(epsilon) * r, 0.0), x)
            assert float(found(np.array([epsilon]))[0]) == pytest.approx(exact, rel=1e-5, abs=1e-9)


def test_epsilons_and_failures_are_amplified():
    sampled = poisson_sample(pure_dp(epsilon=1.0), 0.1)
    assert sampled.epsilon(0) == pytest.approx(math.log1p(0.1 * math.expm1(1.0)), rel=1e-11)
    failing = poisson_sample(approximate_dp(epsilon=1.0, delta=1e-3), 0.1)
    assert failing.epsilon(1.0001e-4) <= sampled.epsilon(0)
    assert failing.epsilon(0.99e-4) == math.inf
    assert poisson_sample(laplace(scale=1.0), 1.0).epsilon(0) == 1.0
    many = compose(*[poisson_sample(laplace(scale=1.0), 0.05)] * 20)
    assert many.epsilon(1e-6) < 20 * poisson_sample(laplace(scale=1.0), 0.05).epsilon(0)


def test_each_sample_has_its_adjacency():
    with pytest.raises(AdjacencyError, match="add_or_remove_one"):
        poisson_sample(laplace(scale=1.0, adjacency="replace_one"), 0.1)
    for make in (fixed_sample, repeated_sample):
        with pytest.raises(AdjacencyError, match="replace_one"):
            make(laplace(scale=1.0), size=10, draws=2)
        for wrong in ({"size": 0, "draws": 1}, {"size": 10, "draws": 0}):
            with pytest.raises(ArgumentError, match="size"):
                make(laplace(scale=1.0, adjacency="replace_one"), **wrong)
    with pytest.raises(ArgumentError, match="sample_size"):
        fixed_sample(laplace(scale=1.0, adjacency="replace_one"), size=10, draws=11)
    with pytest.raises(ArgumentError, match="sample_size"):
        repeated_sample(laplace(scale=1.0, adjacency="replace_one"), size=10, draws=10_000)


@pytest.mark.parametrize(("size", "draws"), [(2, 50), (1000, 10), (1, 3), (100, 10_000)])
def test_the_probabilities_of_copies_are_bounded(size, draws):
    copies, beyond = RepeatedSampleProfile(gaussian(noise_multiplier=9.0, adjacency="replace_one"), size, draws)._copies
    total = math.fsum(mass for mass, _ in copies) + beyond
    assert 1.0 - (1.0 - 1.0 / size) ** draws <= total * (1 + 1e-12)
    assert both_directions(copies[0][1], np.array([0.0]))[0] > 0.0
