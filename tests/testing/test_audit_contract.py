"""The contract of audits: sound mechanisms keep it, and defects are caught."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.audit import Subject
from dpselect.privacy import pure_dp
from dpselect.testing.audit_contract import AuditContract


def response(epsilon):
    """Randomised response."""
    high = 1.0 / (1.0 + np.exp(-epsilon))

    def draw(neighbour, count, random):
        return random.bernoulli(1.0 - high if neighbour else high, count)

    return draw


class TestRandomisedResponse(AuditContract):
    draws = 20_000

    @pytest.fixture
    def subject(self):
        return Subject(name="randomised response", draw=response(1.0), claim=pure_dp(epsilon=1.0))


def test_the_contract_refuses_a_mechanism_that_claims_too_little():
    subject = Subject(name="leaky", draw=response(1.5), claim=pure_dp(epsilon=1.0))
    for test in ("test_the_claim_is_not_refuted", "test_nor_with_the_data_sets_exchanged"):
        with pytest.raises(AssertionError):
            getattr(TestRandomisedResponse(), test)(subject)


def test_the_contract_refuses_an_audit_that_sees_nothing():
    mild = Subject(name="mild", draw=response(0.01), claim=pure_dp(epsilon=1.0))
    with pytest.raises(AssertionError):
        TestRandomisedResponse().test_a_cheaper_claim_is_refuted(mild)


def test_the_contract_refuses_draws_that_ignore_their_source():
    fixed = Subject(name="fixed", draw=lambda _, count, __: np.arange(count), claim=pure_dp(epsilon=1.0))
    with pytest.raises(AssertionError, match="ignore"):
        TestRandomisedResponse().test_draws_are_fresh_and_as_many_as_asked_for(fixed)
