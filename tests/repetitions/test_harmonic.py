"""The harmonic distribution: P(K = k) is proportional to 1/k up to its limit."""

from __future__ import annotations

from fractions import Fraction

from dpselect.repetitions import Harmonic
from tests.repetitions.exact_tables import agrees_with_table


def test_three_runs_at_most():
    agrees_with_table(Harmonic(limit=3), [Fraction(0), Fraction(6, 11), Fraction(3, 11), Fraction(2, 11)])


def test_one_run_at_most_is_one_run():
    agrees_with_table(Harmonic(limit=1), [Fraction(0), Fraction(1)])


def test_a_plan_tries_integer_limits():
    (family,) = Harmonic.families()
    assert (family.name, family.whole, family.representative) == ("harmonic", True, True)
    assert family.at(7.0) == Harmonic(limit=7)
