"""Lower ends of brackets are attained: by quadrature, in many digits, by enumeration and by direct convolution."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from mpmath import mp
from scipy.integrate import quad

from dpselect.accounting.optimal.atoms import Atoms
from dpselect.accounting.optimal.columns import column_bounds
from dpselect.accounting.optimal.cuts import Cuts
from dpselect.accounting.optimal.recursion import attained
from dpselect.privacy import approximate_dp, compose, dp_sgd, from_profile, pure_dp
from dpselect.privacy.below import (
    AttainedGaussian,
    AttainedPair,
    AttainedSampledGaussian,
    ComposedLowerProfile,
    composed_below,
)
from dpselect.privacy.losses import below as loss_below, composition as loss_composition
from dpselect.privacy.losses.below import Positive, compose_below, joined
from dpselect.privacy.losses.composition import Losses
from dpselect.privacy.losses.discretise import DominatingPair, PairEnclosure
from dpselect.privacy.output.optimal_composition import composition_delta
from dpselect.privacy.profile import GaussianProfile, both_directions
from dpselect.repetitions import Fixed, Geometric
from tests.privacy.losses.below_cases import as_pair, random_pair


def one_step(noise, rate, mpf=mp):
    """Both hockey-stick curves of one sampled Gaussian, by the quantile where the likelihood ratio is exp(epsilon)."""
    s, q = 1 / mpf.mpf(noise), mpf.mpf(rate)

    def remove(e):
        level = (mpf.exp(e) - 1 + q) / q
        if level <= 0:
            return 1 - mpf.exp(e)
        x = (mpf.log(level) + s * s / 2) / s
        return (1 - q) * mpf.ncdf(-x) + q * mpf.ncdf(s - x) - mpf.exp(e) * mpf.ncdf(-x)

    def add(e):
        level = (mpf.exp(-e) - 1 + q) / q
        if level <= 0:
            return mpf.mpf(0)
        x = (mpf.log(level) + s * s / 2) / s
        return mpf.ncdf(x) - mpf.exp(e) * ((1 - q) * mpf.ncdf(x) + q * mpf.ncdf(x - s))

    return remove, add


@pytest.mark.cases(2)
@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.01), (0.5, 0.3), (4.0, 0.9)])
def test_one_step_of_dp_sgd_against_many_digits(noise, rate):
    found = ComposedLowerProfile(((AttainedSampledGaussian(noise, rate), 1),), 2e-4)
    epsilons = np.array([0.0, 0.00213, 0.05, 0.4, 1.3, 2.5])
    with mp.workdps(40):
        for form, curve in zip(one_step(noise, rate), (found.remove, found.add), strict=True):
            for epsilon, value in zip(epsilons, curve(epsilons), strict=True):
                exact = form(mp.mpf(float(epsilon)))
                assert value <= exact
                assert value >= exact * (1 - mp.mpf("3e-3")) - mp.mpf("1e-12")


def exact_two_steps(noise, rate, epsilon):
    """Both directions of two steps: the curve of one at epsilon less the loss of the other, integrated."""
    with mp.workdps(20):
        remove, add = one_step(noise, rate)
        s, q = 1.0 / noise, rate

        def loss(x):
            return math.log1p(q * math.expm1(s * x - s * s / 2.0))

        def normal(x):
            return math.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi)

        def removing(x):
            return ((1 - q) * normal(x) + q * normal(x - s)) * float(remove(mp.mpf(epsilon - loss(x))))

        def adding(x):
            return normal(x) * float(add(mp.mpf(epsilon + loss(x))))

        return tuple(quad(f, -9.0, 10.0, epsabs=1e-13, epsrel=1e-9, limit=60)[0] for f in (removing, adding))


def test_the_lower_end_of_dp_sgd_is_not_that_of_its_own_rounded_masses():
    """Two steps by quadrature: the old lower end was above the truth wherever the mesh was wide."""
    g = dp_sgd(noise_multiplier=1.0, sampling_rate=0.2, steps=2)
    lower, upper = g.epsilon_bracket(delta=1e-4)
    remove, add = exact_two_steps(1.0, 0.2, lower)
    assert max(remove, add) > 1e-4
    remove, add = exact_two_steps(1.0, 0.2, upper)
    assert max(remove, add) <= 1e-4
    assert upper - lower < 2e-4 * upper


@pytest.mark.parametrize(("mu", "count", "width"), [(0.05, 400, 1e-3), (1.0, 1, 1e-3), (0.3, 9, 2e-3)])
def test_gaussians_on_a_mesh_stay_below_the_exact_curve(mu, count, width):
    """`count` Gaussians are one with sqrt(count) mu; on a mesh a little less, down to 1e-30."""
    found = ComposedLowerProfile(((AttainedGaussian.of(mu), count),), width)
    epsilons = np.linspace(0.0, 11.0, 12)
    values = found.remove(epsilons)
    with mp.workdps(50):
        total = mp.sqrt(count) * mp.mpf(mu)
        exact = [
            mp.ncdf(total / 2 - mp.mpf(e) / total) - mp.exp(mp.mpf(e)) * mp.ncdf(-total / 2 - mp.mpf(e) / total)
            for e in epsilons.tolist()
        ]
        assert all(value <= truth for value, truth in zip(values.tolist(), exact, strict=True))
        assert all(value >= 0.98 * truth for value, truth in zip(values.tolist(), exact, strict=True))


@dataclass(frozen=True, eq=False)
class Known:
    """A recipe for a pair that is known, atom by atom."""

    pair: DominatingPair
    attained: ClassVar[bool] = True

    def __call__(self, atoms):
        both = PairEnclosure(self.pair, self.pair)
        return both, both.swapped()


def stick(upper, lower, factor):
    """The hockey-stick divergence in fractions."""
    return sum((max(p - factor * q, Fraction(0)) for p, q in zip(upper, lower, strict=True)), Fraction(0))


@pytest.mark.parametrize("seed", range(4))
def test_compositions_of_small_pairs_against_enumeration(seed):
    random = np.random.default_rng(seed)
    for _ in range(3):
        made = [random_pair(random, int(random.integers(2, 5))) for _ in range(int(random.integers(1, 5)))]
        lower = composed_below([(AttainedPair(Known(as_pair(*one))), 1) for one in made], 1e-3)
        upper, other = [Fraction(1)], [Fraction(1)]
        for p, q in made:
            upper, other = [x * y for x in upper for y in p], [x * y for x in other for y in q]
        for factor in (Fraction(1), Fraction(5, 4), Fraction(3), Fraction(40)):
            epsilon = np.array([math.nextafter(math.log(factor), math.inf)])
            for found, exact in (
                (lower.remove(epsilon), stick(upper, other, factor)),
                (lower.add(epsilon), stick(other, upper, factor)),
            ):
                assert Fraction(float(found[0])) <= exact
                assert float(found[0]) >= float(exact) - 0.02


def test_randomised_responses_compose_almost_exactly():
    g = compose(*[pure_dp(epsilon=0.1)] * 20)
    lower, upper = g.epsilon_bracket(delta=1e-4)
    assert composition_delta(count=20, epsilon=0.1, total_epsilon=lower) > 1e-4
    assert composition_delta(count=20, epsilon=0.1, total_epsilon=upper) <= 1e-4 * (1 + 1e-12)
    assert upper - lower < 1e-8 * upper


@pytest.mark.parametrize("seed", range(3))
def test_searches_over_small_pairs_against_every_order(seed):
    """Whole atoms, a fixed number of runs, everything in fractions: no lower value is above the best order's."""
    random = np.random.default_rng(seed)
    for _ in range(4):
        upper, lower = random_pair(random, 4)
        count, factor = int(random.integers(2, 5)), Fraction(int(random.integers(8, 20)), 8)
        best = Fraction(0)
        for order in itertools.permutations(range(4)):
            ends = [
                [sum((m[i] for i in order[: k + 1]), Fraction(0)) ** count for k in range(4)] for m in (upper, lower)
            ]
            one, two = ([b - a for a, b in zip([Fraction(0), *end], end, strict=False)] for end in ends)
            best = max(best, stick(one, two, factor))
        atoms, epsilon = Atoms.of(as_pair(upper, lower)), math.nextafter(math.log(factor), math.inf)
        law = Fixed(count=count)
        assert Fraction(column_bounds(atoms, law, epsilon, certify=False).lower) <= best
        assert Fraction(float(attained(atoms, law, np.array([epsilon]))[0])) <= best
        split = column_bounds(atoms, law, epsilon)
        assert split.lower <= split.upper


@pytest.mark.cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_first_acceptable_outputs_of_small_pairs_against_a_fine_grid(seed):
    """Two cuts inside atoms, tried on a fine grid: the lower value is not above what the theorem's supremum is."""
    random = np.random.default_rng(seed)
    pair = as_pair(*random_pair(random, 4))
    law, epsilon = Geometric(gamma=0.3), 0.2
    cuts = Cuts(Atoms.of(pair), law)
    assert cuts.lower(epsilon) <= cuts.upper(epsilon)
    root = cuts.largest_unsafe(1e-3)
    assert root == 0.0 or cuts.upper(root) > 1e-3


# The parts


def direct(masses, count):
    result = np.ones(1)
    for _ in range(count):
        result = np.convolve(result, masses)
    return result


def assert_no_mass_above(part, count, share):
    """Every positive loss has at most the mass of the direct convolution, and every tail nearly all of it."""
    found = compose_below([(part, count)])
    exact = direct(part.masses, count)
    truth = exact[1 - part.first * count :][: found.masses.size]
    assert np.all(found.masses[: truth.size] <= truth * (1.0 + 1e-15 * exact.size))
    assert np.all(found.masses[truth.size :] == 0.0)
    assert found.infinite <= -math.expm1(count * math.log1p(-part.infinite))
    tails, exact_tails = (np.cumsum(masses[::-1])[::-1] for masses in (found.masses[: truth.size], truth))
    wide = exact_tails > 1e-30
    assert np.all(tails[wide] >= share * exact_tails[wide])


@pytest.mark.parametrize("count", [1, 3, 50, 700])
def test_compositions_from_below_against_direct_convolution(count):
    random = np.random.default_rng(count)
    masses = random.random(9) ** 3 + 1e-6
    infinite = 1e-4 if count == 3 else 0.0
    part = Losses(0.01, -5, masses / masses.sum() * (1.0 - infinite), infinite)
    assert_no_mass_above(part, count, 1.0 - 1e-6)


def test_a_rare_large_loss_from_below():
    masses = np.zeros(301)
    masses[:3], masses[300] = (0.3, 0.4, 0.3 - 1e-6), 1e-6
    assert_no_mass_above(Losses(0.01, -1, masses, 0.0), 30, 0.9)


@pytest.mark.parametrize("together", [8, 2])
def test_a_tree_from_below_against_direct_convolution(together, monkeypatch):
    random = np.random.default_rng(5)
    parts = []
    for size in random.integers(2, 12, 30).tolist():
        masses = random.random(size) ** 3 + 1e-9
        infinite = 1e-6 if size > 9 else 0.0
        parts.append((Losses(0.01, -size // 2, masses / masses.sum() * (1.0 - infinite), infinite), 1))
    exact = np.ones(1)
    for part, _ in parts:
        exact = np.convolve(exact, part.masses)
    at_once = loss_below._compose_together(parts)
    monkeypatch.setattr(loss_composition, "_TOGETHER", together)
    found = compose_below(parts)
    truth = exact[1 - sum(part.first for part, _ in parts) :][: found.masses.size]
    assert np.all(found.masses[: truth.size] <= truth * (1.0 + 1e-15 * exact.size))
    assert found.infinite <= 1.0 - math.prod(1.0 - part.infinite for part, _ in parts)
    flat = at_once.masses[1 - at_once.first :]
    assert np.sum(found.masses) >= np.sum(flat) * (1.0 - 1e-9)


@pytest.mark.parametrize("failure", [0.5, 0.99])
def test_next_to_nothing_is_left_of_parts_that_mostly_fail(failure):
    """A composition of 40 such parts: its lower end is the mass of failures."""
    parts = [approximate_dp(epsilon=0.1, delta=failure), approximate_dp(epsilon=0.2, delta=failure)] * 20
    lower, upper = (compose(*parts).lower_profile.remove(np.zeros(1))[0], compose(*parts).delta(0.0))
    assert 1.0 - 1e-6 < lower <= upper == 1.0


def test_an_overstated_mass_is_caught(monkeypatch):
    """With every bin one part in 1e9 too large some mass is above the truth: the comparison above has teeth."""
    part = Losses(0.01, -1, np.array([0.2, 0.5, 0.3]), 0.0)
    whole = loss_below.transformed

    def raised(*args):
        found = whole(*args)
        return replace(found, masses=found.masses * (1.0 + 1e-9), error=0.0, slack=-found.slack)

    monkeypatch.setattr(loss_below, "transformed", raised)
    with pytest.raises(AssertionError):
        assert_no_mass_above(part, 100, 0.5)


def test_joined_pairs_lie_below_both_curves():
    mu, width = 0.8, 0.02
    here, _ = AttainedGaussian.of(mu).positive(width)
    pair = joined(here, here.scaled(0.9))
    epsilons = np.linspace(-4.0, 4.0, 161)
    assert np.all(pair.hockey_stick(epsilons) <= GaussianProfile(mu).remove(epsilons) + 1e-15)
    assert np.sum(pair.upper) == pytest.approx(1.0, abs=1e-14)
    assert np.sum(pair.lower) == pytest.approx(1.0, abs=1e-14)
    nothing = joined(Positive(width, np.zeros(3)), here)
    assert np.all(nothing.hockey_stick(np.array([0.0, 1.0])) == 0.0)


def test_the_pair_of_a_table_satisfies_the_table():
    random = np.random.default_rng(3)
    for _ in range(20):
        epsilons = np.sort(random.uniform(0.0, 3.0, 4))
        deltas = np.sort(10.0 ** random.uniform(-9.0, 0.0, 4))[::-1] * (random.random(4) < 0.8)
        g = from_profile(epsilons.tolist(), deltas.tolist())
        kept = np.minimum.accumulate(deltas)
        values = both_directions(g.lower_profile, epsilons)
        assert np.all(values <= kept)
