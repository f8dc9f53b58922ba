"""A Gaussian base by its mean."""

from __future__ import annotations

from dpselect.privacy import gaussian


def gaussian_base(mu):
    return gaussian(noise_multiplier=1.0 / mu)
