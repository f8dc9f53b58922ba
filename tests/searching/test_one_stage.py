"""One stage: the runs that are asked for have the whole total."""

from dpselect.repetitions import Harmonic
from dpselect.searching.one_stage import OneStage
from tests.searching.requests import request


def test_the_runs_have_the_whole_total_and_the_law_that_is_asked_for():
    law = Harmonic(limit=4)
    found = OneStage().priced(request(epsilon=2.0, repetitions=law))
    assert found.repetitions is law
    assert found.noise == 2.0
    assert (found.final, found.portfolio) == (None, None)


def test_it_is_a_search_that_draws_its_settings():
    assert (OneStage.whole, OneStage.draws, OneStage.tries, OneStage.follows) == ("search", True, False, False)
