"""The optimal accountant against brute force over orders, on random pairs of few atoms.

A valid bound may be below nothing that an order attains; the recursion V is the best of some orders, so it may not lie
above brute force. Both are theorems, so the tolerance is rounding alone.
"""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.accounting.optimal.atoms import Atoms
from dpselect.accounting.optimal.columns import column_bounds
from dpselect.accounting.optimal.recursion import attained, certified
from dpselect.privacy.losses.pairs import GaussianPairs
from dpselect.repetitions import (
    Fixed,
    Geometric,
    Harmonic,
    Logarithmic,
    Poisson,
    Repetitions,
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
