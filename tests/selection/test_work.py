"""How much work a selection does, counted and not timed: no shape of scores makes it blow up."""

import pytest

from dpselect.mechanisms import ScoreChunks, permute_and_flip, report_noisy_max
from dpselect.mechanisms.scores import CHUNK
from dpselect.randomness import keyed_source
from dpselect.selection.candidates import run_once
from tests.selection.work_cases import shapes


@pytest.mark.parametrize("how", [permute_and_flip, report_noisy_max], ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", shapes())
def test_scores_are_read_twice(how, shape):
    """Once for the largest and once to draw, regardless of the scores."""
    passes, scores = [], shapes()[shape]

    def read():
        passes.append(1)
        return [scores[:CHUNK], scores[CHUNK:]]

    how(ScoreChunks(read), sensitivity=1.0, epsilon=2.0, random=keyed_source(shape))
    assert len(passes) == 2


def test_a_repetition_draws_one_tag():
    """128 bits a run and nothing else, so that a run costs a few microseconds and ties are settled at random."""

    class Counted:
        drawn = 0

        def bits(self, count):
            self.drawn += count
            return 0

    source = Counted()
    assert run_once(lambda random: (0.0, "x"), source).output == "x"
    assert source.drawn == 128
