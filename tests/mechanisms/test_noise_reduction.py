"""Noise reduction: exact laws on the grid, the oracle of output privacy, optimal stopping, statistical audits."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import chi2, kstest

from dpselect.mechanisms.grid import round_to_grid
from dpselect.mechanisms.noise_reduction import (
    LaplaceReduction,
    ReleaseUntilAbove,
    stay_probability,
)
from dpselect.privacy import OutputGuarantee
from dpselect.privacy.output.oracle import output_delta
from dpselect.randomness import keyed_source
from tests.audits.broken_sparse_vectors import corrected

# --- exact: integer noise --------------------------------------------------------------------------------------


def two_sided_geometric(rate, x):
    """P(X = x) proportional to exp(-rate |x|), for an array of integers."""
    return math.tanh(rate / 2.0) * np.exp(-rate * np.abs(x))


@functools.cache
def stay(coarse, fine):
    low, _ = stay_probability(Fraction(coarse), Fraction(fine))(80)
    return float(low)


def kernel(coarse, fine, before, after, keep=None):
    """The probability of the noisier level `before` given the less noisy `after`."""
    keep = stay(coarse, fine) if keep is None else keep
    return keep * (before == after) + (1.0 - keep) * two_sided_geometric(coarse, before - after)


def path_masses(value, rates, window, keep=None, fresh=False):
    """The exact mass of each path of levels inside the window, one axis for each level."""
    y = np.arange(-window, window + 1)
    if fresh:
        return functools.reduce(np.multiply.outer, [two_sided_geometric(rate, y - value) for rate in rates])
    masses = two_sided_geometric(rates[-1], y - value)
    for coarse, fine in zip(rates[-2::-1], rates[:0:-1], strict=True):
        step = kernel(coarse, fine, y[:, None], y[None, :], keep and keep(coarse, fine))
        masses = step.reshape(*step.shape, *[1] * (masses.ndim - 1)) * masses[None]
    return masses


@pytest.mark.theorem("docs/theory/noise-reduction.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.parametrize(("coarse", "fine"), [(1.0, 2.0), (0.7, 0.8), (0.5, 6.0), (2.0, 2.5)])
def test_the_noisier_level_has_exactly_its_own_law(coarse, fine):
    """Sum over the less noisy level. Cut at 120, where masses are below exp(-60)."""
    for before in range(-6, 7):
        mass = math.fsum(
            two_sided_geometric(fine, after) * kernel(coarse, fine, before, after) for after in range(-120, 121)
        )
        assert mass == pytest.approx(two_sided_geometric(coarse, before), rel=1e-13)


def test_the_stay_probability_against_its_other_form():
    for coarse, fine in [(1, 2), (Fraction(1, 2**40), Fraction(3, 2**40)), (Fraction(1, 3), 7)]:
        low, high = stay_probability(Fraction(coarse), Fraction(fine))(90)
        assert 0 <= high - low < Fraction(1, 2**90)
        exact = (math.sinh(float(coarse) / 2) / math.sinh(float(fine) / 2)) ** 2
        assert float(low) == pytest.approx(exact, rel=1e-13)


def gradual_law(value, rates, stops, window, keep=None, fresh=False):
    """The exact masses of what a session releases: {tuple of levels: mass}, cut to |level| <= window.

    `stops(levels)` says whether the public rule stops there; the last level always does. `fresh` draws every level with
    noise of its own; `keep` replaces the probability of staying.
    """
    law = {}

    def visit(path, masses):
        if masses.ndim == 0 or (path and stops(path)):
            law[path] = float(masses.sum())
        else:
            for place, rest in enumerate(masses):
                visit((*path, place - window), rest)

    visit((), path_masses(value, rates, window, keep, fresh))
    return law


def violation(one, other, guarantee):
    """The delta that a pair of laws needs beyond the prices, the larger of both orders."""
    outputs = sorted({*one, *other})
    cells = [guarantee.cell(output) for output in outputs]
    laws = [[law.get(output, 0.0) for output in outputs] for law in (one, other)]
    prices = {cell: guarantee.price(cell) for cell in cells}
    return max(output_delta(*pair, cells=cells, epsilons=prices) for pair in (laws, laws[::-1]))


RATES = (0.5, 1.0, 1.6)
STOPS = {
    "never": lambda levels: False,
    "at a large answer": lambda levels: levels[-1] >= 2,
    "at two equal answers": lambda levels: len(levels) > 1 and levels[-1] == levels[-2],
    "depending on the first": lambda levels: (levels[0] % 2 == 0) == (len(levels) == 1),
}
CUT = 1e-9
"""Paths that leave the window of 14 (60 for one level) after a stop are cut: at most 6.3e-11 of mass, as measured."""


@pytest.mark.cases(1)
@pytest.mark.theorem("docs/theory/noise-reduction.md, Theorem 2", exact=True, sharp=True)
@pytest.mark.parametrize("stops", STOPS.values(), ids=STOPS)
def test_the_price_of_a_stopped_session_is_that_of_its_last_level(stops):
    """All paths on a window, neighbours 0 and 1. See CUT."""
    guarantee = LaplaceReduction(epsilons=RATES, sensitivity=1).guarantee
    one, other = (gradual_law(value, RATES, stops, 14) for value in (0, 1))
    assert violation(one, other, guarantee) < CUT
    for level in (1, 2, 3):
        if any(len(path) == level for path in one):
            cheaper = OutputGuarantee(cell=len, epsilons={**guarantee.epsilons, level: 0.99 * RATES[level - 1]})
            assert violation(one, other, cheaper) > 1e-4  # the oracle can fail


def test_every_released_path_is_a_post_processing_of_its_last_level():
    """The ratio of path probabilities is that of the last level alone, no matter what came before."""
    one, other = (gradual_law(value, RATES, STOPS["never"], 3) for value in (0, 1))
    for path, mass in one.items():
        expected = two_sided_geometric(RATES[-1], path[-1]) / two_sided_geometric(RATES[-1], path[-1] - 1)
        assert mass / other[path] == pytest.approx(expected, rel=1e-12)


def continuous_coin(coarse, fine):
    """Right for real-valued Laplace noise, wrong for integers."""
    return (coarse / fine) ** 2


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "broken",
    [
        lambda value: gradual_law(value, RATES, STOPS["never"], 14, fresh=True),
        lambda value: gradual_law(value, RATES, lambda levels: levels[-1] == value, 14),
        lambda value: gradual_law(value, (1.0, 3.0), lambda levels: True, 60, keep=continuous_coin),
    ],
    ids=["fresh noise at every level", "stops when it is right", "the coin of real-valued noise"],
)
def test_broken_reductions_are_caught(broken):
    rates = RATES if len(max(broken(0), key=len)) > 1 else (1.0, 3.0)
    guarantee = LaplaceReduction(epsilons=rates, sensitivity=1).guarantee
    assert violation(broken(0), broken(1), guarantee) > 1e-3


def law_with_test(value, best_score, rates, window, test, exact=False):
    """The exact law of (levels, success) when the sparse vector `test` asks a score that depends on the level."""

    @functools.cache
    def probability(sizes, answers):
        gaps = [best_score - size / 2.0 for size in sizes]
        if exact:
            return float(all((gap >= 0) == answer for gap, answer in zip(gaps, answers, strict=True)))
        return test.pattern_probability(gaps, answers)

    law = {}

    def add(key, mass):
        law[key] = law.get(key, 0.0) + mass

    for places, mass in np.ndenumerate(path_masses(value, rates, window)):
        path = tuple(place - window for place in places)
        sizes = tuple(abs(y) for y in path)
        for length in range(1, len(rates) + 1):
            answers = (False,) * (length - 1) + (True,)
            add((path[:length], True), mass * probability(sizes[:length], answers))
        add((path, False), mass * probability(sizes, (False,) * len(rates)))
    return law


@pytest.mark.theorem(
    "docs/theory/noise-reduction.md, Theorem 4",
    exact=True,
    loose="no law is known in which a level's loss and the test's are largest at once",
)
def test_a_private_test_adds_its_own_price():
    """Neighbours differ in the answer (0, 1) and in every score (by 1). Window 10."""
    rates, price = (1.0, 2.0), {"epsilon_threshold": 0.6, "epsilon_queries": 0.8}
    reduction = LaplaceReduction(epsilons=rates, sensitivity=1)
    levels, promised = reduction.guarantee, ReleaseUntilAbove(reduction=reduction, threshold=0, **price).guarantee
    test = corrected(*price.values(), 1)
    one, other = law_with_test(0, 0.0, rates, 10, test), law_with_test(1, -1.0, rates, 10, test)
    assert violation(one, other, promised) < CUT
    free = OutputGuarantee(cell=promised.cell, epsilons={cell: levels.price(cell[0]) for cell in promised.epsilons})
    assert violation(one, other, free) > 1e-3
    exact = [law_with_test(v, s, rates, 10, test, exact=True) for v, s in ((0, 0.0), (1, -1.0))]
    assert violation(*exact, promised) > 1e-3


@given(
    st.lists(st.floats(-50, 50), min_size=1, max_size=6),
    st.lists(st.floats(-1, 1), min_size=6, max_size=6),
    st.sampled_from([2.0**-10, 0.25, 1.0, 4.0]),
)
def test_rounding_is_covered_by_the_sensitivity_in_steps(values, moves, granularity):
    x = np.array(values)
    y = x + np.array(moves[: len(values)])
    distance = float(sum(abs(Fraction(a) - Fraction(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)))
    if distance > 0.0:
        moved = np.abs(round_to_grid(x, granularity) - round_to_grid(y, granularity)).sum() / granularity
        sensitivity = math.nextafter(distance, math.inf)
        levels = LaplaceReduction(epsilons=[1.0], sensitivity=sensitivity, granularity=granularity)
        assert moved <= levels._sensitivity_in_steps(len(values), whole=False)


def test_rounding_may_move_every_entry_by_a_step():
    """A small move of five entries across the middle between two grid points is five steps."""
    before, after = np.full(5, 0.499), np.full(5, 0.501)
    assert np.abs(round_to_grid(before, 1.0) - round_to_grid(after, 1.0)).sum() == 5
    for sensitivity, whole, steps in ((0.011, False, 5), (1, True, 1)):
        levels = LaplaceReduction(epsilons=[1.0], sensitivity=sensitivity)
        assert levels._sensitivity_in_steps(5, whole=whole) == steps


def test_the_coin_of_staying_is_enclosed():
    """(sinh(coarse/2) / sinh(fine/2))**2 is between both ends at every number of bits, also of nearly equal rates."""
    rates = itertools.product((1e-5, 3e-3, 0.37, 1.0, 7.3, 19.0), (1e-9, 1e-4, 0.3, 2.0), (4, 9, 64))
    with mpmath.workdps(100):
        for rate, more, bits in rates:
            coarse, fine = Fraction(rate), Fraction(rate) * (1 + Fraction(more))
            half, other = (mpmath.mpf(x.numerator) / x.denominator / 2 for x in (coarse, fine))
            exact = (mpmath.sinh(half) / mpmath.sinh(other)) ** 2
            low, high = (mpmath.mpf(x.numerator) / x.denominator for x in stay_probability(coarse, fine)(bits))
            assert low <= exact <= high <= low + mpmath.mpf(2) ** -bits


# --- statistical audits of the samplers -----------------------------------------------------------------------------

FALSE_ALARM = 1e-7


@pytest.mark.statistical
def test_each_laplace_level_has_its_law():
    """KS of 40,000 draws a level against the Laplace law, on a grid of less than 2e-5 scales.

    False alarm 1e-7 a level (threshold 0.0145); a scale that is 14 % off moves the law by 0.024, four deviations more,
    and is missed with probability below 1e-3.
    """
    size, epsilons = 40_000, [0.25, 0.5, 1.0]
    levels = LaplaceReduction(epsilons=epsilons, sensitivity=1.0 / size, granularity=2.0**-30)
    session = levels.open(np.zeros(size), random=keyed_source("laplace"))
    # sensitivity in steps is ceil(2**30 / size) + size - 1; the noise is scaled by it
    unit = levels._sensitivity_in_steps(size, whole=False) * 2.0**-30
    for epsilon in epsilons:
        assert kstest(session.release() / unit * epsilon, "laplace").pvalue > FALSE_ALARM


@pytest.mark.statistical
def test_whole_number_levels_have_their_joint_law():
    """Chi-square of 60,000 pairs of levels on 49 cells against the exact joint masses.

    False alarm 1e-7 (threshold 119). The coin of real-valued noise (0.25 instead of 0.1966) has non-centrality 194 and
    is missed with probability 3e-7; independent noises have 34,000.
    """
    size, (coarse, fine) = 60_000, (1.0, 2.0)
    session = LaplaceReduction(epsilons=[coarse, fine], sensitivity=1).open(
        np.zeros(size, dtype=int), random=keyed_source("joint")
    )
    noisy, clean = session.release(), session.release()
    inside = range(-3, 4)
    cells = {
        (a, b): two_sided_geometric(fine, b) * kernel(coarse, fine, a, b) for a, b in itertools.product(inside, inside)
    }
    rest = 1.0 - math.fsum(cells.values())
    seen = {key: int(np.sum((noisy == key[0]) & (clean == key[1]))) for key in cells}
    statistic = sum((seen[key] - size * mass) ** 2 / (size * mass) for key, mass in cells.items())
    statistic += (size - sum(seen.values()) - size * rest) ** 2 / (size * rest)
    assert statistic < chi2.isf(FALSE_ALARM, len(cells))
