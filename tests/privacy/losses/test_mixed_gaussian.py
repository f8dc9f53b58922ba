"""Gaussian noise on a random shift: its pair against 50 digits, shifts in the plane, and the sampled Gaussian."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from dpselect.privacy.losses.mixed_gaussian import MixedGaussianRenyi, mixed_gaussian_curves, mixed_gaussian_loss
from dpselect.privacy.losses.pld import LossProfile, sampled_gaussian_loss


def truth(shifts, epsilon):
    """H(P || Q) and H(Q || P) at exp(epsilon): differences of tails at the threshold, which bisection finds."""
    parts = [(mp.mpf(c), mp.mpf(p)) for c, p in shifts]
    parts.append((mp.mpf(0), 1 - mp.fsum(p for _, p in parts)))
    a = mp.exp(mp.mpf(epsilon))

    def ratio(x):
        return mp.fsum(p * mp.exp(c * x - c * c / 2) for c, p in parts)

    def threshold(level):
        low, high = mp.mpf(-200), mp.mpf(200)
        for _ in range(220):
            middle = (low + high) / 2
            low, high = (middle, high) if ratio(middle) < level else (low, middle)
        return low

    x, y = threshold(a), threshold(1 / a)
    remove = mp.fsum(p * mp.ncdf(c - x) for c, p in parts) - a * mp.ncdf(-x)
    add = mp.ncdf(y) - a * mp.fsum(p * mp.ncdf(y - c) for c, p in parts)
    return remove, add


def cases(count, seed):
    draws = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        sizes = 10 ** draws.uniform(-1.0, 0.7, size=draws.integers(1, 5))
        shares = draws.dirichlet(np.ones(sizes.size + 1))[1:] * draws.choice([1.0, 0.01])
        found.append(tuple(zip(sizes.tolist(), shares.tolist(), strict=True)))
    return found


@pytest.mark.theorem("docs/theory/samples.md, Theorem 5", exact=True, sharp=True)
@pytest.mark.cases(3)
@pytest.mark.parametrize("shifts", cases(16, seed=1))
def test_the_curves_are_their_closed_forms_and_their_errors_are_bounded(shifts):
    width = 0.05
    curves = mixed_gaussian_curves(shifts, width)
    # near the ends of the mesh too, where the divergences are below 1e-30
    places = sorted({0, 1, 7, 40, *(curve[0].size * part // 4 for curve in curves for part in (1, 2, 3))})
    with mp.workdps(60):
        for place in places:
            for (values, error), exact in zip(curves, truth(shifts, place * width), strict=True):
                if place < values.size:
                    value, slack = mp.mpf(float(values[place])), mp.mpf(float(error[place]))
                    assert exact <= value + slack
                    assert value - 2 * slack <= exact * (1 + mp.mpf("1e-9")) + mp.mpf("1e-250")
                    assert slack <= 1e-10 * value + 1e-14


def test_two_shifts_are_the_sampled_gaussian():
    epsilons = np.linspace(0.0, 5.0, 30)
    for noise, rate in ((1.0, 0.1), (0.6, 0.5), (3.0, 0.01)):
        here = LossProfile(mixed_gaussian_loss(((1.0 / noise, rate),)), 1e-3)
        other = LossProfile(sampled_gaussian_loss(noise, rate), 1e-3)
        assert here.remove(epsilons) == pytest.approx(other.remove(epsilons), rel=1e-9, abs=1e-14)
        assert here.add(epsilons) == pytest.approx(other.add(epsilons), rel=1e-9, abs=1e-14)


@pytest.mark.theorem("docs/theory/samples.md, Theorem 5", exact=True)
@pytest.mark.parametrize("seed", range(3))
def test_no_shifts_in_the_plane_exceed_the_pair(seed):
    """Vectors of any direction and length up to the stated one, parallel ones of full length among them."""
    draws = np.random.default_rng(seed)
    axis = np.linspace(-9.0, 9.0, 241)
    x, y = np.meshgrid(axis, axis)
    phi = np.exp(-0.5 * (x * x + y * y)) / (2.0 * math.pi) * (axis[1] - axis[0]) ** 2
    for trial in range(6):
        lengths = draws.uniform(0.2, 2.0, size=3)
        shares = draws.dirichlet(np.ones(4))[1:]
        angles = draws.uniform(0.0, 2.0 * math.pi, size=3) * (trial % 3 > 0)
        short = lengths * (1.0 if trial % 3 == 0 else np.sqrt(draws.uniform(size=3)))
        ratio = (
            1.0
            - shares.sum()
            + sum(
                p * np.exp(c * (x * math.cos(w) + y * math.sin(w)) - 0.5 * c * c)
                for p, c, w in zip(shares, short, angles, strict=True)
            )
        )
        remove, add = mixed_gaussian_curves(tuple(zip(lengths.tolist(), shares.tolist(), strict=True)), 0.25)
        for place in range(min(4, add[0].size)):
            a = math.exp(0.25 * place)
            found = (
                float(np.sum(phi * np.maximum(ratio - a, 0.0))),
                float(np.sum(phi * np.maximum(1.0 - a * ratio, 0.0))),
            )
            assert found[0] <= remove[0][place] + 2e-4
            assert found[1] <= add[0][place] + 2e-4
            if trial % 3 == 0:
                assert found[0] >= remove[0][place] - 2e-4
                assert found[1] >= add[0][place] - 2e-4


def test_its_renyi_curve_is_above_the_integral():
    curve = MixedGaussianRenyi(((1.0, 0.2), (2.0, 0.05)))
    x = np.linspace(-20.0, 40.0, 60_001)
    q = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    ratio = 0.75 + 0.2 * np.exp(x - 0.5) + 0.05 * np.exp(2.0 * x - 2.0)
    for order in (1.5, 2.0, 5.0):
        for power in (order, 1.0 - order):
            exact = math.log(float(np.sum(q * ratio**power)) * (x[1] - x[0])) / (order - 1.0)
            assert exact <= float(curve(np.array([order]))[0])
