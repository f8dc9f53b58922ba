"""Privacy losses of a short run, against their enumeration in rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.ordered.slices.price_loss import SlicePairProfile
from dpselect.privacy import pure_dp

LONG = 300


@pytest.mark.theorem("docs/theory/reorder-slice-compute.md, Theorem C", exact=True, sharp=True)
@pytest.mark.parametrize("slices", [1, 2, 4])
def test_losses_of_a_short_run_by_enumeration(slices):
    """All transcripts of the holder in rationals, from the maps' definition, against the numeric pair."""
    ratio = Fraction(3, 4)
    weights = [max(Fraction(0), ratio**i + ratio ** (i + 1) - 1) for i in range(LONG)]
    fails = [((1 - ratio) * t, (1 - ratio) * t / ratio) for t in weights if t]
    p0 = [(1 - ratio) * (ratio**i - weights[i]) for i in range(12)]
    p1 = [(1 - ratio) * (ratio ** (i + 1) - weights[i + 1] / ratio) for i in range(12)]
    synced = [*zip(p0, p1, strict=True), (ratio**12, ratio**13)]  # from gamma on the ratio is one, so aggregate
    assert sum(a for a, _ in fails + synced) == sum(b for _, b in fails + synced) == 1

    def response(power):
        keep = 1 / (1 + ratio**power)
        return [(keep, 1 - keep), (1 - keep, keep)]

    def transcripts(left):
        if not left:
            return [(Fraction(1), Fraction(1))]
        later = transcripts(left - 1)
        fail = (sum(a for a, _ in fails), sum(b for _, b in fails))  # all failing outcomes have one ratio
        found = [(fail[0] * a * c, fail[1] * b * d) for a, b in response(2) for c, d in later]
        return found + [(a * c, b * d) for a, b in synced for c, d in response(1)]

    unit = -math.log(ratio)
    profile = SlicePairProfile(unit, pure_dp(epsilon=unit), pure_dp(epsilon=2 * unit, adjacency="replace_one"), slices)
    laws = transcripts(slices)
    for factor in (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(4), Fraction(1, 2)):
        forward = float(sum(max(b - factor * a, 0) for a, b in laws))
        backward = float(sum(max(a - factor * b, 0) for a, b in laws))
        epsilon = np.array([math.log(factor)])
        assert forward - 1e-15 <= profile.remove(epsilon)[0] <= forward + 1e-9
        assert backward - 1e-15 <= profile.add(epsilon)[0] <= backward + 1e-9


def test_profiles_are_rounded_up_by_what_their_sums_may_lose():
    assert SlicePairProfile._up(np.array([0.5]))[0] >= 0.5 * (1 + 1e-11)
