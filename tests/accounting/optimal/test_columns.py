"""Bounds by columns: printed vectors, several epsilons at once."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.accounting.optimal import columns
from dpselect.accounting.optimal.atoms import Atoms, Index, split_atoms
from dpselect.accounting.optimal.columns import column_bounds, columns_bounds
from dpselect.accounting.optimal.problem import Problem
from dpselect.accounting.optimal.recursion import attained
from dpselect.numerics.search import Array
from dpselect.privacy.losses.discretise import DominatingPair
from dpselect.privacy.losses.pairs import GaussianPairs
from dpselect.repetitions import (
    Binomial,
    Geometric,
    Harmonic,
    Logarithmic,
    Poisson,
    Repetitions,
    Uniform,
)
from tests.accounting.optimal.recursion_cases import brute_force, split

ROUNDING = 1e-11


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


@pytest.mark.cases(2)
@pytest.mark.parametrize("law", [Poisson(mean=8.0), Poisson(mean=100.0), Logarithmic.with_mean(mean=10.0)])
def test_several_epsilons_at_once_are_bounded_as_each_alone(law: Repetitions, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they are worked on in several goes, and where the peaks of some of them are looked for again."""
    monkeypatch.setattr(columns, "_AT_ONCE", 300)
    atoms = split_atoms(GaussianPairs(0.5)(60)[0].pessimistic, law, 60)
    epsilons = np.array([0.0, 0.3, 0.3, 1.0, 2.5, 600.0])
    for certify in (True, False):
        upper, lower = columns_bounds(atoms, law, epsilons, certify=certify)
        for k, epsilon in enumerate(epsilons.tolist()):
            one = column_bounds(atoms, law, epsilon, certify=certify)
            assert (upper[k], lower[k]) == pytest.approx((one.upper, one.lower), rel=1e-12)
            assert upper[k] >= attained(atoms, law, np.array([epsilon]))[0] - ROUNDING


def test_the_blocks_grow_in_proportion_to_the_atoms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of known sign are as many as ever, and those about the change of sign lie along a line."""
    law, whole = Poisson(mean=8.0), Problem.cross_bounds
    costs: list[float] = []
    for pieces in (1000, 8000):
        counts: list[int] = []

        def counted(self: Problem, i: Index, *rest: Index, counts: list[int] = counts) -> tuple[Array, Array]:
            counts.append(i.size)
            return whole(self, i, *rest)

        monkeypatch.setattr(Problem, "cross_bounds", counted)
        atoms = split_atoms(GaussianPairs(0.5)(pieces)[0].pessimistic, law, pieces)
        bounds = column_bounds(atoms, law, 1.0)
        assert bounds.lower <= bounds.upper <= bounds.lower * (1 + 1e-3)
        costs.append(sum(counts) / atoms.size)
    assert costs[1] < 1.25 * costs[0], costs
