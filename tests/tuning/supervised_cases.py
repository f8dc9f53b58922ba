"""Objectives that count, and searches under limits."""

from __future__ import annotations

from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from dpselect.testing.executor_contract import SPACE
from dpselect.tuning import (
    count,
    tune,
)
from tests.grouped import grouped


def tuned(objective, *, trials=6, key=1, **options):
    return tune(
        objective, space=SPACE, base=pure_dp(epsilon=1.0), repetitions=Fixed(count=trials), random=keyed_source(key),
        **grouped(**options),
    )  # fmt: skip


def parameters(key, trials=6):
    """The `x` of every trial."""
    found = []
    tuned(lambda params, random: (found.append(params["x"]), (0.0, None))[1], trials=trials, key=key)
    return sorted(found)


def stepping(params, random):
    """Takes 10 x steps, and prefers large x."""
    for _ in range(int(10 * params["x"])):
        count("steps")
        count("others")
    return params["x"], params["x"]
