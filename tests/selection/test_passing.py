"""Sessions that end with the first positive: how many queries they answer, their prices, and what closes them."""

import pytest

from dpselect.errors import ArgumentError, BudgetError, NothingFoundWarning
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.selection import PercentileSparseVector

FAR = 1e6


def opened(**more):
    # far from the target every answer is certain: noise of scale 8 * 2 * 0.001 / 4 on log-odds of 600
    return PercentileSparseVector(guarantee=pure_dp(epsilon=0.001), epsilon=4.0, random=keyed_source(1), **more)


def test_the_first_positive_ends_it():
    search = opened()
    release = search.first([-FAR, -FAR, FAR, FAR])
    assert release.value == 2
    assert search.halted
    assert release.guarantee.epsilon(delta=0) == pytest.approx(4.0)
    assert release.realised.epsilon(delta=0) == pytest.approx(4.0)
    with pytest.raises(BudgetError):
        search.above(FAR)


def test_nothing_found_costs_half():
    with pytest.warns(NothingFoundWarning):
        release = opened().first([-FAR] * 5)
    assert release.value is None
    assert release.realised.epsilon(delta=0) == pytest.approx(2.0)
    assert release.guarantee.epsilon(delta=0) == pytest.approx(4.0)


def test_a_limit_of_queries_halts_it():
    search = opened(max_queries=2)
    assert not search.halted
    assert [search.above(-FAR), search.above(-FAR)] == [False, False]
    assert search.halted
    assert "halted" in repr(search)
    with pytest.raises(BudgetError, match="this search has ended"):
        search.above(-FAR)
    with pytest.raises(ArgumentError, match="max_queries"):
        opened(max_queries=0)


def test_a_stream_is_read_no_further_than_the_answer_or_the_limit():
    read = []

    def stream(answer):
        for index in range(9):
            read.append(index)
            yield FAR if index == answer else -FAR

    assert opened().first(stream(3)).value == 3
    assert read == [0, 1, 2, 3]
    read.clear()
    with pytest.warns(NothingFoundWarning):
        assert opened(max_queries=2).first(stream(3)).value is None
    assert read == [0, 1]


def test_both_prices_are_of_a_session():
    search = opened()
    assert search.guarantee.interactive
    assert search.worst.interactive
    assert "open" in repr(search)
