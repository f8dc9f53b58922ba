"""Subjects of audits: mechanisms that are exactly at their claims."""

import math

import numpy as np

from dpselect.audit import Subject
from dpselect.privacy import gaussian, laplace, pure_dp


def on_grid(noise):
    """Noise as a careful mechanism adds it: multiples of 2**-20, so that its low bits tell nothing."""
    return np.round(noise * 2.0**20) / 2.0**20


def subject(claim, draw, name="mechanism"):
    return Subject(name=name, draw=draw, claim=claim)


def response(share, claim):
    return subject(claim, lambda other, count, random: random.bernoulli(1 - share if other else share, count))


# exactly at their claims, each; the last two are one law on both sides
NULLS = {
    "randomised response": response(0.75, pure_dp(epsilon=math.log(3))),
    "laplace": subject(laplace(scale=1), lambda other, count, random: on_grid(random.laplace(count)) + other),
    "gaussian": subject(gaussian(noise_multiplier=1), lambda other, n, random: on_grid(random.normal(n)) + other),
    "same labels": subject(
        pure_dp(epsilon=0), lambda other, n, random: np.array([f"user {i}" for i in range(64)])[random.words(n) % 64]
    ),
    "same numbers": subject(pure_dp(epsilon=0), lambda other, count, random: random.normal(count)),
}
