"""Selection without a threshold: its distribution, and numbers of runs that nobody can wait for."""

import math

import numpy as np
import pytest

from dpselect.accounting.candidates.sampled_percentile import SmoothedCount
from dpselect.accounting.candidates.without_threshold import runs_needed, without_threshold
from dpselect.errors import ArgumentError, BoundUnavailableError
from dpselect.privacy import gaussian, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Geometric
from dpselect.selection import (
    SelectWithoutThreshold,
    ThresholdSearch,
    one_sided,
    without_threshold as threshold_free,
)
from tests.selection.algorithms_cases import levels, once
from tests.selection.selection_laws import (
    first_above_law,
    threshold_search_law,
)
from tests.selection.test_algorithms import Ran


def test_the_threshold_free_selector_refuses_what_nobody_can_run():
    ran = Ran()
    with pytest.raises(ArgumentError, match=r"10\^37\.0 runs, above most_runs = 1e\+07") as refused:
        SelectWithoutThreshold.by_theorem(
            candidates=10, thresholds=10, base=pure_dp(epsilon=1.0), epsilon=1.0, delta=1e-6
        )(ran)
    assert "by hand" in str(refused.value)
    assert not ran
    # a limit that lets it through; very generous parameters
    needed = runs_needed(
        candidates=1, thresholds=2, epsilon_run=0.001, epsilon_search=40.0, delta=0.01, failure_probability=0.4
    )
    select = SelectWithoutThreshold.by_theorem(
        candidates=1,
        thresholds=2,
        base=pure_dp(epsilon=0.001),
        epsilon=40.0,
        delta=0.01,
        failure_probability=0.4,
        most_runs=2 * needed.total,
    )
    assert select.stop_probability == pytest.approx(10**needed.log10_stop_probability)
    release = select(lambda random: (1.0, "a"))
    assert release.value == "a"
    assert release.guarantee.pure_epsilon <= 40.002 + 1e-6
    with pytest.raises(BoundUnavailableError, match="guarantee"):
        SelectWithoutThreshold.by_theorem(
            candidates=2, thresholds=2, base=gaussian(noise_multiplier=1.0), epsilon=1.0, delta=1e-6
        )(ran)


BASE = pure_dp(epsilon=0.5)
SEARCH = {"target": 0.5, "base": BASE, "statistic": SmoothedCount(samples=5, smoothing=4.0, sensitivity=0.8)}
MASSES = [0.2, 0.3, 0.4, 0.1]


@pytest.mark.full
@pytest.mark.statistical
def test_law_without_a_threshold(monkeypatch):
    once(monkeypatch, one_sided, "threshold_search")
    once(monkeypatch, threshold_free, "without_threshold")
    search = threshold_search_law(MASSES, SEARCH["statistic"], 0.5, epsilon=4.0)
    law = np.zeros(5)
    for place in range(3):
        later = first_above_law(MASSES, np.arange(4) <= place, Geometric(gamma=0.2).at_most(6))
        law[: place + 1] += search[place] * later[:-1]
        law[-1] += search[place] * later[-1]
    law[-1] += search[-1]
    price = without_threshold(
        BASE, statistic=SEARCH["statistic"], epsilon_search=4.0, thresholds=3, stop_probability=0.2, max_runs=6
    )
    three = ThresholdSearch(thresholds=(1.0, 0.75, 0.5), epsilon=4.0, **SEARCH)
    select = SelectWithoutThreshold(search=three, stop_probability=0.2, max_runs=6)
    draws = 300
    found = []
    source = keyed_source("without a threshold")
    for _ in range(draws):
        release = select(levels(MASSES), random=source)
        found.append(release.value)
    assert release.guarantee.pure_epsilon == price.pure_epsilon
    # five standard errors at 300 draws: a probability off by 0.15 is caught
    for value, probability in zip([0, 1, 2, 3, None], law, strict=True):
        error = math.sqrt(probability * (1 - probability) / draws)
        assert abs(found.count(value) / draws - probability) <= 5 * error + 1 / draws
