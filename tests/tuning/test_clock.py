"""What goes by the clock: progress, and the moment of the release."""

from __future__ import annotations

import time

import pytest

from dpselect.tuning import (
    clock,
    tuner,
)
from tests.tuning.tuner_cases import noisy, search

pytestmark = pytest.mark.usefixtures("state")


@pytest.mark.parametrize(("elapsed", "wait"), [(0.0, 10.0), (3.0, 7.0), (10.0, 0.0), (10.5, 9.5), (39.0, 1.0)])
def test_the_release_waits_for_a_multiple(elapsed, wait, monkeypatch):
    slept = []
    monkeypatch.setattr(clock.time, "monotonic", lambda: 100.0 + elapsed)
    monkeypatch.setattr(clock.time, "sleep", slept.append)
    clock.wait_for_a_multiple(10.0, since=100.0)
    assert slept == [pytest.approx(wait, abs=1e-9)]


def test_progress_tells_seconds_by_the_clock(drawn, monkeypatch):
    real = tuner.ticking
    monkeypatch.setattr(tuner, "ticking", lambda progress: real(progress, interval=0.02))
    drawn(1)
    seconds = []

    def slow(params, random):
        time.sleep(0.2)
        return noisy(params, random)

    search(slow, progress=seconds.append)
    assert len(seconds) >= 2  # within one trial: not by the trial
    assert seconds == sorted(seconds)
