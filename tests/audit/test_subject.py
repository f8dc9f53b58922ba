"""Subjects of audits: their claims must be guarantees."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dpselect.audit import FiniteSubject, Subject
from dpselect.privacy import OutputGuarantee, pure_dp

CLAIM = pure_dp(epsilon=1.0)


def draw(neighbour, count, random):
    return np.zeros(count)


@pytest.mark.parametrize("claim", [1.0, None, OutputGuarantee(cell=bool, epsilons={True: 1.0, False: 0.5})])
def test_a_claim_is_a_guarantee(claim):
    with pytest.raises(TypeError, match="claim"):
        Subject(name="x", draw=draw, claim=claim)
    with pytest.raises(TypeError, match="claim"):
        FiniteSubject(name="x", data={0: 1.0}, neighbour={0: 1.0}, claim=claim)


def test_subjects_do_not_change():
    for subject in (
        Subject(name="x", draw=draw, claim=CLAIM),
        FiniteSubject(name="x", data={0: 1.0}, neighbour={0: 1.0}, claim=CLAIM),
    ):
        assert subject.claim is CLAIM
        with pytest.raises(dataclasses.FrozenInstanceError):
            subject.claim = pure_dp(epsilon=2.0)
