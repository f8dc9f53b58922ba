"""The supremum over every mechanism that the base allows, as a named bound."""

from __future__ import annotations

from dataclasses import replace

from dpselect.accounting.best_of_k.bounds.optimal import optimal
from dpselect.accounting.optimal.best_of import optimal_best_of
from dpselect.privacy import laplace, pure_dp, zcdp
from dpselect.repetitions import Geometric

LAW = Geometric(gamma=0.1)


def test_it_is_the_optimal_accountant_with_its_atoms():
    base = laplace(scale=2.0)
    want = optimal_best_of(base, LAW, atoms=64).epsilon(1e-3)
    assert optimal(base, LAW, atoms=64).epsilon(1e-3) == want
    assert optimal(base, LAW, atoms=32).epsilon(1e-3) > want


def test_a_pure_epsilon_or_a_renyi_curve_is_enough_and_nothing_is_too_little():
    assert 2.5 < optimal(replace(pure_dp(epsilon=1.0), profile=None, renyi_curve=None), LAW).epsilon(0.0) < 2.6
    assert optimal(replace(zcdp(rho=0.1), profile=None), LAW, atoms=32) is not None
    assert optimal(replace(zcdp(rho=0.1), profile=None, renyi_curve=None), LAW) is None
