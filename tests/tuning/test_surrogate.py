"""The Gaussian process that weighs candidates: it prefers what scored well, and never breaks."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.randomness import keyed_source
from dpselect.tuning import (
    Categorical,
    GaussianProcessProposer,
    IntegerUniform,
    LogUniform,
    Space,
)
from dpselect.tuning.proposals import Observation, project
from dpselect.tuning.trial import pool_settings, trial_key
from tests.tuning.proposers import SPACE, Greedy, greedy, run

pytestmark = pytest.mark.usefixtures("state")


class TestSurrogate:
    def history(self, count, score):
        settings = [Space(WIDE).sample(keyed_source(i)) for i in range(count)]
        return [Observation(params, score(params)) for params in settings]

    @pytest.mark.parametrize("name", ["rate", "layers", "kind"])
    def test_prefers_what_scored_well(self, name):
        target = {"rate": lambda p: -abs(math.log(p["rate"]) + 4), "layers": lambda p: p["layers"], "kind": score_kind}
        candidates = pool_settings(Space(WIDE), trial_key(bytes(32), 0), 64)
        weights = GaussianProcessProposer()(self.history(40, target[name]), candidates)
        scores = np.array([target[name](candidate) for candidate in candidates])
        assert np.mean(scores[np.argsort(weights)[-16:]]) > np.mean(scores) + 0.4 * np.std(scores)

    def test_failures_repel(self):
        candidates = pool_settings(SPACE, trial_key(bytes(32), 0), 64)
        history = [Observation(c, -math.inf if c["x"] > 0.5 else 0.0) for c in pool_settings(SPACE, b"k" * 32, 30)]
        weights = GaussianProcessProposer()(history, candidates)
        low = np.array([candidate["x"] < 0.5 for candidate in candidates])
        assert np.mean(weights[low]) > 2 * np.mean(weights[~low])

    @pytest.mark.filterwarnings("error")
    def test_no_warning_tells_of_scores(self, capfd):
        """A proposer whose arithmetic overflows, or that warns, is as quiet as another."""

        class Loud(Greedy):
            def __call__(self, history, candidates):
                warnings.warn("secret", stacklevel=1)
                return np.array([1e308] * len(candidates)) * 10

        run(greedy(proposer=Loud()))
        assert capfd.readouterr() == ("", "")

    def test_too_little_to_learn_from(self):
        candidates = pool_settings(SPACE, trial_key(bytes(32), 0), 8)
        proposer = GaussianProcessProposer()
        for scores in ([], [1.0], [-math.inf, -math.inf, 2.0], [math.inf, 1.0]):
            history = [Observation(candidates[0], score) for score in scores]
            assert np.all(proposer(history, candidates) == 1.0)

    @pytest.mark.parametrize("scores", [[1.0, 1.0, 1.0], [1e308, -1e308, 0.0], [0.0, 1e-320, 5.0]])
    def test_odd_scores_never_break_it(self, scores):
        candidates = pool_settings(SPACE, trial_key(bytes(32), 0), 8)
        history = [Observation(c, s) for c, s in zip(candidates, scores, strict=False)]
        weights = project(
            np.asarray(GaussianProcessProposer()(history, candidates)), 8, lower_ratio=0.5, upper_ratio=2.0
        )
        assert sum(weights) == 8 * 2**32

    def test_wrong_settings(self):
        with pytest.raises(ArgumentError, match="length_scale"):
            GaussianProcessProposer(length_scale=0)
        with pytest.raises(ArgumentError, match="greed"):
            GaussianProcessProposer(greed=-1)


WIDE = {"rate": LogUniform(1e-4, 1.0), "layers": IntegerUniform(1, 9), "kind": Categorical(["a", "b", None])}


def score_kind(params):
    return {"a": 0.0, "b": 1.0, None: 0.3}[params["kind"]]
