"""What each private selector draws, runs, releases and refuses."""

import math
import pickle
from itertools import count

import pytest

from dpselect.accounting.candidates.dummies import select_among_dummies
from dpselect.accounting.candidates.sampled_percentile import SmoothedCount, SmoothedOdds
from dpselect.accounting.candidates.sampled_search import smoothed_odds
from dpselect.accounting.candidates.threshold import threshold_stopping
from dpselect.errors import BudgetError
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from dpselect.selection import (
    PercentileSparseVector,
    SampledSparseVector,
    SelectAcceptable,
    SelectHyperparameters,
    SelectWithDummies,
    ThresholdSearch,
    amplified,
    dummies as with_dummies,
    select_above,
    select_best,
    threshold_grid,
)
from tests.selection.algorithms_cases import coin

BASE = pure_dp(epsilon=0.5)


# ---- prices ----------------------------------------------------------------------------------------------------------


def test_guarantees_are_those_of_the_accounting():
    release = SelectWithDummies(threshold=1.0, runs=20, gamma=0.2, base=BASE)(coin(0.5), random=keyed_source(1))
    assert release.guarantee.pure_epsilon == select_among_dummies(BASE, runs=20, gamma=0.2).pure_epsilon
    assert release.replayable
    assert "exact" in release.guarantee.theorem
    acceptable = SelectAcceptable(acceptable=lambda score, output: score == 1.0, floor=0.1, base=BASE)(coin(0.5))
    expected = 0.5 + math.log((math.exp(0.5) + 0.1) / (1 + 0.1 * math.exp(0.5)))
    assert acceptable.guarantee.epsilon(0.0) == pytest.approx(expected, rel=1e-9)
    found = amplified(mean=0.9, margin=0.3, failure_probability=0.01, base=BASE)(coin(0.9))
    stopping = threshold_stopping(BASE, stop_probability=0.01 * 0.3 / 0.4)
    assert found.guarantee.pure_epsilon == pytest.approx(stopping.pure_epsilon)
    assert found.guarantee.pure_epsilon < 1.0


def test_prices_by_output():
    search = PercentileSparseVector(guarantee=BASE, epsilon=1.0)
    assert search.guarantee.observed(None).epsilon(0.0) == 0.5
    assert search.guarantee.observed(7).epsilon(0.0) == search.worst.epsilon(0.0) == 1.0
    assert "Theorem 4.1" in search.worst.theorem
    statistic = smoothed_odds(BASE, samples=10, max_queries=3, delta=1e-6, slack=0.25)
    sampled = SampledSparseVector(guarantee=BASE, statistic=statistic, epsilon=1.0, max_queries=3)
    assert sampled.guarantee.observed(None).price == 0.5
    assert sampled.guarantee.delta == sampled.worst.failure <= 1e-6
    assert pickle.loads(pickle.dumps(sampled.guarantee)).price(True) == 1.0
    single = SampledSparseVector(guarantee=BASE, statistic=statistic, epsilon=1.0, max_queries=1)
    assert single.worst.pure_epsilon == 0.25


# ---- what is run -----------------------------------------------------------------------------------------------------


class Ran(list):
    """Which of 100,000 candidates were run; candidate i is made when it is drawn."""

    def __call__(self, random):
        index = random.below(100_000)
        self.append(index)
        return float(random.uniform(1)[0]), index


def test_of_many_candidates_only_those_drawn_are_run():
    statistic = SmoothedCount(samples=50, smoothing=30.0, sensitivity=0.8)
    for select, most in [
        (lambda c: select_best(c, repetitions=Fixed(count=7), guarantee=BASE), 7),
        (lambda c: select_above(c, threshold=2.0, stop_probability=0.5, max_runs=9, guarantee=BASE), 9),
        (lambda c: SelectWithDummies(threshold=0.9, runs=30, gamma=0.2, base=BASE)(c), 30),
        (
            lambda c: ThresholdSearch(
                thresholds=threshold_grid(4), target=0.5, base=BASE, statistic=statistic, epsilon=1.0
            )(c),
            50,
        ),
        (lambda c: SelectAcceptable(acceptable=lambda s, o: True, floor=0.01, base=BASE)(c), 1),
    ]:
        ran = Ran()
        release = select(ran)
        assert len(ran) <= most
        assert set(vars(release)) == {"value", "guarantee", "receipt", "replayable", "realised"}
    trained = []
    release = SelectHyperparameters(
        candidates=10**9, repetitions=Fixed(count=3), training=BASE, validation_epsilon=1.0
    )(lambda i, random: trained.append(i), correct=lambda model: 1)
    assert len(trained) == 3
    assert release.value.candidate in trained


def test_streams_are_read_no_further_than_the_answer():
    read = []

    def odds():
        for index in count():
            read.append(index)
            yield math.inf if index == 3 else -math.inf

    release = PercentileSparseVector(guarantee=pure_dp(epsilon=0.01), epsilon=1.0).first(odds())
    assert release.value == 3
    assert read == [0, 1, 2, 3]

    asked = []

    def queries():
        for index in count():
            asked.append(index)
            yield coin(0.0), 1.0

    statistic = SmoothedOdds(samples=100, smoothing=20.0, sensitivity=0.9)
    base = pure_dp(epsilon=0.01)
    release = SampledSparseVector(guarantee=base, statistic=statistic, epsilon=50.0, max_queries=5).first(queries())
    assert release.value is None
    assert asked == [0, 1, 2, 3, 4]


@pytest.mark.full
def test_the_number_of_draws_does_not_depend_on_what_they_give():
    """Passing, failing, raising and NaN candidates are run equally often where the number of runs is fixed."""

    def raising(random):
        raise RuntimeError("a data value")

    def run(make):
        runs = []

        def candidate(random):
            runs.append(1)
            return make(random)

        sampled = SampledSparseVector(
            guarantee=BASE,
            statistic=SmoothedOdds(samples=40, smoothing=20.0, sensitivity=1.6),
            epsilon=1.0,
            max_queries=2,
            random=keyed_source(1),
        )
        sampled.above(candidate, 0.5)
        assert len(runs) == 40
        statistic = SmoothedCount(samples=30, smoothing=30.0, sensitivity=0.8)
        ThresholdSearch(thresholds=(0.5, 0.1), target=0.5, base=BASE, statistic=statistic, epsilon=1.0)(candidate)
        assert len(runs) == 70
        return SelectWithDummies(threshold=0.5, runs=25, gamma=0.2, base=BASE)(candidate), len(runs)

    for make in (lambda r: (1.0, "a"), lambda r: (0.0, "a"), lambda r: (math.nan, "a"), raising):
        release, runs = run(make)
        assert runs == 95
        assert release.value in ("a", None)
    assert release.value is None


def test_failures_reach_no_threshold():
    def raising(random):
        raise RuntimeError("a data value")

    common = {"thresholds": (0.5, -1e300), "target": 0.9, "base": BASE, "epsilon": 300.0}
    statistic = SmoothedCount(samples=200, smoothing=20.0, sensitivity=0.8)
    for candidate in (raising, lambda random: (math.nan, None), lambda random: (-math.inf, None)):
        assert ThresholdSearch(statistic=statistic, **common)(candidate).value is None
    assert ThresholdSearch(statistic=statistic, **common)(lambda random: (0.2, None)).value == -1e300
    assert SelectAcceptable(acceptable=lambda s, o: True, floor=0.2, base=BASE)(raising).value is None

    # among dummies: no weight, no matter what the sharpness
    assert all(with_dummies.weight(score, 0.5, s) == 0 for score in (math.nan, -math.inf) for s in (1.0, math.inf))
    assert [with_dummies.weight(score, 0.5, 2.0) / 2**53 for score in (0.5, 3.0, 0.0, -1.0)] == pytest.approx(
        [1.0, 1.0, math.exp(-1), math.exp(-3)]
    )

    def unsure(score, output):
        raise ValueError("a data value")

    assert SelectAcceptable(acceptable=unsure, floor=0.2, base=BASE)(coin(0.5)).value is None


# ---- sessions --------------------------------------------------------------------------------------------------------


def test_sessions_end_at_the_first_positive():
    search = PercentileSparseVector(guarantee=pure_dp(epsilon=0.001), epsilon=1.0, max_queries=3)
    assert not search.above(math.nan)
    assert search.above(math.inf)
    assert search.halted
    # odds far beyond even ones are told apart: those of 0.9999 lie far below these
    rare = PercentileSparseVector(guarantee=pure_dp(epsilon=0.001), epsilon=1.0, target=0.9999)
    assert not rare.above(1.0)
    assert rare.above(20.0)
    with pytest.raises(BudgetError, match="ended"):
        search.above(0.0)
    used = PercentileSparseVector(guarantee=pure_dp(epsilon=0.001), epsilon=1.0, max_queries=1)
    assert not used.above(-math.inf)
    with pytest.raises(BudgetError):
        used.above(1.0)
    for session in (
        search,
        SampledSparseVector(
            guarantee=BASE,
            statistic=SmoothedOdds(samples=5, smoothing=9.0, sensitivity=1.8),
            epsilon=1.0,
            max_queries=2,
        ),
    ):
        assert "0." not in repr(session)
        with pytest.raises(TypeError):
            pickle.dumps(session)
