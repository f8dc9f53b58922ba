"""What an analysis certifies before its first question, and which mechanism it chooses."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from tests.adaptive.adaptive_sessions import Recorder, analysis, normal_rows


def test_it_states_what_it_certifies_before_it_starts() -> None:
    session = analysis(verifications=10, refusals=1, data=normal_rows(600_000))
    statement = session.certificate.statement
    assert "5 adaptive answers are between the 25 and 75 % quantiles" in statement
    assert "20 new rows" in statement
    assert "except with probability 0.025" in statement
    assert "10 guesses" in statement
    described = json.loads(json.dumps(session.certificate.describe(delta=1e-6)))
    assert described["row_privacy"]["epsilon"] > 0
    assert described["mechanism"] == "binary_search"
    assert "data splitting would need" in described["reason"]
    plan = session.certificate.plan
    assert math.isclose(
        session.certificate.row_privacy.gaussian_mu or 0.0,
        math.sqrt(5) * plan.noise.mu,
        rel_tol=1e-9,  # type: ignore[union-attr]
    )


def test_more_rows_buy_privacy_not_less_noise() -> None:
    small, large = analysis(normal_rows(40_000)), analysis(normal_rows(400_000))
    assert large.certificate.row_privacy.epsilon(1e-6) < 0.2 * small.certificate.row_privacy.epsilon(1e-6)
    assert large.certificate.plan.certified


@pytest.mark.full
def test_the_paper_s_constants() -> None:
    session = analysis(np.arange(200_000) % 7, subsample_size=1, queries=2, accounting="paper", grid_size=16)
    assert session.certificate.plan.accounting == "paper"
    assert session.certificate.plan.certified
    assert session.estimate(lambda rows: float(rows[0]), lower=0, upper=6, granularity=1).value in (2, 3, 4)


@pytest.mark.full
def test_data_splitting_only_when_allowed() -> None:
    with pytest.raises(ArgumentError, match="validity_only"):
        analysis(mechanism="splitting")
    session = analysis(normal_rows(20 * 200), validity_only=True)
    assert session.certificate.plan.mechanism == "splitting"
    assert "break even" in session.certificate.reason
    release = session.estimate(np.mean, lower=-2, upper=2, granularity=0.01)
    assert abs(release.value - 0.3) < 0.3
    assert release.guarantee.epsilon(1e-6) == math.inf
    assert session.certificate.describe(delta=1e-6)["row_privacy"]["epsilon"] is None
    assert session.choose([np.mean, np.var]).value == 1
    with pytest.raises(ArgumentError, match="spend"):
        analysis(validity_only=True, spender=Recorder())
