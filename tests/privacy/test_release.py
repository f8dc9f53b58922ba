"""A release after post-processing: its value, its price, and what the oracle says of both."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter

from dpselect.mechanisms.noise_reduction import (
    LaplaceReduction,
)
from dpselect.privacy import Release
from tests.mechanisms.test_noise_reduction import CUT, RATES, STOPS, gradual_law, violation


def test_post_processing_keeps_the_price_and_the_oracle_agrees():
    """Any function of the levels, with the cell kept: the laws of (cell, f) satisfy the same prices."""
    guarantee = LaplaceReduction(epsilons=RATES, sensitivity=1).guarantee
    levels = (3.0, 1.0)
    release = Release(value=levels, guarantee=guarantee.worst(), realised=guarantee.observed(levels))
    after = release.processed(lambda levels: max(levels) > 2)
    assert after.value == (2, True)
    assert after.realised.price == 1.0
    assert after.guarantee.epsilon(delta=0) == 1.6
    laws = []
    for value in (0, 1):
        law = {}
        for path, mass in gradual_law(value, RATES, STOPS["at a large answer"], 14).items():
            key = (len(path), max(path) > 2)
            law[key] = law.get(key, 0.0) + mass
        laws.append(law)
    assert violation(*laws, replace(guarantee, cell=itemgetter(0))) < CUT
