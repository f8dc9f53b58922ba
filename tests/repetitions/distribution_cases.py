"""Distributions of K of every kind, for tests that hold for all of them."""

from __future__ import annotations

from dpselect.repetitions import (
    BetaBinomial,
    Binomial,
    Fixed,
    Geometric,
    Harmonic,
    Logarithmic,
    Poisson,
    Repetitions,
    Tabulated,
    TruncatedNegativeBinomial,
    Uniform,
    ZeroTruncatedPoisson,
    capped,
)

ONE_OF_EACH = [
    TruncatedNegativeBinomial(eta=-0.9, gamma=1e-3),
    TruncatedNegativeBinomial(eta=-1e-9, gamma=0.01),
    TruncatedNegativeBinomial(eta=3.0, gamma=0.2),
    Geometric(gamma=0.1),
    Logarithmic(gamma=0.03),
    Poisson(mean=7.5),
    ZeroTruncatedPoisson(mean=1.5),
    Binomial(trials=30, probability=0.3),
    BetaBinomial(trials=25, shape=0.4),
    Harmonic(limit=40),
    Uniform(limit=9),
    Fixed(count=4),
    Tabulated(probabilities=[0.5, 0.0, 0.2, 0.0, 0.3]),
    Geometric(gamma=0.1).at_most(15),
    capped(Geometric(gamma=0.1), 15),
    Poisson(mean=400.0).at_most(200),
    Harmonic(limit=12).tilted(0.9),
]


def label(law: Repetitions) -> str:
    return f"{law.law_name}-{law.mean:.3g}"
