"""The base of mechanisms on score vectors: the exact rate, the limits of parameters, terms and method names."""

from fractions import Fraction

import pytest

from dpselect.errors import ArgumentError
from dpselect.mechanisms import PermuteAndFlip
from dpselect.mechanisms.score_mechanism import check_method, flipping_guarantee
from dpselect.privacy.output.amounts import epsilon_used


def test_the_rate_is_exact_and_twice_as_large_for_monotonic_scores():
    one = PermuteAndFlip(sensitivity=3.0, epsilon=0.1)
    assert one.rate == epsilon_used(0.1) / 6
    assert PermuteAndFlip(sensitivity=3.0, epsilon=0.1, monotonic=True).rate == epsilon_used(0.1) / 3
    assert one.rate <= Fraction(1, 60)  # what is charged is at least what is used


@pytest.mark.parametrize("name", ["sensitivity", "epsilon"])
def test_parameters_keep_their_limits(name):
    for wrong in (0.0, 2.0**-301, 2.0**301, float("nan")):
        with pytest.raises(ArgumentError, match=name):
            PermuteAndFlip(**{"sensitivity": 1.0, "epsilon": 1.0, name: wrong})
    PermuteAndFlip(**{"sensitivity": 1.0, "epsilon": 1.0, name: 2.0**-300})


def test_the_guarantee_names_the_mechanism_and_its_lower_end_is_laplace_noise():
    mechanism = PermuteAndFlip(sensitivity=2.0, epsilon=1.0, adjacency="replace_one")
    found = flipping_guarantee(mechanism, "mine", "a theorem")
    assert found.terms == {"mechanism": "mine", "sensitivity": 2.0, "epsilon": 1.0, "monotonic": False}
    assert (found.theorem, found.adjacency.value, found.pure_epsilon) == ("a theorem", "replace_one", 1.0)
    lower, upper = found.epsilon_bracket(delta=1e-12)
    assert 1.0 - 1e-8 < lower <= upper <= 1.0


def test_methods_are_two():
    check_method("exact")
    check_method("float")
    with pytest.raises(ArgumentError, match="method must be 'exact' or 'float', got 'fast'"):
        check_method("fast")
