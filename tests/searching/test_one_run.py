"""One run has the whole total, no matter which number of runs is asked for."""

from dpselect.repetitions import Fixed, Harmonic
from dpselect.searching.one_run import SingleRun
from tests.searching.requests import request


def test_one_run_has_the_whole_total():
    found = SingleRun().priced(request(epsilon=2.0, repetitions=Harmonic(limit=7)))
    assert found.repetitions == Fixed(count=1)
    assert found.noise == 0.5
    assert found.search.epsilon(0.0) == 2.0
    assert (found.final, found.portfolio) == (None, None)


def test_it_is_a_run_that_draws_nothing():
    assert (SingleRun.whole, SingleRun.draws, SingleRun.tries, SingleRun.follows) == ("run", False, False, False)
