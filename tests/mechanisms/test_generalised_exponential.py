"""Scores of different sensitivities: normalised scores, the definition, and the stated error."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from dpselect.mechanisms import (
    GeneralisedExponentialMechanism,
)
from dpselect.randomness import keyed_source
from tests.audits.score_laws import exponential_law
from tests.mechanisms.test_scores import FALSE_ALARM, p_value


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_normalised_scores_have_sensitivity_one(data: st.DataObject) -> None:
    """Also for scores far larger than their sensitivities, where subtraction rounds."""
    count = data.draw(st.integers(2, 6))
    bounds = data.draw(st.lists(st.sampled_from([0.25, 1.0, 3.0, 1e3]), min_size=count, max_size=count))
    centre = data.draw(st.sampled_from([0.0, 1e9, -1e15]))
    q = centre + np.array(data.draw(st.lists(st.floats(-5e3, 5e3), min_size=count, max_size=count)))
    shares = np.array(data.draw(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=count, max_size=count)))
    moved = q + shares * bounds
    exactly = [abs(Fraction(a) - Fraction(b)) <= Fraction(d) for a, b, d in zip(moved, q, bounds, strict=True)]
    if not all(exactly):
        return
    mechanism = GeneralisedExponentialMechanism(sensitivities=bounds, epsilon=1.0)
    apart = np.abs(mechanism.normalised(moved) - mechanism.normalised(q))
    assert apart.max() <= 1.0 + 2.0**-25
    assert mechanism.normalised(q).max() == 0.0


@pytest.mark.full
def test_generalised_mechanism_against_its_definition() -> None:
    """Raskhodnikova, Smith (2016): the normalised score by its double loop, and the law of the draw."""
    q, d = np.array([90.0, 95.0, 60.0]), (1.0, 40.0, 3.0)
    mechanism = GeneralisedExponentialMechanism(sensitivities=d, epsilon=1.0, failure_probability=0.1)
    t = 2.0 * math.log(3 / 0.1)
    m = [a - t * b for a, b in zip(q, d, strict=True)]
    s = [min((m[i] - m[j]) / (d[i] + d[j]) for j in range(3)) for i in range(3)]
    assert_allclose(mechanism.normalised(q), s, rtol=1e-12, atol=1e-12)
    random = keyed_source("general")
    found = Counter(
        GeneralisedExponentialMechanism(sensitivities=d, epsilon=1.0, failure_probability=0.1).draw(q, random=random)
        for _ in range(3000)
    )
    assert p_value(found, dict(enumerate(exponential_law(s, 0.5))), 3000) > FALSE_ALARM


@pytest.mark.theorem("Raskhodnikova, Smith 2016, Theorem 3.1", exact=True, sharp=True)
def test_the_error_of_the_exponential_mechanism() -> None:
    """2 log(K/beta), in units of sensitivity over epsilon: the golden values of three cases."""
    for count, beta, error in ((10, 0.05, 10.5966347), (100, 0.05, 15.2018049), (1000, 0.01, 23.0258509)):
        mechanism = GeneralisedExponentialMechanism(sensitivities=[1.0] * count, epsilon=1, failure_probability=beta)
        assert mechanism.penalty == pytest.approx(error, rel=1e-8)
        # the exponential mechanism misses by more with probability at most beta, however the scores lie
        q = np.full(count, -error)
        q[0] = 0.0
        assert 1.0 - exponential_law(q, 0.5)[0] <= beta
    # nor would less do: scores that are off by 1 % less are drawn too often
    assert 1.0 - exponential_law(0.99 * q, 0.5)[0] > beta
