"""How much better an accepted candidate is: a lower bound by the bet, on a grid of margins."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpselect.holdout.gate.purse import log_of
from dpselect.holdout.gate.rules import bet_wealth
from dpselect.holdout.gate.terms import GateTerms

__all__ = ["gain_bound"]

_GRID: Final = 256
"""Margins from 0 to 1 in steps of one over this."""


def gain_bound(differences: NDArray[np.float64], level: Fraction, terms: GateTerms) -> float:
    """The last margin before the first, on a fixed grid, that the bet does not accept at this level.

    It is above the true gain with probability at most the level, for a pair fixed beforehand: the first margin of the
    grid at or above the true gain would be accepted. At least the gate's own margin, which the gate has certified (for
    the test "wins", which certifies no mean, and where nothing is left for bounds, the number may be -1).

    Source: docs/theory/gate.md, Theorem 2.
    """
    known = -1.0 if terms.test == "wins" else terms.margin
    if not level:
        return known
    margins = np.arange(_GRID) / _GRID
    target = -log_of(level) + 1e-9
    gains = (differences - margins[:, None]) / (1.0 + margins[:, None])
    refused = bet_wealth(gains, np.full(_GRID, target)) < target
    passed = int(np.argmax(refused)) if refused.any() else _GRID
    return max(known, float(margins[passed - 1])) if passed else known
