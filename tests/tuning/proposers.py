"""Proposers that the tests of adaptive proposals share, and a short search with one of them."""

from __future__ import annotations

from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from dpselect.tuning import AdaptiveProposal, Categorical, Space, Uniform, tune
from tests.grouped import grouped

SPACE = Space({"x": Uniform(0.0, 1.0), "kind": Categorical(["a", "b"])})
BASE = pure_dp(epsilon=0.5)
SIX = Fixed(count=6)


class Greedy:
    """All weight on large x, and a record of what it was shown (tests only: a proposer is to be pure)."""

    def __init__(self):
        self.seen = []

    def __call__(self, history, candidates):
        self.seen.append((list(history), list(candidates)))
        return [candidate["x"] ** 20 for candidate in candidates]

    def describe(self):
        return {"surrogate": "greedy"}


class Says:
    """The same answer to everything."""

    def __init__(self, answer):
        self.answer = answer

    def __call__(self, history, candidates):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def describe(self):
        return {}


def greedy(**changes):
    return AdaptiveProposal(**{"proposer": Greedy(), "lower_ratio": 0.5, "upper_ratio": 2.0, "pool": 16, **changes})


def noisy(params, random):
    return params["x"] + 0.1 * float(random.laplace(1)[0]), params["x"]


def run(proposal, law=SIX, objective=noisy, key=7, **options):
    return tune(
        objective,
        space=SPACE,
        base=BASE,
        repetitions=law,
        proposal=proposal,
        random=keyed_source(key) if key is not None else None,
        **grouped(payload_bytes=512, **options),
    )
