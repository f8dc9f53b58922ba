"""The smoothing that the searches by sampling find for a delta, against exact enumerations."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpselect.accounting.candidates.sampled_percentile import SmoothedOdds
from dpselect.accounting.candidates.sampled_search import (
    sampled_sparse_vector,
    smoothed_count,
    smoothed_odds,
    threshold_search,
)
from dpselect.accounting.candidates.smoothing import fewest_samples
from dpselect.errors import ArgumentError
from dpselect.privacy import pure_dp
from tests.accounting.candidates.smoothing_cases import apart
from tests.selection.selection_laws import hockey_sticks, sampled_search_law


@pytest.mark.full
@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_odds_keep_the_delta_that_was_asked_and_less_smoothing_does_not(epsilon):
    """The exact failure is at most delta; with the smoothing 2 % smaller it is above it, and is refused."""
    base, queries, delta = pure_dp(epsilon=epsilon), 4, 1e-4
    found = smoothed_odds(base, max_queries=queries, delta=delta, samples=40)
    charged = sampled_sparse_vector(base, statistic=found, epsilon=1.0, max_queries=queries).guarantee.failure
    assert queries * apart(found, epsilon) <= charged <= delta
    less = SmoothedOdds(samples=40, smoothing=0.98 * found.smoothing, sensitivity=found.sensitivity)
    assert queries * apart(less, epsilon) > delta, "broken: the smoothing is too small"
    with pytest.raises(ArgumentError, match=r"smoothing of at least \d"):
        smoothed_odds(base, max_queries=queries, delta=delta, samples=40, smoothing=less.smoothing)
    given = smoothed_odds(base, max_queries=queries, delta=delta, samples=40, smoothing=2 * found.smoothing)
    assert given.smoothing == 2 * found.smoothing


def test_the_whole_search_keeps_the_delta_that_was_asked():
    """The law of what is released, enumerated: all streams of three queries at the edge of the base, both orders."""
    epsilon, delta = 0.5, 0.01
    base = pure_dp(epsilon=epsilon)
    found = smoothed_odds(base, max_queries=3, delta=delta, samples=12)
    random = np.random.default_rng(2)
    for _ in range(12):
        pairs = []
        for p in random.choice([1e-3, 0.05, 0.1, 0.3775, 0.6], size=3):
            q = min(math.exp(epsilon) * p, 1.0 - math.exp(-epsilon) * (1.0 - p))
            pairs.append((p, q) if random.random() < 0.5 else (q, p))
        laws = [sampled_search_law([pair[side] for pair in pairs], found, 0.5, epsilon=1.0) for side in (0, 1)]
        assert max(hockey_sticks(*laws, 1.0), hockey_sticks(*laws[::-1], 1.0)) <= delta


@pytest.mark.full
def test_a_delta_and_a_smoothing_that_exceeds_it_are_refused():
    """A delta of 0.419 was released where 1e-6 was asked for."""
    base = pure_dp(epsilon=0.1)
    asked = {"samples": 2000, "thresholds": 10, "delta": 1e-6, "slack": 0.25}
    with pytest.raises(ArgumentError, match="delta 1e-06: give delta alone, or a smoothing of at least 2") as refused:
        smoothed_count(base, **asked, smoothing=60.0)
    named = float(str(refused.value).rsplit(" ", 1)[1])
    for statistic in (smoothed_count(base, **asked), smoothed_count(base, **asked, smoothing=named)):
        assert threshold_search(base, statistic=statistic, epsilon=1.0, thresholds=10).guarantee.failure <= 1e-6


@pytest.mark.full
@pytest.mark.parametrize(("target", "odds"), [(0.5, True), (0.1, True), (0.9, True), (0.1, False), (0.5, False)])
def test_samples_from_a_target(target, odds):
    sensitivity = 0.8
    samples = fewest_samples(target=target, sensitivity=sensitivity, odds=odds)

    def errs(n):
        counts = np.arange(n + 1)
        with np.errstate(divide="ignore"):
            values = np.log(counts / (n - counts)) if odds else np.log(counts / n)
        centre = math.log(target / (1 - target)) if odds else math.log(target)
        return float(np.sum(binom.pmf(counts, n, target)[np.abs(values - centre) > sensitivity]))

    assert errs(samples) <= 0.05 + 1e-9
    assert max(errs(n) for n in range(max(1, samples // 2), samples)) > 0.05
    base = pure_dp(epsilon=0.3)
    asked = {"delta": 1e-4, "target": target, "slack": 0.1}
    made = smoothed_odds(base, max_queries=2, **asked) if odds else smoothed_count(base, thresholds=1, **asked)
    assert made.samples >= samples
    with pytest.raises(ArgumentError, match="samples, or a target"):
        smoothed_odds(base, max_queries=2, delta=1e-4)
