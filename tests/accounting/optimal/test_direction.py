"""Brackets that stay wide until the atoms that leave cells open are divided: never below an exact order, and sharp."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from dpselect.accounting.best_of_k.bounds.pure import pure_best_of
from dpselect.accounting.optimal import direction
from dpselect.accounting.optimal.atoms import Atoms
from dpselect.accounting.optimal.best_of import optimal_best_of
from dpselect.accounting.optimal.columns import ColumnBounds, column_bounds
from dpselect.accounting.optimal.direction import Direction
from dpselect.accounting.optimal.profile import BestOfProfile
from dpselect.privacy import Guarantee, gaussian, laplace, pure_dp
from dpselect.repetitions import Geometric, Repetitions, TruncatedNegativeBinomial, capped
from tests.accounting.optimal.test_recursion import brute_force, random_law, random_pair, split


def ladder(base: float, stop: float, epsilon: float, steps: int) -> mpmath.mpf:
    """What one order of outputs attains: randomised response, the best of a geometric number of runs, to forty digits.

    S takes the better answer in `steps` pieces. Before each, that share of the worse one is left outside at which the
    slope of the piece is largest: where stop + (1 - stop) v' is exp(epsilon / 3) times stop + (1 - stop) v, for v and
    v' the masses outside.
    """
    with mpmath.workdps(40):
        gamma, factor = mpmath.mpf(stop), mpmath.exp(mpmath.mpf(epsilon))
        likely = mpmath.exp(base) / (1 + mpmath.exp(base))
        rare, third = 1 - likely, mpmath.exp(mpmath.mpf(epsilon) / 3)
        outside = [mpmath.mpf(10) ** (-14 * mpmath.mpf(k) / steps) for k in range(steps + 1)] + [mpmath.mpf(0)]
        total, last = mpmath.mpf(0), mpmath.mpf(1)
        for before, after in itertools.pairwise(outside):
            better = (before + after) / 2
            share = ((third - 1) * gamma / (1 - gamma) + better * (third * likely - rare)) / (likely - third * rare)
            if share > last:
                continue
            gain = mpmath.mpf(0)
            for sign, worse, good in ((1, rare, likely), (-factor, likely, rare)):
                ends = (gamma + (1 - gamma) * (share * worse + y * good) for y in (before, after))
                gain += sign * gamma * (before - after) * good / mpmath.fprod(ends)
            if total > 0 or gain > 0:
                # the shares fall, so this is one order of outputs
                total, last = total + gain, share
        return total


def first_curve(base: Guarantee, law: Repetitions, atoms: int) -> Direction:
    profile = optimal_best_of(base, law, atoms=atoms).profile
    assert isinstance(profile, BestOfProfile)
    curve = profile.curves[0]
    assert isinstance(curve, Direction)
    return curve


def check_against_ladder(base: float, stop: float, delta: float, upper: float) -> None:
    assert ladder(base, stop, upper, 200) <= delta
    assert ladder(base, stop, 0.99 * upper, 200) > delta, "the mutation: a bound 1 % smaller is beaten"


@pytest.mark.theorem("docs/theory/optimal-selection.md, Theorem 1", exact=True, sharp=True)
def test_division_certifies_what_three_times_the_pieces_do_not() -> None:
    base, law, delta = 0.01, Geometric(gamma=0.01), 1e-8
    curve = first_curve(pure_dp(epsilon=base), law, 300)
    epsilon = 0.0295
    assert curve._finer.upper(epsilon) > 2.0 * delta
    assert curve._by_division(delta, epsilon) == epsilon
    check_against_ladder(base, 0.01, delta, epsilon)
    # the order is close to the best: what it attains is not certified away
    assert curve._by_division(float(ladder(base, 0.01, epsilon, 200)) * 0.999, epsilon) == math.inf


def tried(random: np.random.Generator) -> tuple[bool, bool]:
    """Whether a price is certified at a delta just below what some order of random outputs attains, and above it."""
    pair, law, epsilon = random_pair(random, 4), random_law(random), float(random.uniform(0.0, 1.0))
    best = max(brute_force(pair, law, epsilon), brute_force(split(pair, 2), law, epsilon) if pair.upper.size < 4 else 0)
    if best < 1e-6:
        return False, False

    def cut(pieces: int) -> Atoms:
        return Atoms.of(split(pair, pieces))

    curve = Direction(cut, int(random.integers(10, 50)), law)
    below, above = (math.isfinite(curve._by_division(share * best, epsilon)) for share in (0.995, 1.15))
    return below, above


@pytest.mark.full
def test_no_order_of_outputs_exceeds_what_division_certifies() -> None:
    """From the definition: random pairs with zeros, ties and infinite losses, twelve kinds of laws, every order."""
    random = np.random.default_rng(7)
    below, above = np.count_nonzero([tried(random) for _ in range(30)], axis=0)
    assert below == 0
    assert above >= 10


@pytest.mark.full
def test_no_ladder_exceeds_what_division_certifies() -> None:
    """Randomised response near its pure price, where much is left open: just above what is attained, not below."""
    random = np.random.default_rng(8)
    divided = 0
    for _ in range(5):
        base, law = (
            float(10.0 ** random.uniform(-4.0, -1.0)),
            Geometric(gamma=float(10.0 ** random.uniform(-2.7, -2.0))),
        )
        epsilon = float(random.uniform(0.9, 0.96)) * pure_best_of(law=law, epsilon=base)
        best = float(ladder(base, law.gamma, epsilon, 120))
        curve = first_curve(pure_dp(epsilon=base), law, 400)
        assert curve._by_division(0.9999 * best, epsilon) == math.inf
        divided += curve._by_division(1.15 * best, epsilon) == epsilon and curve.upper(epsilon) > 2.0 * best
    assert divided >= 3, "most are settled by dividing alone"


def test_a_bound_one_per_cent_too_small_is_caught_after_division(monkeypatch: pytest.MonkeyPatch) -> None:
    def less(atoms: Atoms, law: Repetitions, epsilon: float, *, certify: bool = True) -> ColumnBounds:
        found = column_bounds(atoms, law, epsilon, certify=certify)
        return replace(found, upper=0.99 * found.upper)

    monkeypatch.setattr(direction, "column_bounds", less)
    random = np.random.default_rng(7)
    assert any(tried(random)[0] for _ in range(30))


@pytest.mark.cases(1)
@pytest.mark.parametrize("base", [gaussian(noise_multiplier=100.0), pure_dp(epsilon=0.1)], ids=["Gaussian", "pure"])
def test_nothing_is_divided_where_the_bracket_is_narrow(monkeypatch: pytest.MonkeyPatch, base: Guarantee) -> None:
    def never(self: Direction, delta: float, epsilon: float) -> float:
        raise AssertionError

    monkeypatch.setattr(Direction, "_by_division", never)
    optimal_best_of(base, Geometric.with_mean(mean=10), atoms=1000).epsilon_bracket(delta=1e-6)


# ---- where it is needed: 1e5 runs on the average, delta = 1e-12 ----

CORNER: list[tuple[Callable[[], Guarantee], Repetitions]] = [
    (lambda: pure_dp(epsilon=1e-4), Geometric.with_mean(mean=1e5)),
    (lambda: pure_dp(epsilon=1e-4), capped(Geometric.with_mean(mean=1e5), 200_000)),
    (lambda: pure_dp(epsilon=1e-4), TruncatedNegativeBinomial.with_mean(eta=2.0, mean=1e5)),
    (lambda: laplace(scale=1000.0), TruncatedNegativeBinomial.with_mean(eta=2.0, mean=1e5)),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", range(len(CORNER)))
def test_very_many_runs_at_a_very_small_delta_are_sharp(case: int) -> None:
    base, law = CORNER[case]
    total = optimal_best_of(base(), law)
    lower, upper = total.epsilon_bracket(delta=1e-12)
    assert lower < upper <= lower * 1.001
    if isinstance(law, Geometric):
        check_against_ladder(1e-4, 1e-5, 1e-12, upper)
        assert ladder(1e-4, 1e-5, lower * 0.999, 200) > 1e-12
