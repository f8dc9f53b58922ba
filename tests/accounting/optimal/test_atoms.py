"""A finite pair as sorted atoms: masses by intervals, merged and divided."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.accounting.optimal.atoms import Atoms
from dpselect.accounting.optimal.recursion import attained
from dpselect.privacy.losses.discretise import DominatingPair
from tests.accounting.optimal.test_recursion import ROUNDING, random_law, random_pair


def test_divided_atoms_are_the_same_pair() -> None:
    """Masses and divergences stay; more orders are possible, so the best of whole atoms does not fall."""
    random = np.random.default_rng(1)
    for _ in range(20):
        atoms, law = Atoms.of(random_pair(random, 6)), random_law(random)
        finer = atoms.divided(random.integers(1, 5, atoms.size))
        for epsilon in (0.0, 0.3, 1.0):
            mine, theirs = (
                float(np.sum(np.maximum(x.p - math.exp(epsilon) * x.q, 0.0))) + x.infinite for x in (atoms, finer)
            )
            assert mine == pytest.approx(theirs, rel=1e-13, abs=1e-15)
        whole, pieces = (attained(x, law, np.array([0.0, 0.5])) for x in (atoms, finer))
        assert np.all(whole <= pieces + ROUNDING)


PAIR = DominatingPair(
    losses=np.array([-np.inf, math.log(0.5), math.log(2.0), np.inf]),
    upper=np.array([0.0, 0.25, 0.5, 0.25]),
    lower=np.array([0.25, 0.5, 0.25, 0.0]),
)


def test_masses_without_a_counterpart_are_apart():
    atoms = Atoms.of(PAIR)
    assert (atoms.p.tolist(), atoms.q.tolist(), atoms.size) == ([0.25, 0.5], [0.5, 0.25], 2)
    assert (atoms.infinite, atoms.zero) == (0.25, 0.25)


def test_masses_outside_an_interval():
    atoms = Atoms.of(PAIR)
    a, b = np.array([0, 0, 1, 2]), np.array([0, 1, 2, 2])
    assert atoms.outside_p(a, b).tolist() == [1.0, 0.75, 0.5, 1.0]
    assert atoms.outside_q(a, b).tolist() == [1.0, 0.5, 0.75, 1.0]


def test_neighbours_merge_into_one_atom():
    merged = Atoms.of(PAIR).merged(1)
    assert merged.size == 2
    masses = {"p": np.array([0.1, 0.2, 0.4]), "q": np.array([0.2, 0.2, 0.2]), "infinite": 0.3, "zero": 0.4}
    coarse = Atoms(losses=np.log([0.5, 1.0, 2.0]), **masses).merged(2)
    assert coarse.p == pytest.approx([0.3, 0.4])
    assert coarse.losses == pytest.approx([math.log(0.3 / 0.4), math.log(2.0)])
    assert (coarse.infinite, coarse.zero) == (0.3, 0.4)
