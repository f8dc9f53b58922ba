"""Verifications: what they confirm, refuse and correct, and exactly as many refusals as planned."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.adaptive import (
    Verification,
    plan_verification,
)
from dpselect.adaptive.analysis import Verified
from dpselect.adaptive.subsamples import Blocks
from dpselect.errors import ArgumentError, BudgetError
from dpselect.randomness import keyed_source
from tests.adaptive.adaptive_sessions import Recorder, analysis, normal_rows


@pytest.mark.full
def test_verification_confirms_refuses_and_corrects() -> None:
    data = normal_rows(600_000)
    spender = Recorder()
    session = analysis(data, verifications=40, refusals=2, spender=spender, label="v")
    assert session.verification is not None
    for _ in range(5):
        assert session.verify(np.mean, 0.3, axis=True).value is True
    assert len(spender.reserved) == 1  # confirmations cost nothing more
    assert session.verification.refusals_left == 2
    assert session.verify(np.mean, 2.0, axis=True).value is False
    assert spender.settled == [spender.reserved[0][0]]
    corrected = session.verify_or_correct(np.mean, -2.0, lower=-2, upper=2, granularity=0.01, axis=True)
    assert isinstance(corrected.value, Verified)
    assert not corrected.value.agrees
    assert abs(corrected.value.value - 0.3) < 0.15
    assert session.verification.remaining == 0
    with pytest.raises(BudgetError, match="verification"):
        session.verify(np.mean, 0.3, axis=True)
    assert session.remaining == 4
    with pytest.raises(ArgumentError, match="verifications"):
        analysis().verify(np.mean, 0.3)


@pytest.mark.full
def test_exactly_as_many_refusals_as_planned() -> None:
    """The short circuit: a guess that is refused on its first side is one refusal, so all of them can be used."""
    session = analysis(normal_rows(900_000), verifications=20, refusals=3)
    assert [session.verify(np.mean, guess, axis=True).value for guess in (-9, 9, -9)] == [False] * 3
    with pytest.raises(BudgetError):
        session.verify(np.mean, 0.3, axis=True)
    assert session.verification is not None
    assert session.verification.refusals_left == 0


def test_confirmed_guess_keeps_the_questions() -> None:
    session = analysis(normal_rows(600_000), verifications=5, refusals=1)
    release = session.verify_or_correct(np.mean, 0.3, lower=-2, upper=2, granularity=0.01, axis=True)
    assert release.value == Verified(True, 0.3)
    assert session.remaining == 5


@pytest.mark.statistical
def test_verifications_are_right_outside_the_undecided_band() -> None:
    """Guesses at the population's 12 and 26 % quantiles, both sides: no, then yes. 10 seeded sessions of 40
    checks; the certificate allows each to fail with 5 %: 4 or more failures have a chance below 2e-3, and a
    threshold at the wrong end of the band would fail all."""
    plan = plan_verification(queries=40, refusals=4, failure_probability=0.05, rank=0.25, margin=0.125)
    failures = 0
    for trial in range(10):
        values = np.random.default_rng((10, trial)).uniform(0, 1, plan.blocks)
        blocks = Blocks(np.zeros(1), np.zeros((plan.blocks, 1), dtype=np.intp))
        session = Verification(blocks, plan, random=keyed_source(trial))
        right = all(session.check(values, guess).value for guess in [0.26, 0.5, 0.74] * 10)
        right &= not any(session.check(values, guess).value for guess in [0.12, 0.88, 0.12, 0.88])
        failures += not right
        assert session.remaining == 0 or not right
    assert failures < 4
