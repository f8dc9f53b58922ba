"""Candidates: mixtures drawn exactly, candidates made only when drawn, and adapters with their guarantees."""

from dpselect.privacy import pure_dp
from dpselect.selection import PrivateCandidate
from dpselect.selection.estimators import (
    noisy_value,
)


def test_a_private_candidate_shows_nothing():
    data = [123456789.0]
    assert "123456789" not in repr(PrivateCandidate(lambda random: (data[0], data), pure_dp(epsilon=1)))
    assert "123456789" not in repr(noisy_value(data, sensitivity=1, epsilon=1))
