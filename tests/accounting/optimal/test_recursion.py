"""The optimal accountant against brute force over orders, on random pairs of few atoms.

A valid bound may be below nothing that an order attains; the recursion V is the best of some orders, so it may not lie
above brute force. Both are theorems, so the tolerance is rounding alone.
"""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.accounting.optimal.atoms import Atoms
from dpselect.accounting.optimal.columns import column_bounds
from dpselect.accounting.optimal.profile import BestOfLowerProfile, BestOfProfile
from dpselect.accounting.optimal.recursion import attained, certified
from dpselect.privacy.losses.discretise import DominatingPair, PairEnclosure
from dpselect.privacy.losses.pairs import GaussianPairs
from dpselect.repetitions import (
    Binomial,
    Fixed,
    Geometric,
    Harmonic,
    Logarithmic,
    Poisson,
    Repetitions,
    Uniform,
)
from tests.accounting.optimal.recursion_cases import brute_force, random_law, random_pair, split

ROUNDING = 1e-11


def check(random: np.random.Generator, most: int) -> None:
    pair, law, epsilon = random_pair(random, most), random_law(random), float(random.uniform(0.0, 3.0))
    best = brute_force(pair, law, epsilon)
    finer = split(pair, int(random.integers(2, 6)))
    values = []
    for atoms in (Atoms.of(pair), Atoms.of(finer)):
        columns = column_bounds(atoms, law, epsilon)
        recursion = float(attained(atoms, law, np.array([epsilon]))[0])
        bound = float(certified(atoms, law, np.array([epsilon]))[0])
        assert columns.lower <= recursion + ROUNDING
        values.append((columns.upper, recursion, bound))
    assert values[0][1] <= best + ROUNDING, "the recursion is the value of an order"
    for upper, _, bound in values:
        # brute force and the recursion on split atoms are both attained; so neither certificate may be below them
        assert min(upper, bound) >= max(best, values[1][1]) - ROUNDING, (pair, law, epsilon)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(8))
def test_never_below_an_attained_order(seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(40):
        check(random, 5)


@pytest.mark.slow
def test_never_below_an_attained_order_on_many_pairs_of_up_to_seven_atoms() -> None:
    random = np.random.default_rng(20_240)
    for _ in range(2_500):
        check(random, 7)


@pytest.mark.full
def test_a_bound_that_is_one_per_cent_too_small_is_caught() -> None:
    """The check above is not vacuous: where the bounds are tight an order beats 99 % of them."""
    random = np.random.default_rng(3)
    caught = 0
    for _ in range(30):
        pair = random_pair(random, 5)
        law, epsilon = random_law(random), float(random.uniform(0.0, 1.0))
        fine = Atoms.of(split(pair, 60))
        upper = column_bounds(fine, law, epsilon).upper
        caught += float(attained(fine, law, np.array([epsilon]))[0]) > 0.99 * upper
    assert caught >= 10


def test_the_published_three_point_vectors() -> None:
    """P = (.5, .3, .2), Q = (.4, .3, .3), all six orders (values computed independently, to 8 digits)."""
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.3, 0.3, 0.4])
    pair = DominatingPair(losses=np.log(p / q), upper=p, lower=q)
    rows = [
        (Geometric(gamma=0.1), (0.0965251, 0.0809500, 0.00045382)),
        (Logarithmic(gamma=0.1), (0.1210437, 0.0900055, 0.0)),
        (Poisson(mean=5), (0.1447493, 0.1244584, 0.0195897)),
        (Binomial(trials=10, probability=0.5), (0.1518040, 0.1325145, 0.0328210)),
        (Harmonic(limit=10), (0.1297436, 0.0995031, 0.0)),
        (Uniform(limit=10), (0.1184619, 0.1008806, 0.0100161)),
    ]
    for law, expected in rows:
        for epsilon, value in zip((0.0, 0.1, 0.5), expected, strict=True):
            assert brute_force(pair, law, epsilon) == pytest.approx(value, abs=6e-8)
            assert column_bounds(Atoms.of(split(pair, 40)), law, epsilon).upper >= value - 6e-8


def bracket_widths(seed: int, pairs: int) -> np.ndarray:
    """Relative widths of the bracket of epsilon on few-atom pairs, cut into pieces as the accountant does."""
    random = np.random.default_rng(seed)
    widths = []
    for _ in range(pairs):
        pair, law = random_pair(random, 7), random_law(random)
        both = PairEnclosure(pair, pair)

        def pairs_of(atoms: int, both: PairEnclosure = both) -> tuple[PairEnclosure, PairEnclosure]:
            return both, both.swapped()

        delta = float(10.0 ** random.uniform(-8.0, -2.0))
        upper = BestOfProfile(pairs_of, law, 3000).epsilon(delta)
        lower = BestOfLowerProfile(pairs_of, law, 3000).epsilon_lower_bound(delta)
        assert lower <= upper * (1 + 1e-12)
        if 0.05 <= upper <= 20.0:
            widths.append((upper - lower) / upper)
    return np.array(widths)


@pytest.mark.full
def test_lower_and_upper_meet_on_refined_atoms() -> None:
    """All laws: at most the stated 0.2 % of epsilon on nine of ten pairs, 2 % on each."""
    widths = bracket_widths(11, 8)
    assert np.quantile(widths, 0.9) <= 2e-3
    assert np.max(widths) <= 2e-2


@pytest.mark.slow
def test_lower_and_upper_meet_on_many_pairs() -> None:
    """As above, on 200 pairs."""
    widths = bracket_widths(12, 200)
    assert np.quantile(widths, 0.9) <= 2e-3
    assert np.max(widths) <= 2e-2


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    "law", [Geometric(gamma=0.1), Logarithmic(gamma=0.01), Poisson(mean=10), Fixed(count=5), Harmonic(limit=30)]
)
def test_columns_and_recursion_agree_on_a_gaussian_base(law: Repetitions) -> None:

    atoms = Atoms.of(GaussianPairs(1.0)(300)[0].pessimistic)
    epsilons = np.array([0.5, 2.0, 5.0])
    values, bounds = attained(atoms, law, epsilons), certified(atoms, law, epsilons)
    for epsilon, value, bound in zip(epsilons, values, bounds, strict=True):
        found = column_bounds(atoms, law, float(epsilon))
        # the relaxation gives nothing away here: the reference path is the optimal order
        assert found.lower == pytest.approx(value, rel=1e-4)
        assert value <= min(found.upper, bound)
        assert found.upper <= 1.04 * value
        assert bound <= 1.05 * value
