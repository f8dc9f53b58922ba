"""Drawing K: exact weights, and seeded chi-square tests of every sampler.

A sampler that draws from its law fails its chi-square test with probability 1e-6 (the threshold below), so all of
them together with probability below 1e-4. Planted errors must be seen, at a threshold of 77: of 4,000 draws of a
geometric law of mean 5, a sampler that starts at 0 puts about 800 (fewer than 600 with probability below 1e-14) where
25 are expected, a statistic above 13,000; one that starts at 2 leaves empty a bin that expects 800.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from scipy.stats import chi2

from dpselect.randomness import keyed_source
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

DRAWS = 4000
FALSE_ALARM = 1e-6
SAMPLED = [
    TruncatedNegativeBinomial(eta=-0.5, gamma=0.05),
    TruncatedNegativeBinomial(eta=2.5, gamma=0.4),
    Geometric(gamma=0.2),
    Logarithmic(gamma=0.1),
    Poisson(mean=4.0),
    ZeroTruncatedPoisson(mean=2.0),
    Binomial(trials=12, probability=0.3),
    Binomial(trials=12, probability=0.625),
    BetaBinomial(trials=10, shape=0.5),
    Harmonic(limit=15),
    Uniform(limit=11),
    Tabulated(probabilities=[0.3, 0.0, 0.5, 0.0, 0.2]),
    Geometric(gamma=0.1).at_most(8),
    capped(Geometric(gamma=0.1), 8),
    Poisson(mean=100.0).at_most(70),
    Harmonic(limit=15).tilted(0.7),
]


def statistic(law: Repetitions, drawn: list[int]) -> tuple[float, int]:
    """Pearson's chi-square over single values with at least five expected, the rest together; degrees of freedom."""
    counts = np.bincount(drawn, minlength=200)
    expected = len(drawn) * law.pmf(np.arange(counts.size))
    own = expected >= 5.0
    seen, wanted = counts[own], expected[own]
    rest = len(drawn) - wanted.sum()
    if rest >= 5.0:
        seen, wanted = np.append(seen, len(drawn) - seen.sum()), np.append(wanted, rest)
    return float(((seen - wanted) ** 2 / wanted).sum()), wanted.size - 1


def passes(law: Repetitions, drawn: list[int]) -> bool:
    value, freedom = statistic(law, drawn)
    return bool(np.all(law.pmf(np.array(drawn)) > 0.0)) and value < chi2.isf(FALSE_ALARM, freedom)


@pytest.mark.cases(14)
@pytest.mark.statistical
@pytest.mark.parametrize("law", SAMPLED, ids=lambda law: f"{law.law_name}-{law.mean:.3g}")
def test_sampler_draws_its_law(law):
    source = keyed_source("repetitions").spawn(repr(law))
    assert passes(law, [law.sample(source) for _ in range(DRAWS)])


@pytest.mark.full
@pytest.mark.statistical
def test_far_tail_of_a_heavy_law():
    """The rejection sampler that takes over after 2**20 steps, entered after 8 steps: K given K > 8.

    False alarm 1e-6; 600 draws see a tail that starts one late (relative error 0.3 in the first of about 25 bins).
    """
    law = TruncatedNegativeBinomial(eta=-0.5, gamma=0.02)
    source = keyed_source("heavy tail")
    drawn = [law._sample_beyond(8, source) for _ in range(600)]
    assert min(drawn) > 8
    given = Tabulated(probabilities=[0.0] * 9 + list(law.pmf(np.arange(9, 1500)) / law.survival(8)))
    assert passes(given, drawn)
    assert not passes(given, [k + 1 for k in drawn])


def test_a_walk_hands_over_to_the_tail(monkeypatch):
    """With the switch after 3 steps the law stays the same; false alarm 1e-6."""
    monkeypatch.setattr("dpselect.repetitions.distribution.LONG_WALK", 3)
    law = TruncatedNegativeBinomial(eta=-0.2, gamma=0.3)
    source = keyed_source("hand over")
    assert passes(law, [law.sample(source) for _ in range(500)])


def test_off_by_one_is_caught():
    """The planted samplers of the module's first lines: geometric from 0, and one that stops instead of redrawing."""
    law = Geometric(gamma=0.2)
    source = keyed_source("off by one")
    drawn = [law.sample(source) for _ in range(DRAWS)]
    assert passes(law, drawn)
    assert statistic(law, [k - 1 for k in drawn])[0] > 500.0
    assert not passes(law, [k + 1 for k in drawn])
    assert not passes(Uniform(limit=11), [Uniform(limit=12).sample(source) for _ in range(DRAWS)])
    stopped = capped(Geometric(gamma=0.1), 8)
    assert not passes(Geometric(gamma=0.1).at_most(8), [stopped.sample(source) for _ in range(DRAWS)])


def exact_binomial(trials: int, probability: Fraction) -> list[Fraction]:
    values = [Fraction(1)]
    for _ in range(trials):
        values = [
            (values[k] if k < len(values) else 0) * (1 - probability) + (values[k - 1] * probability if k else 0)
            for k in range(len(values) + 1)
        ]
    return values


def exact_law(law: Repetitions, count: int) -> list[Fraction]:
    """P(K = 0 .. count) in exact arithmetic on the very doubles that are the parameters."""
    match law:
        case Geometric():
            gamma = Fraction(law.gamma)
            return [Fraction(0)] + [gamma * (1 - gamma) ** (k - 1) for k in range(1, count + 1)]
        case Harmonic():
            total = sum(Fraction(1, k) for k in range(1, law.limit + 1))
            return [Fraction(0)] + [1 / (k * total) for k in range(1, law.limit + 1)]
        case Binomial():
            return exact_binomial(law.trials, Fraction(law.probability))
        case Tabulated():
            table = [Fraction(p) for p in law.probabilities]
            return [p / sum(table) for p in table]
    base = exact_law(law.law, law.limit)  # a law given that K is at most its limit
    return [p / sum(base[: law.limit + 1]) for p in base[: law.limit + 1]]


@pytest.mark.parametrize(
    "law",
    [
        Geometric(gamma=0.1),
        Geometric(gamma=1e-30),
        Harmonic(limit=60),
        Binomial(trials=40, probability=0.9),
        Tabulated(probabilities=[0.1, 1e-200, 0.9]),
        Geometric(gamma=0.3).at_most(20),
        Binomial(trials=60, probability=0.99).at_most(20),
    ],
    ids=lambda law: law.law_name,
)
def test_exact_weights_are_as_exact_as_stated(law):
    """Each weight within 2**-280 max(P(K = minimum), P(K = k)) of rational arithmetic."""
    count = law.limit if law.limit is not None else 300
    bits, weights = law._exact_pmf()
    exact = exact_law(law, count)
    got = [Fraction(weight, 1 << bits) for weight in islice(weights, count + 1)]
    first = exact[law.minimum]
    assert all(
        abs(p - q) <= Fraction(1, 1 << 280) * max(first, p)
        for p, q in zip(exact[law.minimum :], got[law.minimum :], strict=True)
    )


def test_a_source_replays():
    law = Geometric(gamma=0.01)
    first, second = keyed_source(5), keyed_source(5)
    assert [law.sample(first) for _ in range(20)] == [law.sample(second) for _ in range(20)]
    with pytest.raises(TypeError, match="random"):
        law.sample(np.random.default_rng(0))  # type: ignore[arg-type]
    assert Fixed(count=7).sample() == 7


def test_large_laws_are_quick_enough_to_draw():
    """No time limit, only that these end: first weights far below the smallest double, and a far quantile."""
    assert 800 < Poisson(mean=1000.0).sample(keyed_source(1)) < 1200
    assert 0 < TruncatedNegativeBinomial(eta=50.0, gamma=0.05).sample(keyed_source(2)) < 2000
    assert Poisson(mean=1000.0).at_most(500).sample(keyed_source(3)) <= 500
    law = TruncatedNegativeBinomial.with_mean(eta=-0.9, mean=1000.0)
    assert law._sample_beyond(1 << 20, keyed_source(4)) > 1 << 20
    # the survival function falls as k**-0.9 until 1 / gamma = 3e30
    assert law.survival(float(law.quantile(1 - 2.0**-40))) == pytest.approx(2.0**-40, rel=1e-11)
