"""Prices where one run leaks little: sharp, above what exact adversaries reach, and found in few evaluations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import mpmath
import numpy as np
import pytest

from dpselect.accounting import best_of
from dpselect.accounting.best_of_k.bounds.pure import pure_best_of, searched_shift
from dpselect.accounting.candidates.conditional import conditional_sampling
from dpselect.accounting.candidates.threshold import threshold_stopping
from dpselect.accounting.optimal import direction
from dpselect.accounting.optimal.atoms import Atoms
from dpselect.accounting.optimal.best_of import optimal_best_of
from dpselect.accounting.optimal.cuts import Cuts
from dpselect.accounting.optimal.peaks import find_peaks
from dpselect.accounting.optimal.problem import Problem
from dpselect.privacy import Guarantee, gaussian, laplace, pure_dp
from dpselect.repetitions import (
    Geometric,
    Harmonic,
    Logarithmic,
    Poisson,
    Repetitions,
    TruncatedNegativeBinomial,
    Uniform,
    capped,
)
from tests.accounting.optimal.peaks_cases import near_pair, some_law
from tests.accounting.optimal.test_best_of import best_order

WIDTH = 2e-3
BASES: dict[str, Callable[[], Guarantee]] = {
    **{f"pure {e:g}": lambda e=e: pure_dp(epsilon=e) for e in (1e-4, 1e-3, 1e-2, 1e-1)},
    **{f"Gaussian {s:g}": lambda s=s: gaussian(noise_multiplier=s) for s in (10.0, 100.0, 1e3, 1e4)},
    "Laplace 1000": lambda: laplace(scale=1000.0),
}
LAWS: dict[str, Callable[[float], Repetitions]] = {
    "geometric": lambda m: Geometric.with_mean(mean=m),
    "logarithmic": lambda m: Logarithmic.with_mean(mean=m),
    "negative binomial 2": lambda m: TruncatedNegativeBinomial.with_mean(eta=2.0, mean=m),
    "negative binomial -0.5": lambda m: TruncatedNegativeBinomial.with_mean(eta=-0.5, mean=m),
    "Poisson": lambda m: Poisson(mean=m),
    "harmonic": lambda m: Harmonic(limit=int(min(3 * m * max(1.0, math.log(m)), 2**20))),
    "capped geometric": lambda m: capped(Geometric.with_mean(mean=m), int(2 * m)),
    "conditioned geometric": lambda m: Geometric.with_mean(mean=m).at_most(int(2 * m)),
}
MEANS = (2.0, 10.0, 1e3, 1e5)
DELTAS = (0.0, 1e-12, 1e-6, 1e-3)
Work = dict[str, int]


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """How many boxes of cuts are bounded, how many columns are computed, and how often their bounds are certified."""
    done = {"boxes": 0, "columns": 0, "certified": 0}
    bounds, columns = Cuts._bounds, direction.column_bounds

    def counted_bounds(self: Cuts, epsilon: float, none: bool, boxes: np.ndarray) -> object:
        done["boxes"] += boxes.shape[1]
        return bounds(self, epsilon, none, boxes)

    def counted_columns(atoms: Atoms, law: Repetitions, epsilon: float, *, certify: bool = True) -> object:
        done["columns"] += atoms.size
        done["certified"] += certify
        return columns(atoms, law, epsilon, certify=certify)

    monkeypatch.setattr(Cuts, "_bounds", counted_bounds)
    monkeypatch.setattr(direction, "column_bounds", counted_columns)
    return done


def check_width(total: Guarantee, delta: float) -> None:
    lower, upper = total.epsilon_bracket(delta=delta)
    assert 0.0 <= lower <= upper
    assert upper <= lower * (1.0 + WIDTH) or upper == 0.0 or (delta == 0.0 and upper == total.pure_epsilon)


# ---- the cases of which it was known that they took long or were wide ----


@pytest.mark.cases(1)
@pytest.mark.parametrize(("epsilon", "stop", "delta"), [(1e-3, 0.1, 1e-6), (1e-3, 1e-3, 1e-6), (1e-2, 1e-3, 1e-9)])
def test_threshold_stopping_of_small_losses_takes_few_boxes(
    work: Work, epsilon: float, stop: float, delta: float
) -> None:
    check_width(threshold_stopping(pure_dp(epsilon=epsilon), stop_probability=stop), delta)
    assert work["boxes"] < 200_000


@pytest.mark.full
@pytest.mark.parametrize("truncation", ["conditioned", "capped"])
def test_a_limit_of_tries_takes_few_boxes(work: Work, truncation: str) -> None:
    """The first guess finds the best cut, so one search certifies each end; for one pair, both ends share a curve."""
    total = threshold_stopping(pure_dp(epsilon=1e-3), stop_probability=0.01, max_runs=20, truncation=truncation)
    check_width(total, 1e-6)
    assert work["boxes"] < 16_000
    done = work["boxes"]
    total.epsilon_bracket(delta=1e-6)
    assert work["boxes"] == done, "the same question takes no work"


@pytest.mark.full
@pytest.mark.parametrize(
    ("base", "law"),
    [
        ("Gaussian 1000", Geometric.with_mean(mean=1e5)),
        ("Gaussian 1000", capped(Geometric.with_mean(mean=10), 20)),
        ("pure 0.001", capped(Geometric.with_mean(mean=10), 20)),
        ("Laplace 1000", Logarithmic.with_mean(mean=10)),
    ],
)
def test_best_of_with_small_losses_takes_few_columns(work: Work, base: str, law: Repetitions) -> None:
    """A column of one atom costs about a microsecond, three dozens where it is certified."""
    check_width(optimal_best_of(BASES[base](), law), 1e-6)
    assert work["columns"] < 180_000
    assert work["certified"] <= 4


@pytest.mark.full
def test_the_coin_before_the_first_try_is_as_sharp() -> None:
    check_width(conditional_sampling(gaussian(noise_multiplier=1000.0), floor=1e-3, bound="optimal"), 1e-6)


# ---- the grid ----


def searches() -> Iterator[tuple[str, str, float, float]]:
    yield from itertools.product(BASES, LAWS, MEANS, DELTAS)


@pytest.mark.full
@pytest.mark.parametrize(("base", "law", "mean", "delta"), list(itertools.islice(searches(), 5, None, 97)))
def test_best_of_is_sharp(base: str, law: str, mean: float, delta: float) -> None:
    check_width(optimal_best_of(BASES[base](), LAWS[law](mean)), delta)


@pytest.mark.slow
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("law", LAWS)
def test_best_of_is_sharp_everywhere(base: str, law: str) -> None:
    for mean, delta in itertools.product(MEANS, DELTAS):
        check_width(optimal_best_of(BASES[base](), LAWS[law](mean)), delta)


LIMITS = ((None, "conditioned"), (20, "conditioned"), (20, "capped"))
STOPS = (0.5, 0.1, 1e-2, 1e-4)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("base", "stop", "limit", "delta"), list(itertools.product(BASES, STOPS, LIMITS, DELTAS))[3::23]
)
def test_threshold_stopping_is_sharp(base: str, stop: float, limit: tuple[int | None, str], delta: float) -> None:
    check_width(threshold_stopping(BASES[base](), stop_probability=stop, max_runs=limit[0], truncation=limit[1]), delta)


@pytest.mark.slow
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("limit", LIMITS)
def test_threshold_stopping_is_sharp_everywhere(base: str, limit: tuple[int | None, str]) -> None:
    for stop, delta in itertools.product(STOPS, DELTAS):
        check_width(
            threshold_stopping(BASES[base](), stop_probability=stop, max_runs=limit[0], truncation=limit[1]), delta
        )


# ---- exact adversaries, to forty digits ----


def geometric_release(stop: mpmath.mpf, accepted: mpmath.mpf) -> mpmath.mpf:
    """h(u) for the coin after each failure."""
    return 1 / (stop + (1 - stop) * accepted)


def cut_epsilon(base: float, stop: float, delta: float, x: mpmath.mpf, y: mpmath.mpf, none: bool) -> mpmath.mpf:
    """The epsilon that one set attains: shares x of the worse answer accepted, y of the better one in the set."""
    better = mpmath.exp(base) / (1 + mpmath.exp(base))
    gained = []
    for worse, good in ((1 - better, better), (better, 1 - better)):
        n, s = x * worse, y * good
        h = geometric_release(mpmath.mpf(stop), n + s)
        gained.append(1 - n * h if none else s * h)
    return mpmath.log((gained[0] - delta) / gained[1]) if gained[0] > delta else mpmath.mpf(0)


@pytest.mark.full
@pytest.mark.parametrize(
    ("base", "stop", "delta"),
    [(1e-3, 0.1, 1e-6), (1e-4, 0.5, 1e-6), (1e-2, 1e-3, 1e-5), (1e-1, 1e-2, 1e-3), (1e-3, 1e-3, 1e-9)],
)
def test_no_exact_set_beats_the_bound_and_some_reach_it(base: float, stop: float, delta: float) -> None:
    """Shares on logarithmic grids, sets with and without "none"; 1 % off the bound is caught."""
    lower, upper = threshold_stopping(pure_dp(epsilon=base), stop_probability=stop).epsilon_bracket(delta=delta)
    shares = [mpmath.mpf(0), *(mpmath.mpf(10) ** (-k / mpmath.mpf(4)) for k in range(40))]
    with mpmath.workdps(40):
        best = max(
            cut_epsilon(base, stop, delta, x, y, none)
            for x, y, none in itertools.product(shares, shares, (False, True))
        )
    assert best <= upper
    assert 0.99 * upper < best, "the mutation: a bound 1 % smaller is beaten"
    assert best > 0.99 * lower


@pytest.mark.parametrize(("base", "stop", "share"), [(1e-3, 0.1, 0.5), (1e-4, 0.5, 0.3), (1e-2, 0.05, 0.4)])
def test_no_exact_order_beats_the_best_of_many(base: float, stop: float, share: float) -> None:
    """Randomised response in 160 pieces: the best order of an independent recursion, its divergence to forty digits.

    At epsilon = share * pure price. One per cent off the bound is caught.
    """
    law = Geometric(gamma=stop)
    epsilon = share * pure_best_of(law=law, epsilon=base)
    bound = optimal_best_of(pure_dp(epsilon=base), law).delta(epsilon)
    shares = np.diff(np.concatenate(([0.0], np.geomspace(1e-4, 0.02, 12), np.linspace(0.03, 1.0, 68))))
    better = 1.0 / (1.0 + math.exp(-base))
    p, q = (np.concatenate((x * shares[::-1], (1.0 - x) * shares)) for x in (1.0 - better, better))
    order, chosen = best_order(p, q, lambda s: stop * s / (1.0 - (1.0 - stop) * s), epsilon)
    with mpmath.workdps(40):
        likely, factor, gamma = mpmath.exp(base) / (1 + mpmath.exp(base)), mpmath.exp(epsilon), mpmath.mpf(stop)
        parts = [mpmath.mpf(x) for x in shares]
        total = mpmath.fsum(parts)
        attained = mpmath.mpf(0)
        for first, sign in ((1 - likely, 1), (likely, -factor)):
            masses = [first * x / total for x in parts[::-1]] + [(1 - first) * x / total for x in parts]
            reached = mpmath.mpf(0)
            for atom, taken in zip(order, chosen, strict=True):
                low, reached = reached, reached + masses[atom]
                if taken:
                    # phi(s) = g s / (1 - (1 - g) s), at the end less at the start
                    fall = (1 - (1 - gamma) * low) * (1 - (1 - gamma) * reached)
                    attained += sign * gamma * masses[atom] / fall
    assert attained <= bound
    assert 0.99 * bound < attained


@pytest.mark.parametrize("epsilon", [1e-10, 1e-4, 1.0])
def test_the_shift_of_a_law_without_a_closed_form_is_exact(epsilon: float) -> None:
    """At the kink, where it is largest for these laws, from the coefficients; other places are not above it."""
    for law in (Harmonic(limit=8), Uniform(limit=5), capped(Geometric(gamma=0.05), 12)):
        assert law.limit is not None
        with mpmath.workdps(40):
            slope = [k * mpmath.mpf(float(law.pmf(k))) for k in range(law.limit, 0, -1)]
            growth = mpmath.exp(mpmath.mpf(epsilon))
            shifts = [
                mpmath.log(mpmath.polyval(slope, 1 - v) / mpmath.polyval(slope, 1 - growth * v))
                for v in (mpmath.exp(-mpmath.mpf(k) / 8) / (1 + growth) for k in range(40))
            ]
        assert max(shifts) <= searched_shift(law, epsilon)
        if shifts[0] == max(shifts):
            assert searched_shift(law, epsilon) <= shifts[0] * (1 + 2e-4)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-6])
def test_limits_of_very_many_runs_cost_no_more_than_none(epsilon: float) -> None:
    """A law drawn again until it is within a limit costs no more than without one, by the closed form."""
    law = Geometric.with_mean(mean=1e4)
    unlimited = pure_best_of(law=law, epsilon=epsilon)
    assert pure_best_of(law=law.at_most(20_000), epsilon=epsilon) <= unlimited * (1.0 + 1e-4)
    assert unlimited < 3.0 * epsilon


@pytest.mark.full
@pytest.mark.parametrize("epsilon", [1e-4, 1e-2])
def test_the_pure_price_is_approached_as_delta_vanishes(epsilon: float) -> None:
    for law in (Geometric(gamma=1e-2), Logarithmic.with_mean(mean=1e3)):
        pure = pure_best_of(law=law, epsilon=epsilon)
        total = best_of(pure_dp(epsilon=epsilon), law, atoms=300)
        lower, upper = total.epsilon_bracket(delta=1e-12)
        assert total.epsilon(delta=0.0) == pytest.approx(pure, rel=1e-9)
        assert 0.98 * pure < lower <= upper <= pure * (1.0 + 1e-12)


@pytest.mark.full
def test_prices_are_in_order() -> None:
    """More privacy of one run, more delta and fewer runs cost no more."""

    def bracket(epsilon: float, stop: float, delta: float) -> tuple[float, float]:
        return threshold_stopping(pure_dp(epsilon=epsilon), stop_probability=stop).epsilon_bracket(delta=delta)

    middle = bracket(1e-3, 1e-2, 1e-6)
    for cheaper in (bracket(9e-4, 1e-2, 1e-6), bracket(1e-3, 1e-1, 1e-6), bracket(1e-3, 1e-2, 1.2e-6)):
        assert cheaper[0] <= middle[1]
        assert cheaper[1] <= middle[0], "the steps are wider than the brackets"
    noisy, quiet = (
        best_of(gaussian(noise_multiplier=s), Geometric.with_mean(mean=100)).epsilon_bracket(delta=1e-6)
        for s in (1100.0, 1000.0)
    )
    assert noisy[1] <= quiet[0]


def test_densities_stay_within_their_bounds() -> None:
    """Inside every column, on top of its peak and of other nodes; and one may exceed another only as far as is said."""
    random = np.random.default_rng(6)
    for _ in range(60):
        scale = float(10.0 ** random.uniform(-4, 0))
        atoms, law = Atoms.of(near_pair(random, 30, scale)), some_law(random)
        problem = Problem(atoms, law, np.array([scale]))
        b = problem.ends
        if not b.size:
            continue
        nodes = find_peaks(problem).far, random.integers(0, b + 2)
        densities = [problem.density(a, problem.columns) for a in nodes]
        for y in np.linspace(0.0, 1.0, 9):
            values = []
            for a, density in zip(nodes, densities, strict=True):
                within = np.minimum(a, b)
                empty, part = a > b, np.where(a <= b, y, 0.0)
                terms = [
                    mass[b]
                    * np.exp(law.log_derivative(np.where(empty, 1.0, outside(within, b) - part * mass[b]).clip(0.0)))
                    for mass, outside in ((atoms.p, atoms.outside_p), (atoms.q, atoms.outside_q))
                ]
                values.append(terms[0] - math.exp(scale) * terms[1])
                low, high = density.range()
                assert np.all((low <= values[-1]) & (values[-1] <= high))
            assert np.all(values[1] - values[0] <= densities[1].excess_over(densities[0]))


# ---- very many tries, very small acceptable sets ----


@pytest.mark.full
@pytest.mark.parametrize(
    ("base", "stop", "delta"), [(1e-7, 1e-9, 1e-10), (1e-6, 1e-12, 1e-9), (1e-5, 1e-12, 1e-9), (1e-7, 1e-12, 1e-9)]
)
def test_very_many_tries_attain_no_more_than_the_pure_price(base: float, stop: float, delta: float) -> None:
    """Twice the base's epsilon bounds every search with a coin; read from 1 - u, "none" loses the digits of u."""
    attained = threshold_stopping(pure_dp(epsilon=base), stop_probability=stop).lower_profile
    assert attained is not None
    assert base < attained.epsilon_lower_bound(delta) <= 2.0 * base  # type: ignore[attr-defined]
