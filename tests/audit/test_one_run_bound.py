"""The bound on correct guesses in one run: exact, attained, and never below the truth."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from dpselect.audit.one_run_bound import claim_test, one_run_epsilon, one_run_p_value
from dpselect.errors import ArgumentError
from dpselect.privacy import gaussian
from tests.audit.one_run_cases import extremal


def bound(v, r, m, epsilon, delta):
    return one_run_p_value(correct=v, guesses=r, canaries=m, epsilon=epsilon, delta=delta)


def published(v, r, m, epsilon, delta):
    """What public copies of the program in Appendix D of Steinke, Nasr, Jagielski 2023 compute."""
    q = 1 / (1 + math.exp(-epsilon))
    below = np.cumsum(binom.pmf(np.arange(v - 1, -1, -1), r, q))
    return min(1.0, binom.sf(v - 1, r, q) + 2 * m * delta * float(np.max(below / np.arange(1, v + 1))))


def largest_over_mechanisms(v, r, m, epsilon, delta):
    """The largest P(v or more right) over all private maps from coins to r guesses, by linear programming."""
    coins = list(itertools.product((-1, 1), repeat=m))
    says = [t for t in itertools.product((-1, 0, 1), repeat=m) if sum(map(abs, t)) == r]
    pairs = [
        (a, b)
        for a, b in itertools.permutations(range(len(coins)), 2)
        if np.sum(np.abs(np.subtract(coins[a], coins[b]))) == 2
    ]
    cells, excess = len(coins) * len(says), len(pairs) * len(says)
    right = np.array([[sum(x == y for x, y in zip(s, t, strict=True)) for t in says] for s in coins])
    gain = np.concatenate(((right >= v).ravel() / len(coins), np.zeros(excess)))
    rows, limits = [], []
    for k, (a, b) in enumerate(pairs):
        for j in range(len(says)):
            row = np.zeros(cells + excess)
            row[a * len(says) + j], row[b * len(says) + j] = 1.0, -math.exp(epsilon)
            row[cells + k * len(says) + j] = -1.0
            rows.append(row)
            limits.append(0.0)
        row = np.zeros(cells + excess)
        row[cells + k * len(says) : cells + (k + 1) * len(says)] = 1.0
        rows.append(row)
        limits.append(delta)
    whole = np.zeros((len(coins), cells + excess))
    for a in range(len(coins)):
        whole[a, a * len(says) : (a + 1) * len(says)] = 1.0
    found = linprog(-gain, A_ub=np.array(rows), b_ub=limits, A_eq=whole, b_eq=np.ones(len(coins)), method="highs")
    return -found.fun


@pytest.mark.parametrize(("m", "r", "v"), [(1, 1, 1), (2, 2, 2), (2, 1, 1), (3, 2, 2), (3, 3, 2), (3, 3, 3), (3, 2, 1)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (0.5, 0.0), (1.5, 0.01), (0.5, 0.4)])
def test_no_mechanism_exceeds_the_bound_and_some_mechanism_reaches_it(m, r, v, epsilon, delta):
    """Tolerance: that of the solver, 1e-7."""
    largest = largest_over_mechanisms(v, r, m, epsilon, delta)
    assert largest == pytest.approx(bound(v, r, m, epsilon, delta), abs=2e-7)


@pytest.mark.theorem("docs/theory/one-run-audit.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.parametrize(("m", "r", "v"), [(4, 4, 3), (5, 3, 3), (4, 2, 1), (6, 2, 2), (3, 2, 1)])
@pytest.mark.parametrize("factor", [Fraction(1), Fraction(3, 2), Fraction(4), Fraction(math.exp(1.5))])
def test_the_worst_mechanism_is_private_and_attains_the_bound_exactly(m, r, v, factor):
    """Rational arithmetic: a bound with any smaller constant is exceeded by this mechanism."""
    delta = Fraction(1, 100) if m == 3 else Fraction(1, 1000)
    masses, claimed = extremal(v, r, m, factor, delta)
    assert sum(masses) == 1
    ways = [
        math.factorial(m) // (math.factorial(w) * math.factorial(r - w) * math.factorial(m - r)) for w in range(r + 1)
    ]
    says = [t for t in itertools.product((-1, 0, 1), repeat=m) if sum(map(abs, t)) == r]

    def law(s):
        right = [sum(x == y for x, y in zip(s, t, strict=True)) for t in says]
        return [masses[w] / ways[w] for w in right]

    ones = (1,) * m
    here, there = law(ones), law((-1, *ones[1:]))  # symmetric: one neighbour stands for all
    assert sum(here) == 1
    for p, q in ((here, there), (there, here)):
        assert sum(max(x - factor * y, 0) for x, y in zip(p, q, strict=True)) == delta
    assert sum(masses[v:]) == claimed
    assert bound(v, r, m, math.log(factor), float(delta)) == pytest.approx(float(claimed), rel=2e-7)
    assert bound(v, r, m, math.log(factor), float(delta)) >= float(claimed)


def test_the_published_examples_and_that_ours_shows_more():
    """Steinke, Nasr, Jagielski 2023, Appendix D (0.673) and Section 7 (2.675, cut off after three digits)."""
    for (m, r, v, delta), theirs, digits in (
        ((1000, 100, 75, 1e-4), 0.673, 5e-4),
        ((100_000, 1510, 1439, 1e-5), 2.6755, 5e-4),
    ):
        low, high = 0.0, 6.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if published(v, r, m, middle, delta) < 0.05 else (low, middle)
        assert low == pytest.approx(theirs, abs=digits)
        assert one_run_epsilon(correct=v, guesses=r, canaries=m, delta=delta, confidence=0.95) > low + 0.02


def test_the_published_expression_is_larger_where_it_is_used_and_too_small_elsewhere():
    random = np.random.default_rng(1)
    for _ in range(400):
        r = int(random.integers(1, 200))
        v, m = int(random.integers(1, r + 1)), r + int(random.integers(0, 600))
        epsilon, delta = random.uniform(0, 5), 10 ** random.uniform(-9, -1)
        ours = bound(v, r, m, epsilon, delta)
        assert ours > 0.5 or ours <= published(v, r, m, epsilon, delta) * (1 + 1e-6)
    # that this mechanism is private: the rational test above has it, (3, 2, 1)
    masses, _ = extremal(1, 2, 3, Fraction(math.exp(1.5)), Fraction(1, 100))
    assert float(sum(masses[1:])) > published(1, 2, 3, 1.5, 0.01) + 0.001


def test_the_p_value_is_that_of_rational_arithmetic_and_rounded_up():
    for r, v, m, factor, delta in [
        (50, 40, 80, Fraction(2), Fraction(1, 10**5)),
        (200, 101, 200, Fraction(1), Fraction(1, 10**7)),
    ]:
        exact = float(extremal(v, r, m, factor, delta)[1])
        assert exact <= bound(v, r, m, math.log(factor), float(delta)) <= exact * (1 + 2e-7)


def test_far_tails_and_extreme_numbers_stay_numbers():
    assert 0.0 < bound(1439, 1510, 100_000, 0.0, 1e-5) < 1e-3
    assert bound(10**6, 10**6, 10**6, 0.0, 0.0) == 0.0
    assert bound(5, 10, 10, math.inf, 0.0) == 1.0
    assert bound(0, 10, 10, 0.0, 0.0) == 1.0
    assert bound(10, 10, 10, 0.0, 1.0) == 1.0
    steps = [bound(80, 100, 300, e, 1e-6) for e in np.linspace(0, 6, 61)]
    assert all(a <= b for a, b in itertools.pairwise(steps))
    assert one_run_epsilon(correct=100, guesses=100, canaries=100) == pytest.approx(
        -math.log(0.01 ** (-1 / 100) - 1), abs=1e-6
    )
    assert one_run_epsilon(correct=50, guesses=100, canaries=100) == 0.0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"correct": 6, "guesses": 5, "canaries": 9}, "correct"),
        ({"correct": 1, "guesses": 10, "canaries": 9}, "guesses"),
        ({"correct": 1, "guesses": 0, "canaries": 9}, "guesses"),
        ({"correct": 1, "guesses": 1, "canaries": 1, "delta": -0.1}, "delta"),
        ({"correct": 1, "guesses": 1, "canaries": 1, "confidence": 1.0}, "confidence"),
    ],
)
def test_wrong_arguments_are_named(arguments, named):
    with pytest.raises(ArgumentError, match=named):
        one_run_epsilon(**arguments)


def test_a_profile_is_tested_at_its_best_point():
    claim = gaussian(noise_multiplier=2.0)
    test = claim_test(correct=95, guesses=100, canaries=100, claim=claim)
    assert test.p_value == pytest.approx(bound(95, 100, 100, test.epsilon, claim.delta(test.epsilon)), rel=1e-9)
    assert test.p_value < 0.01
    one_point = bound(95, 100, 100, claim.epsilon(1e-6), 1e-6)
    assert one_point > 10 * test.p_value
