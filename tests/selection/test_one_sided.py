"""The largest threshold that is passed often enough: grid, counts, and the distribution of the answer."""

import math

import pytest

from dpselect.accounting.candidates.sampled_percentile import SmoothedCount
from dpselect.accounting.candidates.sampled_search import threshold_search_margin
from dpselect.errors import ArgumentError
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.selection import (
    ThresholdSearch,
    one_sided,
)
from dpselect.selection.one_sided import threshold_grid
from tests.selection.algorithms_cases import assert_law, coin, levels, once
from tests.selection.selection_laws import (
    threshold_search_law,
)

BASE = pure_dp(epsilon=0.5)
SEARCH = {"target": 0.5, "base": BASE, "statistic": SmoothedCount(samples=5, smoothing=4.0, sensitivity=0.8)}
MASSES = [0.2, 0.3, 0.4, 0.1]


@pytest.mark.full
@pytest.mark.statistical
def test_law_of_the_threshold_search(monkeypatch):
    once(monkeypatch, one_sided, "threshold_search")
    law = threshold_search_law(MASSES, SEARCH["statistic"], 0.5, epsilon=4.0)
    bars = (1.0, 0.75, 0.5)
    assert_law(
        lambda source: ThresholdSearch(thresholds=bars, epsilon=4.0, **SEARCH)(levels(MASSES), random=source).value,
        dict(zip([*bars, None], law, strict=True)),
    )


@pytest.mark.full
def test_a_lowered_bar_misses_less():
    """The bar of the search is lowered by 6 S/epsilon log(1/beta): a fraction of the target passes."""
    statistic = SmoothedCount(samples=400, smoothing=10.0, sensitivity=0.6)
    common = {"thresholds": (1.0,), "target": 0.8, "base": BASE, "statistic": statistic, "epsilon": 60.0}
    plain = [ThresholdSearch(**common)(coin(0.6), random=keyed_source(i)).value for i in range(20)]
    lowered = [
        ThresholdSearch(failure_probability=1e-3, **common)(coin(0.6), random=keyed_source(i)).value for i in range(20)
    ]
    assert plain.count(1.0) <= 10 < lowered.count(1.0)


def test_the_grid_falls_to_zero():
    assert threshold_grid(5) == (0.8, 0.6, 0.4, 0.2, 0.0)
    assert threshold_grid(1) == (0.0,)
    with pytest.raises(ArgumentError, match="count"):
        threshold_grid(0)


def test_one_batch_is_counted_for_all_bars():
    scores = iter([1.0, 0.5, 0.49, math.nan, -1.0, 0.0])

    def candidate(random):
        score = next(scores, None)
        if score is None:
            raise ValueError
        return score, None

    assert one_sided.passing_counts(candidate, (1.0, 0.5, 0.0), 7, keyed_source(1)) == [1, 2, 4]


def test_the_bar_is_the_statistic_of_the_target_less_the_margin():
    statistic = SmoothedCount(samples=400, smoothing=10.0, sensitivity=0.6)
    common = {"thresholds": (1.0,), "target": 0.8, "base": BASE, "statistic": statistic, "epsilon": 60.0}
    plain, lowered = ThresholdSearch(**common), ThresholdSearch(failure_probability=1e-3, **common)
    assert plain.level == statistic.statistic(320.0)
    margin = threshold_search_margin(
        sensitivity=0.6, slack=0.6 - BASE.pure_epsilon, epsilon=60.0, failure_probability=1e-3
    )
    assert lowered.level == plain.level - margin < plain.level
    for wrong in ((), (0.5, 0.5), (0.5, 0.6)):
        with pytest.raises(ArgumentError, match="thresholds"):
            ThresholdSearch(**{**common, "thresholds": wrong})
    with pytest.raises(ArgumentError, match="target"):
        ThresholdSearch(**{**common, "target": 0.0})
