"""Distributions of K within a limit, drawn again or cut short, and tilted ones, against tables computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.repetitions import (
    Fixed,
    Geometric,
    Harmonic,
    Poisson,
    Tabulated,
    capped,
)
from tests.repetitions.distribution_cases import ONE_OF_EACH, label
from tests.repetitions.exact_tables import agrees_with_table

every_law = pytest.mark.parametrize("law", ONE_OF_EACH, ids=label)


@every_law
def test_at_most_redraws_and_capped_stops(law):
    limit = max(law.minimum, 5)
    k = np.arange(limit + 1)
    kept = law.at_most(limit)
    total = law.pmf(k).sum()
    assert kept.pmf(k) == pytest.approx(law.pmf(k) / total, rel=1e-11)
    stopped = capped(law, limit)
    assert stopped.pmf(k[:-1]) == pytest.approx(law.pmf(k[:-1]), rel=1e-11)
    assert stopped.pmf(limit) == pytest.approx(law.survival(limit - 1), rel=1e-11)
    assert kept.at_most(limit + 1) is kept
    if law.limit is None or law.limit > limit:
        assert kept != stopped
        assert kept.limit == stopped.limit == limit


def test_a_geometric_number_within_three():
    half = Geometric(gamma=0.5)
    agrees_with_table(half.at_most(3), [Fraction(n, 7) for n in (0, 4, 2, 1)])
    agrees_with_table(capped(half, 3), [Fraction(n, 4) for n in (0, 2, 1, 1)])


def test_a_smaller_limit_is_one_limit():
    half = Geometric(gamma=0.5)
    assert half.at_most(5).at_most(3) == half.at_most(3)
    assert half.at_most(3).at_most(3) == half.at_most(3)
    assert capped(capped(half, 3), 3) == capped(half, 3)


def test_tilting_weighs_each_number_of_runs_by_a_power():
    # 1/2 * 6/11, 1/4 * 3/11 and 1/8 * 2/11, in proportion
    agrees_with_table(Harmonic(limit=3).tilted(0.5), [Fraction(n, 16) for n in (0, 12, 3, 1)])
    assert Harmonic(limit=3).tilted(0.5).tilted(0.5) == Harmonic(limit=3).tilted(0.25)
    agrees_with_table(Geometric(gamma=0.5).at_most(3).tilted(0.5), [Fraction(n, 21) for n in (0, 16, 4, 1)])


def test_a_tilted_law_is_drawn_exactly_where_its_powers_are_tiny():
    law = Tabulated(probabilities=(0.0, 0.0, 0.5, 0.5)).tilted(2.0**-100)
    _, weights = law._exact_pmf()
    assert [next(weights), next(weights)] == [0, 0]
    assert float(2**100 / Fraction(next(weights), next(weights))) == pytest.approx(1.0, rel=1e-9)


def test_a_factor_above_one_is_refused():
    tilted = Harmonic(limit=3).tilted(0.5)
    with pytest.raises(ArgumentError, match="factor"):
        replace(tilted, factor=1.5)


def test_the_renyi_forms_pay_for_the_runs_beyond_the_limit():
    """Lemma 22: -log(1 - P(K > m)) / (order - 1) - log(1 - E[K 1{K > m}] / E[K]) is added."""
    law = Poisson(mean=2.0)

    class Run:
        def hockey_stick(self, losses):
            return 0.1 + 0.0 * losses

    orders, epsilons = np.array([2.0, 5.0]), np.array([0.3, 0.4])
    (form,), (plain,) = law.at_most(3).renyi_forms(Run()), law.renyi_forms(Run())
    outside = 1 - math.exp(-2) * (1 + 2 + 2 + 4 / 3)
    biased = 1 - math.exp(-2) * (1 + 2 + 2)  # K - 1 of the size-biased distribution is Poisson again
    added = -math.log1p(-outside) / (orders - 1) - math.log1p(-biased)
    assert form(orders, epsilons) - plain(orders, epsilons) == pytest.approx(added, rel=1e-12)


def test_no_renyi_form_is_stated_where_nearly_no_run_is_within_the_limit():
    """The second term of Lemma 22 has no finite value in doubles: 1 - E[K 1{K > 1}] / E[K] is below 1e-400."""
    assert Poisson(mean=1000.0).at_most(1).renyi_forms(None) == ()


def test_a_limit_of_one_run_and_the_least_number_of_runs():
    assert Geometric(gamma=0.5).at_most(1).pmf(1) == 1.0
    assert capped(Geometric(gamma=0.5), 1).pmf(1) == 1.0
    assert Tabulated(probabilities=(0.0, 0.0, 0.5, 0.5)).at_most(2).pmf(2) == 1.0
    for limited in (Geometric(gamma=0.5).at_most(2), capped(Geometric(gamma=0.5), 2)):
        with pytest.raises(ArgumentError, match="limit"):
            replace(limited, limit=0)
    with pytest.raises(ArgumentError, match="limit"):
        capped(Fixed(count=2), 0)


def test_no_possible_number_of_runs_is_refused():
    with pytest.raises(ArgumentError, match="limit must leave a possible number of runs, got 3"):
        Fixed(count=4).at_most(3)
    with pytest.raises(ArgumentError, match="must have a limit"):
        type(Harmonic(limit=3).tilted(0.5))(law=Poisson(mean=1.0), factor=0.5)


def test_a_limit_that_leaves_no_run_at_all_is_refused():
    """Without a run there is nothing to release, even though the law itself may give none."""
    law = Tabulated(probabilities=(0.5, 0.0, 0.0, 0.5))
    assert law.at_most(3).pmf(3) == 0.5
    with pytest.raises(ArgumentError, match="limit must leave a possible number of runs"):
        law.at_most(2)
