"""Single runs of epsilon 20 and more: P' gives an event less probability than float64 resolves next to 1.

If K = 1 is impossible, phi' is as small there and is lost too. Upper ends must not fall below the truth, nor lower ends
rise above it.
"""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest

from dpselect.accounting import best_of
from dpselect.accounting.best_of_k.bounds.pure import pure_best_of
from dpselect.accounting.optimal import direction
from dpselect.accounting.optimal.atoms import Atoms
from dpselect.accounting.optimal.problem import Problem
from dpselect.privacy import compose, gaussian, laplace, pure_dp
from dpselect.repetitions import Fixed, Geometric, Repetitions, Tabulated
from dpselect.testing.exact import finite_guarantee
from tests.accounting.optimal.peaks_cases import near_pair, some_law

EVEN = Tabulated(probabilities=(0.0, 0.0, 0.5, 0.5))
LAWS = [Fixed(count=2), Fixed(count=5), EVEN, Tabulated(probabilities=(0.0, 1e-12, 0.5, 0.5 - 1e-12))]
EPSILONS = [20.0, 33.0, 36.5, 60.0]
DELTAS = [1e-12, 1e-6, 0.1]


def exactly(law: Repetitions, epsilon: float, delta: float) -> float:
    """The epsilon of the event that all of K runs of randomised response give the answer that P makes likely."""
    with mpmath.workdps(150):
        small = 1 / (1 + mpmath.e ** mpmath.mpf(epsilon))
        masses = [mpmath.mpf(float(law.pmf(k))) for k in range((law.limit or 0) + 1)]
        near, far = (mpmath.fsum(p * v**k for k, p in enumerate(masses)) for v in (1 - small, small))
        return float(mpmath.log((near - mpmath.mpf(delta)) / far))


CASES = [(law, epsilon, delta) for delta in DELTAS for epsilon in EPSILONS for law in LAWS]


@pytest.mark.parametrize(("law", "epsilon", "delta"), [(LAWS[0], 36.5, 0.1), (EVEN, 60.0, 0.1), *CASES], ids=str)
@pytest.mark.cases(2)
def test_no_price_is_below_an_event_that_is_attained(law: Repetitions, epsilon: float, delta: float) -> None:
    """Before masses were rounded outwards 36.5 had a price 0.8 % too small, and 60 one that was 20 too small."""
    base, truth = pure_dp(epsilon=epsilon), exactly(law, epsilon, delta)
    for bound in ("optimal", None):
        price = best_of(base, law, bound=bound).epsilon(delta)
        assert truth * (1.0 - 1e-12) <= price <= pure_best_of(law=law, epsilon=epsilon) * (1.0 + 1e-9)


@pytest.mark.full
def test_a_bound_that_is_far_off_is_looked_at_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look takes 0.3 s where no sign is settled, and there were 19."""
    looks: list[bool] = []
    bounds = direction.column_bounds
    monkeypatch.setattr(
        direction,
        "column_bounds",
        lambda atoms, law, epsilon, certify=True: looks.append(certify) or bounds(atoms, law, epsilon, certify=certify),
    )
    law = Tabulated(probabilities=(0.0, 1e-188, 2.7e-7, 2.6e-13, 0.0, 3.8e-10, 1.0 - 2.7e-7 - 3.8e-10 - 2.6e-13))
    base, delta = pure_dp(epsilon=38.5), 0.4
    lower, upper = best_of(base, law, bound="optimal").epsilon_bracket(delta)
    assert sum(looks) <= 10
    assert exactly(law, 38.5, delta) * (1.0 - 1e-12) <= upper
    assert lower <= upper


@pytest.mark.full
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_no_bracket_is_crossed(law: Repetitions) -> None:
    for epsilon in EPSILONS:
        lower, upper = best_of(pure_dp(epsilon=epsilon), law).epsilon_bracket(1e-6)
        assert lower <= upper


@pytest.mark.full
@pytest.mark.parametrize("base", [gaussian(noise_multiplier=0.1), laplace(scale=1 / 40)], ids=str)
def test_lower_ends_are_below_the_composition_of_all_runs(base) -> None:
    for count in (2, 3):
        price, all_runs = best_of(base, Fixed(count=count)), compose(*[base] * count)
        for delta in (1e-6, 0.1):
            assert price.epsilon_bracket(delta)[0] <= all_runs.epsilon(delta)


def test_laws_with_single_runs_lose_nothing() -> None:
    """Their phi' is nowhere much smaller than elsewhere: the bracket stays narrow at any epsilon."""
    lower, upper = best_of(pure_dp(epsilon=60.0), Geometric(gamma=0.1), bound="optimal").epsilon_bracket(1e-6)
    assert upper - lower < 1e-4


def test_an_empty_interval_has_no_mass_even_by_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each outcome pays for what rounding may have left below it: 32.43, and two minutes to find that."""
    looks: list[bool] = []
    bounds = direction.column_bounds
    monkeypatch.setattr(direction, "column_bounds", lambda *given, **how: looks.append(True) or bounds(*given, **how))
    lower, upper = best_of(gaussian(noise_multiplier=1 / math.sqrt(12)), Fixed(count=2)).epsilon_bracket(1e-5)
    assert 32.176 < lower <= upper < 32.177
    assert len(looks) < 60
    lower, upper = best_of(gaussian(noise_multiplier=1 / 6), Fixed(count=2)).epsilon_bracket(1e-5)
    assert 60.0 < lower <= upper < 75.0
    assert len(looks) < 160


def odd_pair(random: np.random.Generator) -> tuple[list[float], list[float]]:
    """A few outcomes with losses of 5 to 45 and P'-masses down to 1e-28, and one that has the rest of both masses."""
    count = int(random.integers(1, 4))
    q = 10.0 ** -random.uniform(1.0, 28.0, count)
    p = q * np.exp(random.uniform(5.0, 45.0, count))
    p *= min(1.0, random.uniform(0.1, 0.99) / p.sum())
    return [*p.tolist(), 1.0 - p.sum()], [*q.tolist(), 1.0 - q.sum()]


def most_attained(law: Repetitions, epsilon: float, p: list[float], q: list[float]) -> float:
    """The largest delta at epsilon over all orders of whole outcomes, in both directions."""
    with mpmath.workdps(120):
        chances = [mpmath.mpf(float(law.pmf(k))) for k in range((law.limit or 0) + 1)]
        sides = [[*map(mpmath.mpf, masses[:-1])] for masses in (p, q)]
        above, below = ([*masses, 1 - mpmath.fsum(masses)] for masses in sides)
        totals = []
        for first, second in ((above, below), (below, above)):
            for order in itertools.permutations(range(len(p))):
                terms = []
                for masses in (first, second):
                    sums = [mpmath.fsum(masses[i] for i in order[:k]) for k in range(len(p) + 1)]
                    values = [mpmath.fsum(c * x**k for k, c in enumerate(chances)) for x in sums]
                    terms.append([after - before for before, after in itertools.pairwise(values)])
                factor = mpmath.e ** mpmath.mpf(epsilon)
                totals.append(mpmath.fsum(max(0, a - factor * b) for a, b in zip(*terms, strict=True)))
        return float(max(totals))


@pytest.mark.full
def test_no_price_of_an_odd_pair_is_below_an_order_that_is_attained() -> None:
    """Half of these prices are within 1 % of what is attained, so that a smaller one would be seen."""
    random, seen = np.random.default_rng(9), 0
    for number in range(48):
        law, (p, q), delta = LAWS[number % len(LAWS)], odd_pair(random), 10.0 ** -random.uniform(0.3, 8.0)
        price = best_of(finite_guarantee(p, q), law, bound="optimal").epsilon(delta)
        if math.isfinite(price):
            assert most_attained(law, price, p, q) <= delta * (1.0 + 1e-9)
            seen += most_attained(law, 0.99 * price, p, q) > delta
    assert seen >= 20


@pytest.mark.full
def test_bounds_on_the_cross_derivative_hold_at_small_losses() -> None:
    """log of phi''(F) / phi''(F') at random places of random blocks of cells, from the definition."""
    random = np.random.default_rng(5)
    for _ in range(200):
        scale = float(10.0 ** random.uniform(-5, 0))
        atoms, law = Atoms.of(near_pair(random, 24, scale)), some_law(random)
        problem = Problem(atoms, law, np.array([scale]))
        if problem.first >= atoms.size - 1:
            continue
        j = int(random.integers(problem.first, atoms.size))
        j_end = int(random.integers(j, atoms.size)) + 1
        i = int(random.integers(0, j + 1))
        i_end = int(random.integers(i, j + 1)) + 1
        block = (np.array([z]) for z in (i, i_end, j, j_end))
        top, bottom = (x[0] for x in problem.cross_bounds(*block, problem.epsilons))
        for _ in range(20):
            row, column = int(random.integers(i, i_end)), int(random.integers(j, j_end))
            s, t = random.uniform(size=2)
            if row > column or (row == column and s > t):
                continue
            outside = [
                below[row] + s * mass[row] + (1.0 - t) * mass[column] + above[column + 1]
                for below, mass, above in (
                    (atoms.below_p, atoms.p, atoms.above_p),
                    (atoms.below_q, atoms.q, atoms.above_q),
                )
            ]
            second = [float(law.second_derivative(min(v, 1.0))) for v in outside]
            value = math.exp(atoms.losses[row] + atoms.losses[column] - scale) * second[0] - second[1]
            noise = 1e-12 * (second[0] + second[1])
            assert bottom - noise <= value <= top + noise
