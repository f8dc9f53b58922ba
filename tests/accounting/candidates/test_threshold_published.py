"""Numbers of Liu and Talwar (2019), "Private Selection from Private Candidates", computed from its closed forms.

Golden values to six digits or more, computed from the theorems and their proofs by hand (double precision), not by
this package. Where the paper's printed statement is wrong, the repaired one is tested and the comment says so.
"""

import itertools
import math

import numpy as np
import pytest

from dpselect.accounting import best_of
from dpselect.accounting.best_of_k.bounds.pure import pure_best_of
from dpselect.accounting.candidates.threshold import threshold_stopping
from dpselect.errors import BoundUnavailableError
from dpselect.privacy import approximate_dp, pure_dp
from dpselect.repetitions import Geometric, capped
from dpselect.testing.exact import best_of_masses
from tests.accounting.candidates.threshold_published_cases import near
from tests.selection.selection_laws import (
    first_above_law,
    hockey_sticks,
    split_response_pair,
)

E = math.e
"""Golden values have six digits or more."""


# ---- exact laws ----------------------------------------------------------------------------------------------


def test_masses_of_random_stopping():
    law = Geometric(gamma=0.1)
    assert law.increment(complement_after=0.2, mass=0.05) == near(0.0549450549)
    worst_first = best_of_masses([0.05, 0.2, 0.4, 0.25, 0.1], law)[1:]
    expected = [0.00523560210, 0.0270224625, 0.124368442, 0.317057705, 0.526315789]
    assert worst_first == near(expected)


def test_law_of_threshold_stopping():
    found = first_above_law([0.8, 0.2], [False, True], capped(Geometric(gamma=0.05), 30))
    assert found == near([0.833111908, 0.166888092])
    # expected tries, and Theorem 3.1 (e) at the epsilon_0 that the cap of 30 allows
    assert found[0] / 0.2 == near(4.16555954)
    slack = 2.0 * math.exp(-1.5)
    assert slack == near(0.446260320)
    assert found[1] <= 0.8 * (1 + slack / 2) / 0.2 * 0.05 == near(0.244626032)
    rare, often = (first_above_law([1 - p, p], [False, True], Geometric(gamma=0.1)) for p in (1 / (1 + E), E / (1 + E)))
    assert (rare[1], often[1]) == near((0.213730272, 0.0354826118))
    assert math.log(rare[1] / often[1]) == near(1.79567204)


@pytest.mark.parametrize(("stop", "some"), [(0.001, 0.0186457311), (0.01, 0.159663866)])
def test_cost_and_failure_of_threshold_stopping(stop, some):
    """Ten candidates, one with median at the threshold: p = 1/20."""
    law = first_above_law([0.95, 0.05], [False, True], Geometric(gamma=stop))
    assert law[1] == near(some)
    # expected tries 1 / (p + stop - p stop)
    assert law[0] / 0.05 == near({0.001: 19.6270854, 0.01: 16.8067227}[stop])


@pytest.mark.parametrize(("part", "leak"), [(1e-2, 2.92060721), (1e-4, 2.95337866), (1e-6, 2.95370098)])
def test_random_stopping_approaches_its_price(part, leak):
    p, q = split_response_pair(1.0, part)
    laws = [best_of_masses(m, Geometric(gamma=0.01)) for m in (p, q)]
    assert math.log(laws[0][2] / laws[1][2]) == near(leak)


def test_what_each_output_of_random_stopping_leaks():
    p, q = split_response_pair(1.0, 1e-3)
    best_first = [best_of_masses(m, Geometric(gamma=0.1))[:0:-1] for m in (p, q)]
    assert np.log(best_first[0] / best_first[1]) == near(np.array([-0.204926, 2.58795104, 1.78417576]), rel=1e-5)


@pytest.mark.parametrize(
    ("gamma", "limit", "value"),
    [
        (0.1, 1, 1.0),
        (0.1, 2, 1.88546161),
        (0.1, 3, 2.55194797),
        (0.1, 5, 3.01226050),
        (0.1, 6, 2.99315391),
        (0.1, 10, 2.75341220),
        (0.1, 20, 2.59691460),
        (0.1, 30, 2.59147322),
        (0.1, 99, 2.59134408),
        (0.01, 7, 4.94516973),
        (0.01, 10, 4.62596622),
        (0.01, 74, 3.00383004),
        (0.01, 75, 2.99574863),
    ],
)
def test_capped_random_stopping_through_best_of(gamma, limit, value):
    """min(K, T) can cost more than 3 epsilon: the accounting knows which law it prices."""
    total = best_of(pure_dp(epsilon=1.0), capped(Geometric(gamma=gamma), limit), bound="pure")
    assert total.epsilon(0.0) == near(value)
    conditioned = best_of(pure_dp(epsilon=1.0), Geometric(gamma=gamma).at_most(limit), bound="pure")
    # a searched bound may lie 1e-9 above the closed form
    assert conditioned.epsilon(0.0) <= pure_best_of(law=Geometric(gamma=gamma), epsilon=1.0) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("gamma", "limit", "value"),
    [
        (0.1, 2, 1.44499587),
        (0.1, 3, 1.77825381),
        (0.1, 5, 2.18859530),
        (0.1, 10, 2.52177785),
        (0.1, 30, 2.59130450),
        (0.01, 10, 2.79311345),
        (0.01, 50, 2.95370282),
    ],
)
def test_conditioned_random_stopping_through_best_of(gamma, limit, value):
    total = best_of(pure_dp(epsilon=1.0), Geometric(gamma=gamma).at_most(limit), bound="pure")
    assert total.epsilon(0.0) == near(value)


def test_capped_random_stopping_at_a_small_epsilon():
    """epsilon 0.1, gamma 0.01, cap 8: 0.591316237, almost twice what the unlimited search costs."""
    total = best_of(pure_dp(epsilon=0.1), capped(Geometric(gamma=0.01), 8), bound="pure")
    assert total.epsilon(0.0) == near(0.591316237)


@pytest.mark.parametrize(("gamma", "value"), [(0.5, 1.31055009), (0.1, 1.79567204), (0.01, 1.97685212)])
def test_pure_cost_of_threshold_stopping(gamma, value):
    total = threshold_stopping(pure_dp(epsilon=1.0), stop_probability=gamma)
    assert value * (1 - 1e-8) <= total.pure_epsilon <= value + 1e-6
    assert threshold_stopping(pure_dp(epsilon=1.0), stop_probability=gamma, bound="paper").pure_epsilon == 2.0


@pytest.mark.parametrize(("limit", "value"), [(2, 1.28882249), (5, 1.66490942), (10, 1.78035235), (30, 1.79566852)])
def test_conditioned_threshold_stopping(limit, value):
    total = threshold_stopping(pure_dp(epsilon=1.0), stop_probability=0.1, max_runs=limit)
    assert value * (1 - 1e-8) <= total.pure_epsilon <= value * (1 + 1e-5)


@pytest.mark.parametrize(("limit", "found"), [(2, 1.17744518), (5, 1.47886981), (10, 1.66569820), (30, 1.78519670)])
def test_something_found_leaks_less_than_nothing(limit, found):
    """The part of the price that a found output alone would need, at the pair that needs most."""
    p, q = split_response_pair(1.0, 1e-9)
    laws = [first_above_law(m, [False, True, True], Geometric(gamma=0.1).at_most(limit)) for m in (p, q)]
    assert math.log(laws[0][0] / laws[1][0]) == near(found, rel=1e-6)


@pytest.mark.parametrize(
    ("gamma", "slack", "shortest"),
    [(0.01, 0.1, 300), (0.1, 0.1, 30), (0.1, 1.0, 7), (0.5, 0.5, 3), (0.001, 0.01, 5299)],
)
def test_the_papers_cap_on_threshold_stopping(gamma, slack, shortest):
    """Theorem 3.1: T >= log(2/epsilon_0)/gamma, so at the smallest such T epsilon_0 is as large as given or smaller."""

    def price(limit):
        base = pure_dp(epsilon=1.0)
        return threshold_stopping(base, stop_probability=gamma, max_runs=limit, truncation="capped", bound="paper")

    assert price(shortest).pure_epsilon <= 2.0 + slack + 1e-9
    if slack < 1.0:
        assert price(shortest - 1).pure_epsilon > 2.0 + slack
    else:
        with pytest.raises(BoundUnavailableError, match="max_runs"):
            price(shortest - 1)


@pytest.mark.parametrize(
    ("epsilon", "gamma", "slack", "limit", "value"),
    [(1.0, 0.3, 1.0, 3, 1.601788), (2.0, 0.1, 0.5, 14, 3.511230)],
)
def test_at_the_theorems_cap_the_slack_is_not_needed(epsilon, gamma, slack, limit, value):
    base = pure_dp(epsilon=epsilon)
    total = threshold_stopping(base, stop_probability=gamma, max_runs=limit, truncation="capped")
    assert total.pure_epsilon == pytest.approx(value, abs=2e-5)
    paper = threshold_stopping(base, stop_probability=gamma, max_runs=limit, truncation="capped", bound="paper")
    assert total.pure_epsilon < 2 * epsilon < paper.pure_epsilon <= 2 * epsilon + slack


def test_threshold_stopping_of_an_approximate_base():
    base = approximate_dp(epsilon=0.5, delta=1e-8)
    total = threshold_stopping(base, stop_probability=0.005)
    assert total.failure == near(1.99999602e-6)
    limit = math.ceil(math.log(20.0) / 0.005)
    paper = threshold_stopping(base, stop_probability=0.005, max_runs=limit, truncation="capped", bound="paper")
    assert paper.failure == pytest.approx(1.80249961e-5, rel=2e-3), "at the smallest T, epsilon_0 is just below 0.1"


@pytest.mark.theorem("Papernot, Steinke 2022, Lemma 20", exact=True, sharp=True)
def test_the_failure_mass_is_attained():
    """All 24 orders of the canonical (1, 1e-3) pair: the largest divergence at the search's epsilon is its delta."""
    delta, gamma = 1e-3, 0.05
    p = np.array([delta, (1 - delta) * E / (1 + E), (1 - delta) / (1 + E), 0.0])
    q = p[::-1]
    epsilon = pure_best_of(law=Geometric(gamma=gamma), epsilon=1.0)
    assert epsilon == near(2.78157831)
    worst = max(
        hockey_sticks(*(best_of_masses(m[list(order)], Geometric(gamma=gamma)) for m in (p, q)), epsilon)
        for order in itertools.permutations(range(4))
    )
    assert worst == near(0.0196270854)
    assert best_of(approximate_dp(epsilon=1.0, delta=delta), Geometric(gamma=gamma), bound="pure").failure == near(
        worst
    )
