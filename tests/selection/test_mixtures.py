"""Mixtures of candidates: exact weights, candidates made only when drawn, and the average guarantee."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpselect.accounting import mixture
from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.privacy import pure_dp, zcdp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from dpselect.selection import PrivateCandidate, private_mixture, select_best, uniform_mixture, weighted_mixture

FALSE_ALARM = 1e-6


def constant(value):
    return lambda random: (0.0, value)


class Scripted:
    """A source whose next uniform integer is the given one; it records the bound that was asked for."""

    def __init__(self, drawn):
        self.drawn, self.bounds = drawn, []

    def below(self, bound):
        self.bounds.append(bound)
        return self.drawn


@pytest.mark.parametrize(
    ("weights", "whole"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ([0.5, 0.25, 0.0], [2, 1, 0]),
        ([Fraction(1, 3), Fraction(1, 2), Fraction(1, 6)], [2, 3, 1]),
        ([np.float64(0.5), np.int64(1), Fraction(1, 2)], [1, 2, 1]),
    ],
)
def test_weights_are_drawn_exactly(weights, whole):
    """Every one of the equally likely integers, in turn: candidate i for exactly whole[i] of them."""
    proposal = weighted_mixture([constant(0), constant(1), constant(2)], weights)
    source = Scripted(0)
    drawn = []
    for source.drawn in range(sum(whole)):
        drawn.append(proposal(source)[1])
    assert [drawn.count(i) for i in range(3)] == whole
    assert set(source.bounds) == {sum(whole)}


def test_a_double_weight_is_taken_at_its_exact_value():
    """0.1 is not a tenth: the total of 0.1 and 0.9 is an integer of units of 2**-55."""
    source = Scripted(0)
    weighted_mixture([constant(0), constant(1)], [0.1, 0.9])(source)
    assert Fraction(0.1) + Fraction(0.9) == Fraction(source.bounds[0], Fraction(0.1).denominator)


@pytest.mark.statistical
def test_the_law_of_a_weighted_mixture():
    proposal, source, draws = weighted_mixture([constant(i) for i in range(3)], [0.2, 0.3, 0.5]), keyed_source(1), 4000
    found = Counter(proposal(source)[1] for _ in range(draws))
    expected = [draws * p for p in (0.2, 0.3, 0.5)]
    assert stats.chisquare([found[i] for i in range(3)], expected).pvalue > FALSE_ALARM


@pytest.mark.full
@pytest.mark.parametrize("kind", ["function", "sequence"])
def test_of_a_hundred_thousand_candidates_only_those_drawn_are_made(kind):
    made = []

    class Lazy:
        def __len__(self):
            return 100_000

        def __getitem__(self, index):
            made.append(index)
            return constant(index)

    count = 100_000
    lazy = Lazy()
    proposal = uniform_mixture(lazy) if kind == "sequence" else uniform_mixture(lazy.__getitem__, count=count)
    assert made == []
    release = select_best(proposal, repetitions=Fixed(count=7), guarantee=pure_dp(epsilon=1), random=keyed_source(1))
    assert len(made) == 7
    assert release.value in made
    assert max(made) > 1000
    weighted = weighted_mixture(lazy.__getitem__, np.ones(count), count=count)
    select_best(weighted, repetitions=Fixed(count=3), guarantee=pure_dp(epsilon=1), random=keyed_source(1))
    assert len(made) == 10


def test_a_mixture_of_one_is_that_candidate():
    for proposal in (uniform_mixture(constant, count=1), weighted_mixture(constant, [0.3], count=1)):
        release = select_best(
            proposal, repetitions=Fixed(count=3), guarantee=pure_dp(epsilon=1), random=keyed_source(1)
        )
        assert release.value == 0


def test_a_candidate_that_cannot_be_made_is_a_failed_run():
    def make(index):
        if index:
            raise RuntimeError("secret")
        return constant("found")

    proposal = uniform_mixture(make, count=2)
    release = select_best(proposal, repetitions=Fixed(count=40), guarantee=pure_dp(epsilon=1), random=keyed_source(1))
    assert release.value == "found"  # one run in 2**40 selections finds none


def test_wrong_mixtures():
    with pytest.raises(ArgumentError, match="candidates"):
        uniform_mixture([])
    with pytest.raises(ArgumentError, match="count"):
        uniform_mixture(constant, count=0)
    for wrong in (3, constant, iter([constant(1)]), [3]):
        with pytest.raises(TypeError, match="candidates"):
            uniform_mixture(wrong)
    with pytest.raises(TypeError, match="candidates"):
        uniform_mixture([constant(1)], count=1)
    for weights in ([1.0], [0, 0], [-1, 2], [float("nan"), 1], [float("inf"), 1]):
        with pytest.raises(ArgumentError, match="weights"):
            weighted_mixture([constant(1), constant(2)], weights)


def test_a_private_mixture_has_the_average_guarantee():
    quiet, loud = PrivateCandidate(constant("quiet"), zcdp(rho=0.05)), PrivateCandidate(constant("loud"), zcdp(rho=0.2))
    both = private_mixture([quiet, loud], [3, 1])
    expected = mixture([quiet.guarantee, loud.guarantee], [3.0, 1.0])
    assert both.guarantee.renyi(8.0) == expected.renyi(8.0) < loud.guarantee.renyi(8.0)
    assert both(Scripted(2)) == (0.0, "quiet")
    assert both(Scripted(3)) == (0.0, "loud")
    with pytest.raises(ArgumentError, match="weights"):
        private_mixture([quiet, loud], [0, 1])
    with pytest.raises(AdjacencyError):
        private_mixture([quiet, PrivateCandidate(constant(0), zcdp(rho=1, adjacency="replace_one"))])
