"""Canaries: fair coins, and guesses in the numbers asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.audit.canaries import guess, include, right_guesses
from dpselect.errors import ArgumentError
from dpselect.randomness import keyed_source

# ---- guesses -------------------------------------------------------------------------------------------------------


def test_coins_are_fair_and_guesses_have_their_numbers():
    """20,000 coins: their share is within 0.02 of a half, but for a probability of 2e-8."""
    coins = include(20_000, keyed_source(1))
    assert abs(np.mean(coins) - 0.5) < 0.02
    scores = np.zeros(10)  # all equal: still exactly so many guesses
    assert np.bincount(guess(scores, inside=4, outside=6) + 1).tolist() == [6, 0, 4]
    assert right_guesses([1, -1, 0], [True, True, True]) == 1
    for wrong in ({"inside": 0, "outside": 0}, {"inside": 6, "outside": 5}):
        with pytest.raises(ArgumentError, match="inside"):
            guess(scores, **wrong)
    with pytest.raises(ArgumentError, match="NaN"):
        guess([0.0, math.nan], inside=1, outside=0)
