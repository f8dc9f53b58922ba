"""Guarantees from curves: concentrated privacy, Renyi curves and tables, against published values."""

from __future__ import annotations

import math

import pytest

from dpselect.privacy import (
    gaussian,
    zcdp,
)


def test_concentrated_and_gaussian_values():
    # single run of the figures of Papernot, Steinke 2022; Gaussian values are Balle, Wang 2018, Theorem 8
    assert zcdp(rho=0.1).epsilon(delta=1e-6) == pytest.approx(2.141939, abs=1e-6)
    for noise, value in ((1 / math.sqrt(0.2), 1.99453), (4, 1.0607), (1, 4.8866), (10, 0.3969)):
        assert gaussian(noise_multiplier=noise).epsilon(delta=1e-6) == pytest.approx(value, abs=6e-5)
