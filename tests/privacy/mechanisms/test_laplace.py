"""The Laplace mechanism against its exact privacy profile."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import pytest

from dpselect.privacy import (
    laplace,
)


@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0, 100.0])
def test_laplace_epsilon_is_exact(scale):
    # 1 - exp((e - 1/scale) / 2) = delta (Balle, Barthe, Gaboardi 2018, Theorem 3)
    with mp.workdps(40):
        for delta in (1e-12, 1e-6, 0.01):
            truth = 1 / mp.mpf(scale) + 2 * mp.log1p(-mp.mpf(delta))
            got = laplace(scale=scale).epsilon(delta=delta)
            if truth <= 0:
                assert got == 0.0
            else:
                assert truth <= got <= truth * (1 + 1e-9)
    assert Fraction(laplace(scale=scale).epsilon(delta=0)) * Fraction(scale) >= 1
    assert laplace(scale=scale).epsilon(delta=0) == pytest.approx(1 / scale, rel=1e-15)
