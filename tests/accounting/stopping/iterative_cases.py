"""Steps of known privacy, and the pair that every (epsilon, delta)-private one comes from."""

from __future__ import annotations

import math

import numpy as np

from dpselect.privacy import compose, gaussian, pure_dp
from dpselect.privacy.output.optimal_composition import composition_delta


def gaussian_steps(count):
    """Steps of 0.001-zero-concentrated privacy each, as Gaussian noise."""
    return gaussian(noise_multiplier=1.0 / math.sqrt(0.002 * count))


def pure_steps(count, epsilon=0.1):
    return compose(*[pure_dp(epsilon=epsilon)] * count)


def response(epsilon, delta):
    """Kairouz, Oh, Viswanath (2015): every (epsilon, delta)-private pair is a post-processing of this one."""
    e = math.exp(epsilon)
    law = np.array([delta, (1 - delta) * e / (1 + e), (1 - delta) / (1 + e), 0.0])
    return law, law[::-1]


def composed_epsilon(count, epsilon, delta):
    low, high = 0.0, count * epsilon
    for _ in range(40):
        middle = 0.5 * (low + high)
        enough = composition_delta(count=count, epsilon=epsilon, total_epsilon=middle) <= delta
        low, high = (low, middle) if enough else (middle, high)
    return high
