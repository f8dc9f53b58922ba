"""Selection among dummy runs: printed values and the exact cost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.accounting.best_of_k.feasible_region import PureTradeOff
from dpselect.accounting.candidates.dummies import (
    dummy_runs_needed,
    reciprocal_shift,
    select_among_dummies,
    theorem_c_1,
)
from dpselect.privacy import pure_dp
from tests.accounting.candidates.threshold_published_cases import near
from tests.selection.selection_laws import (
    binomial_masses,
    dummies_law,
)


def test_dummies():
    base = pure_dp(epsilon=1.0)
    law = dummies_law([0.3, 0.7], [1.0, 0.0], 100, 11.0)
    assert law[-1] == near(0.271740629)
    assert theorem_c_1(base, gamma=0.1, sharpened=False).epsilon(0.0) == near(2.8)
    assert theorem_c_1(base, gamma=0.1).epsilon(0.0) == near(2.28768207)
    exact = select_among_dummies(base, runs=100, gamma=0.1)
    assert 1.79191937 * (1 - 1e-8) <= exact.pure_epsilon <= 1.79191937 * (1 + 2e-4)
    dummy = reciprocal_shift(runs=100, offset=11.0, trade_off=PureTradeOff(1.0), coins=True)
    assert 0.808468380 * (1 - 1e-8) <= dummy <= 0.808468380 * (1 + 2e-4)
    assert dummy_runs_needed(gamma=0.1, mean_weight=0.05, dummy_probability=0.05) == 4200
    assert dummy_runs_needed(gamma=0.01, mean_weight=0.05, dummy_probability=0.05) == 38400


@pytest.mark.parametrize(
    ("n", "p", "bounds"),
    [
        (10, 0.3, (0.25, 0.297038404, 0.316737644, 0.333333333)),
        (100, 0.05, (0.166666667, 0.196906039, 0.198652411, 0.2)),
    ],
)
def test_lemma_c_2(n, p, bounds):
    """1/(1+mu) <= E 1/(1+S) <= (1 - exp(-mu))/mu <= 1/mu; the paper prints exp(+mu)."""
    mu = n * p
    exact = float(np.sum(binomial_masses(n, p) / (1.0 + np.arange(n + 1))))
    assert (1 / (1 + mu), exact, -math.expm1(-mu) / mu, 1 / mu) == near(bounds)
