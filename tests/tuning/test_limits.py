"""Limits of one trial: counts, and what seconds and bytes need."""

from __future__ import annotations

import contextlib
import os

import pytest

from dpselect.errors import ArgumentError
from dpselect.tuning import (
    Limits,
    ProcessExecutor,
    count,
)
from tests.tuning.supervised_cases import parameters, stepping, tuned

pytestmark = pytest.mark.skipif(os.name == "nt", reason="limits in seconds and bytes need POSIX")


def swallowing(params, random):
    """Tries to continue after its limit."""
    for _ in range(int(10 * params["x"])):
        with contextlib.suppress(Exception):
            count("steps")
    return params["x"], params["x"]


@pytest.mark.parametrize("objective", [stepping, swallowing])
def test_a_count_beyond_its_limit_is_a_failed_run(objective):
    limit = 5
    expected = max(x for x in parameters(3) if int(10 * x) <= limit)
    assert tuned(objective, key=3, limits=Limits(counts={"steps": limit})).value == expected
    assert tuned(objective, key=3, limits=Limits(counts={"nothing": 0})).value == max(parameters(3))
    assert tuned(objective, key=3).value == max(parameters(3))


@pytest.mark.full
def test_a_count_limit_is_the_same_in_workers():
    limits = Limits(counts={"steps": 5})
    expected = tuned(stepping, key=3, limits=limits).value
    assert tuned(Stepping(), key=3, limits=limits, executor=ProcessExecutor(workers=1)).value == expected


class Stepping:
    def __call__(self, params, random):
        return stepping(params, random)


@pytest.mark.parametrize(
    "limits",
    [{"seconds": 5}, {"memory_bytes": 1 << 30}, {"seconds": 5, "failure_is_private": 1}],
)
def test_seconds_and_bytes_need_a_statement(limits):
    with pytest.raises(ArgumentError, match="failure_is_private"):
        Limits(**limits)


@pytest.mark.parametrize(
    ("limits", "name"),
    [({"seconds": 0}, "seconds"), ({"counts": {"steps": -1}}, "steps"), ({"memory_bytes": 0}, "memory_bytes")],
)
def test_bad_limits(limits, name):
    with pytest.raises((ArgumentError, TypeError), match=name):
        Limits(failure_is_private=True, **limits)
