"""How much work a selection does, counted and not timed: no shape of scores makes it blow up."""

import numpy as np
import pytest

from dpselect.mechanisms import ScoreChunks, exponential, exponential_mechanism, permute_and_flip, report_noisy_max
from dpselect.mechanisms.scores import CHUNK
from dpselect.randomness import keyed_source
from dpselect.selection.candidates import run_once

COUNT = 2 * CHUNK


def shapes():
    uniform = np.random.default_rng(1).random(COUNT)
    needle = np.full(COUNT, -1000.0)
    needle[COUNT // 3] = 1.0
    # groups hold the places g, g + CHUNK/8, ...: one good member in each, seven hopeless ones
    one_of_eight = np.where(np.arange(COUNT) % CHUNK < CHUNK // 8, 0.0, -1e6)
    heavy_tail = -np.arange(COUNT, dtype=float)[::-1]
    return {
        "uniform": uniform,
        "needle": needle,
        "sorted": np.sort(uniform),
        "flat": np.ones(COUNT),
        "one of eight": one_of_eight,
        "steps": heavy_tail,
        "wide": np.random.default_rng(2).standard_cauchy(COUNT) * 1e6,
    }


@pytest.mark.cases(4)
@pytest.mark.parametrize("shape", shapes())
def test_proposals_of_the_exponential_mechanism(shape, monkeypatch):
    """At most 8 proposals on average for any scores: the mean of 150 geometric counts stays below 11.

    (Their deviation is at most 7.5, so that is five standard errors.)
    """
    proposed = []
    kept = exponential._kept
    monkeypatch.setattr(exponential, "_kept", lambda *arguments: proposed.append(1) or kept(*arguments))
    random, scores = keyed_source(shape), shapes()[shape]
    for _ in range(150):
        exponential_mechanism(scores, sensitivity=1.0, epsilon=2.0, random=random)
    assert len(proposed) / 150 < 11


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
