"""Selectors and accounts that are wrong: each exceeds its claim by exact laws, and keeps it once it is corrected.

So a test fails when its defect is removed from the zoo, and when a defect enters the corrected program.
"""

import math
import re

import pytest
from numpy.testing import assert_allclose

from dpselect.accounting import best_of
from dpselect.accounting.candidates.threshold import threshold_stopping
from dpselect.privacy import approximate_dp, compose, pure_dp
from dpselect.repetitions import Geometric
from tests.audits import naive_selectors as naive, public_mistakes as public
from tests.audits.broken_sparse_vectors import BROKEN
from tests.audits.naive_selectors import NAIVE
from tests.audits.public_mistakes import MISTAKES
from tests.root import ROOT

ROUNDING = 1e-12


@pytest.mark.parametrize("make", [*NAIVE, *MISTAKES], ids=lambda f: f.__name__)
def test_the_defect_breaks_the_claim_and_its_correction_keeps_it(make):
    defect = make()
    for side in (defect.broken, defect.corrected):
        assert_allclose([math.fsum(side.upper), math.fsum(side.lower)], 1.0, rtol=1e-9)
    assert defect.excess(defect.broken) > 1e-7
    assert defect.excess(defect.corrected) <= ROUNDING
    assert defect.seen


def loss(pair, outcome=0):
    """The log-ratio at an outcome, larger over smaller."""
    return abs(math.log(pair.upper[outcome] / pair.lower[outcome]))


def test_best_of_all_candidates_leaks_epsilon_for_each():
    """Liu, Talwar (2019), B.1 with a randomised response: 5 = 10 * 0.5."""
    broken = naive.best_of_all_candidates(epsilon=0.5, count=10).broken
    assert_allclose([broken.upper[0], broken.lower[0]], [5.88352236e-5, 8.73192140e-3], rtol=1e-8)
    assert_allclose(loss(broken), 5.0, rtol=1e-12)


def test_best_of_rare_candidates_leaks_beyond_its_delta():
    """B.1 with a delta: log((b - delta)/a) is 1.0008 at epsilon = .1 and 5.43 at epsilon = .5 for a million."""
    broken = naive.best_of_rare_candidates(epsilon=0.1, count=10_000, delta=1e-6).broken
    a, b = broken.upper[0], broken.lower[0]
    assert_allclose([a, b], [9.90493262e-7, 3.69470107e-6], rtol=1e-7)
    assert_allclose(math.log((b - 1e-6) / a), 1.00083949, rtol=1e-7)
    broken = naive.best_of_rare_candidates(epsilon=0.5, count=10**6, delta=1e-6).broken
    assert_allclose(math.log((broken.lower[0] - 1e-6) / broken.upper[0]), 5.43167351, rtol=1e-7)


@pytest.mark.parametrize(("steps", "expected"), [(1, 1.48969421), (5, 5.44847106), (10, 10.3969421)])
def test_decreasing_thresholds_leak_with_every_step(steps, expected):
    """B.2: epsilon + steps (epsilon + log((e^epsilon + gamma)/(1 + gamma e^epsilon)))."""
    assert_allclose(loss(naive.decreasing_thresholds(steps=steps).broken), expected, rtol=1e-8)


def test_a_limit_without_a_coin_leaks_epsilon_for_each_try():
    assert_allclose(loss(naive.gives_up_at_a_limit(epsilon=1.0, limit=50).broken), 50.0, rtol=1e-12)


def test_a_short_cap_leaks_more_than_the_coin():
    """Cap 5 at gamma = .1: 2.14738704 where 2 is claimed; redrawn within 5: 1.66490942."""
    defect = naive.stops_short_at_a_cap(epsilon=1.0, gamma=0.1, cap=5)
    assert_allclose([defect.broken.upper[0], defect.broken.lower[0]], [0.310679642, 0.0362839412], rtol=1e-8)
    assert_allclose(loss(defect.broken), 2.14738704, rtol=1e-8)
    assert_allclose(loss(defect.corrected), 1.66490942, rtol=1e-8)


@pytest.mark.parametrize(
    ("count", "median", "rank"),
    [(11, 0.545636269, 0.743806613), (101, 1.68643991, 2.48038614), (1001, 7.18751817, 9.54095348)],
)
def test_ranks_of_many_runs_leak_with_their_number(count, median, rank):
    """B.3 at epsilon = .1, where one draw is .200670695-private."""
    defect = naive.median_of_the_runs(epsilon=0.1, count=count)
    assert_allclose(defect.epsilon / 3.0, 0.200670695, rtol=1e-8)
    assert_allclose(loss(defect.broken), median, rtol=1e-8)
    assert_allclose(loss(naive.random_rank_of_the_runs(epsilon=0.1, count=count).broken, 1), rank, rtol=1e-8)


def test_the_number_of_tries_tells_epsilon_for_each():
    """Stop at try j: j epsilon, up to the limit."""
    broken = naive.releases_the_number_of_tries(epsilon=1.0, limit=40).broken
    assert_allclose([loss(broken, j) for j in range(40)], range(1, 41), rtol=1e-9)


def test_our_prices_cover_what_the_corrected_selectors_leak():
    """The corrected programs are ours; what `best_of` and `threshold_stopping` charge is above their exact laws."""
    gamma = 0.02
    defect = naive.best_of_all_candidates(epsilon=0.5, count=10, gamma=gamma)
    total = best_of(pure_dp(epsilon=0.5), Geometric(gamma=gamma)).epsilon(0.0)
    assert max(loss(defect.corrected, i) for i in (1, 2, 3)) <= total * (1 + 1e-9)
    short = naive.stops_short_at_a_cap(epsilon=1.0, gamma=0.1, cap=5)
    for truncation, side in (("conditioned", short.corrected), ("capped", short.broken)):
        price = threshold_stopping(pure_dp(epsilon=1.0), stop_probability=0.1, max_runs=5, truncation=truncation)
        assert loss(side) <= price.epsilon(0.0) * (1 + 1e-9)


def test_the_reported_delta_of_an_odometer():
    """200 steps at delta = .01: .121 is reported, the theorem gives .867, and .866 is attained. Ours charges it."""
    defect = public.delta_of_an_odometer(delta=0.01, steps=200)
    assert_allclose(defect.delta, 0.121, atol=5e-4)
    assert_allclose(1 - 0.99**200 * 0.995, 0.867, atol=5e-4)
    step = approximate_dp(epsilon=0.001, delta=0.01)
    assert compose(*[step] * 200).delta(0.2) >= defect.broken.upper[0] * (1 - 1e-12)


def test_a_tie_with_the_threshold_counts():
    """Scale 1, threshold 5: .01341 is released where .00493 is reported, e times as much."""
    defect = public.threshold_counts_its_own_value(scale=1.0, threshold=5)
    assert_allclose(defect.broken.upper[0], math.exp(-4) / (1 + math.exp(-1)), rtol=1e-12)
    assert_allclose(defect.broken.upper[0] / defect.delta, math.e, rtol=1e-12)


def test_the_page_lists_every_defect_and_names_tests_that_exist():
    page = (ROOT / "docs" / "evidence/zoo.md").read_text(encoding="utf-8")
    for function in (*NAIVE, *MISTAKES, *BROKEN):
        assert f"`{function.__name__}`" in page, function.__name__
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+|Test\w+)`", page)
    assert len(named) > 20
    for name in named:
        assert f"def {name}(" in sources or f"class {name}:" in sources, name
