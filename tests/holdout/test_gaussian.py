"""Answers with Gaussian noise of the deviation that is charged."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.holdout.draws import Draws
from dpselect.holdout.gaussian import plan_gaussian
from dpselect.holdout.scores import METRICS, Scored


def test_answers_have_the_noise_that_is_charged():
    """Empirical deviation of 2,000 noisy scores: within 7 % of the plan's but for a chance of 1e-5."""
    plan = plan_gaussian(questions=100, rows=1000, failure_probability=0.05, tolerance=0.01)
    scored = Scored(METRICS["accuracy"], np.zeros(1000), np.repeat([0.0, 1.0], 500), 1.0)
    values = [plan.answer(scored, None, Draws(bytes(32), str(i), "q", 0))[1] for i in range(2000)]
    assert np.std(values) == pytest.approx(plan.means.deviation, rel=0.07)
    mu = 10 / (1000 * plan.means.deviation)
    assert plan.row_privacy.gaussian_mu == pytest.approx(mu, rel=1e-6)
    assert plan.row_privacy.gaussian_mu >= mu
