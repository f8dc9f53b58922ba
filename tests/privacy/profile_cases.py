"""A bound lies above the truth and close to it."""

from __future__ import annotations

import mpmath as mp

# ROUND_UP adds 1e-12; the rest is rounding that is covered on purpose
EXCESS = 2e-12


def assert_encloses(got, truth, excess=EXCESS):
    """got >= truth, and at most `excess` above it, relatively."""
    got = mp.mpf(float(got))
    assert got >= truth * (1 - mp.mpf(10) ** -45), (float(got), float(truth), float(got / truth - 1))
    assert got <= truth * (1 + excess), (float(got), float(truth), float(got / truth - 1))
