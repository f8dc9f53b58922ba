"""Percentiles by an exact oracle and a sparse vector."""

from __future__ import annotations

import itertools
import math

import pytest

from dpselect.accounting.candidates.percentile_sparse_vector import halting_cutoffs, log_odds_sensitivity
from dpselect.errors import BoundUnavailableError
from dpselect.privacy import approximate_dp, gaussian, pure_dp
from tests.accounting.candidates.threshold_published_cases import near
from tests.selection.selection_laws import (
    first_positive_law,
)


def test_halting_laws_are_scale_free():
    """A gap of 12 epsilon_1/epsilon_3 log(1/beta), and k of them: joint statements, far from conditional ones."""
    for beta, missed in {0.1: 0.0209151844, 0.5: 0.214868927, 0.01: 6.665e-4}.items():
        gap = 6.0 * math.log(1 / beta)
        law = first_positive_law([([gap], [1.0])], 0.0, epsilon=1.0, sensitivity=1.0)
        assert law[-1] == near(missed)
        assert missed == near(2 / 3 * beta**1.5 - beta**3 / 6)
    gap = 6.0 * math.log(10.0)
    joint = [first_positive_law([([gap], [1.0])] * k, 0.0, epsilon=1.0, sensitivity=1.0)[-1] for k in (1, 2, 3, 4)]
    assert joint == near([0.0209151844, 0.0011551361, 2.8433772e-4, 1.4997917e-4])
    conditional = [later / earlier for earlier, later in itertools.pairwise(joint)]
    assert conditional == near([0.0552, 0.2462, 0.5275], abs=5e-5)
    assert conditional[1] > 0.1, "given earlier negatives, the next one fails far more often than beta"
    even = first_positive_law([([0.0], [1.0])] * 3, 0.0, epsilon=1.0, sensitivity=1.0)
    assert even[:3] == near([1 / 2, 5 / 24, 5 / 48])


def test_halting_cutoffs():
    cut = halting_cutoffs(epsilon_run=0.1, epsilon=1.2, target=0.5, queries=9, failure_probability=0.1)
    assert (cut.low, cut.high, cut.sure) == near((0.00990099010, 0.990099010, 0.909090909))
    empty = halting_cutoffs(epsilon_run=1.0, epsilon=1.0, target=0.5, queries=10, failure_probability=0.1)
    assert empty.low == near(3.186e-25, rel=1e-3)


def test_an_exact_oracle_needs_a_pure_base():
    assert log_odds_sensitivity(pure_dp(epsilon=0.1)) == near(0.2)
    for base in (gaussian(noise_multiplier=4.0), approximate_dp(epsilon=0.1, delta=1e-9)):
        with pytest.raises(BoundUnavailableError, match="pure"):
            log_odds_sensitivity(base)
