"""Searches by sampled runs: how many are run, certain answers, and the distribution of the answer."""

import pytest

from dpselect.accounting.candidates.sampled_percentile import SmoothedOdds
from dpselect.errors import ArgumentError, BudgetError
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.selection import (
    SampledSparseVector,
    sampled_sparse_vector,
)
from tests.selection.algorithms_cases import assert_law, coin, once
from tests.selection.selection_laws import (
    sampled_search_law,
)

BASE = pure_dp(epsilon=0.5)


@pytest.mark.full
@pytest.mark.statistical
def test_law_of_the_sampled_search(monkeypatch):
    once(monkeypatch, sampled_sparse_vector, "sampled_sparse_vector")
    statistic = SmoothedOdds(samples=4, smoothing=6.0, sensitivity=1.6)
    law = sampled_search_law([0.3, 0.9], statistic, 0.5, epsilon=4.0)
    queries = [(coin(p), 1.0) for p in (0.3, 0.9)]
    assert_law(
        lambda source: (
            SampledSparseVector(guarantee=BASE, statistic=statistic, epsilon=4.0, max_queries=2, random=source)
            .first(queries)
            .value
        ),
        dict(zip([0, 1, None], law, strict=True)),
    )


def test_each_query_runs_its_candidate_so_often_and_certain_answers_are_given():
    ran = []

    def candidate(score):
        def run(random):
            ran.append(score)
            return score, None

        return run

    statistic = SmoothedOdds(samples=100, smoothing=20.0, sensitivity=0.9)
    search = SampledSparseVector(
        guarantee=pure_dp(epsilon=0.01), statistic=statistic, epsilon=60.0, max_queries=3, random=keyed_source(1)
    )
    assert not search.above(candidate(0.5), 0.6)
    assert not search.above(candidate(float("nan")), 0.6)
    assert search.above(candidate(0.6), 0.6)
    assert (len(ran), search.halted) == (300, True)
    with pytest.raises(BudgetError):
        search.above(candidate(0.6), 0.6)


@pytest.mark.parametrize(("wrong", "name"), [({"target": 1.0}, "target"), ({"max_queries": 0}, "max_queries")])
def test_numbers_out_of_range_are_named(wrong, name):
    statistic = SmoothedOdds(samples=100, smoothing=20.0, sensitivity=0.9)
    given = {"guarantee": pure_dp(epsilon=0.01), "statistic": statistic, "epsilon": 1.0, "max_queries": 2, **wrong}
    with pytest.raises(ArgumentError, match=name):
        SampledSparseVector(**given)
