"""What selectors refuse, by name and before anything is drawn; and that their page runs."""

import doctest
import math
import traceback

import pytest

from dpselect.accounting.candidates.conditional import conditional_sampling
from dpselect.accounting.candidates.dummies import select_among_dummies
from dpselect.accounting.candidates.sampled_percentile import SmoothedCount, SmoothedOdds
from dpselect.accounting.candidates.sampled_search import smoothed_count, smoothed_odds
from dpselect.accounting.candidates.without_threshold import runs_needed, without_threshold
from dpselect.errors import ArgumentError, BoundUnavailableError
from dpselect.mechanisms import SparseVector, noisy_count
from dpselect.privacy import approximate_dp, gaussian, laplace
from dpselect.repetitions import Fixed
from dpselect.selection import (
    PercentileSparseVector,
    PrivateCandidate,
    SampledSparseVector,
    SelectAcceptable,
    SelectIncreasing,
    SelectWithDummies,
    SelectWithoutThreshold,
    ThresholdSearch,
    amplified,
    log_odds,
    noisy_score_candidate,
    private_mixture,
    select_above,
    select_best,
)
from dpselect.selection.estimators import noisy_value
from dpselect.selection.hyperparameters import tuning_candidate
from dpselect.selection.percentile_sparse_vector import laplace_log_odds
from tests.root import ROOT
from tests.selection.algorithms_cases import coin
from tests.selection.test_algorithms import BASE


def test_wrong_arguments():
    counts = SmoothedCount(samples=5, smoothing=30.0, sensitivity=0.8)
    odds = SmoothedOdds(samples=5, smoothing=30.0, sensitivity=1.6)
    search = {"target": 0.5, "base": BASE, "statistic": counts, "epsilon": 1.0}
    for thresholds in ([], [0.5, 0.5], [0.1, 0.5], [math.nan]):
        with pytest.raises(ArgumentError, match="thresholds"):
            ThresholdSearch(thresholds=thresholds, **search)(coin(0.5))
    with pytest.raises(ArgumentError, match="target"):
        ThresholdSearch(thresholds=[0.5], **(search | {"target": 0.0}))(coin(0.5))
    with pytest.raises(ArgumentError, match="epsilon"):
        ThresholdSearch(thresholds=[0.5], **(search | {"epsilon": 0.0}))(coin(0.5))
    for call in (
        lambda: ThresholdSearch(thresholds=[0.5], **search)(3),
        lambda: SelectWithDummies(threshold=0.0, runs=1, gamma=0.1, base=BASE)(3),
        lambda: SelectAcceptable(acceptable=bool, floor=0.1, base=BASE)(3),
        lambda: SampledSparseVector(guarantee=BASE, statistic=odds, epsilon=1.0, max_queries=1).first([(3, 0.5)]),
    ):
        with pytest.raises(TypeError, match="candidate"):
            call()
    with pytest.raises(TypeError, match="acceptable"):
        SelectAcceptable(acceptable=3, floor=0.1, base=BASE)(coin(0.5))
    for floor in (0.0, 1.0, math.nan):
        with pytest.raises(ArgumentError, match="floor"):
            SelectAcceptable(acceptable=bool, floor=floor, base=BASE)(coin(0.5))
    dummies = {"threshold": 0.5, "runs": 5, "gamma": 0.1, "base": BASE}
    for wrong in ({"gamma": 0.25}, {"gamma": 0.0}, {"runs": 0}, {"threshold": math.nan}, {"sharpness": 0.0}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            SelectWithDummies(**(dummies | wrong))(coin(0.5))
    for wrong in ({"samples": 0}, {"smoothing": 0.0}, {"sensitivity": -1.0}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            SmoothedOdds(**({"samples": 5, "smoothing": 1.0, "sensitivity": 1.0} | wrong))
    with pytest.raises(ArgumentError, match="slack"):
        smoothed_count(BASE, samples=5, thresholds=3, delta=1e-6, slack=1.0)
    with pytest.raises(BoundUnavailableError, match="SmoothedOdds"):
        smoothed_odds(gaussian(noise_multiplier=1.0), samples=5, max_queries=3, delta=1e-6)
    with pytest.raises(ArgumentError, match="max_queries"):
        PercentileSparseVector(guarantee=BASE, epsilon=1.0, max_queries=0)
    with pytest.raises(ArgumentError, match="target"):
        PercentileSparseVector(guarantee=BASE, epsilon=1.0, target=1.0)
    with pytest.raises(BoundUnavailableError, match="pure"):
        PercentileSparseVector(guarantee=gaussian(noise_multiplier=1.0), epsilon=1.0)
    with pytest.raises(ArgumentError, match="version"):
        runs_needed(candidates=2, thresholds=2, epsilon_run=1, epsilon_search=1, delta=0.1, version="printed")
    with pytest.raises(ArgumentError, match="add up"):
        log_odds(passing=0.5, failing=0.6)
    with pytest.raises(ArgumentError, match="margin"):
        amplified(mean=0.2, margin=0.3, failure_probability=0.1, base=BASE)(coin(0.5))
    for wrong in ({"train": 3}, {"correct": 3}):
        settings = {"train": lambda i, r: i, "candidates": 3, "correct": len, "validation_epsilon": 1.0} | wrong
        with pytest.raises(TypeError, match=next(iter(wrong))):
            tuning_candidate(settings.pop("train"), **settings)


def test_arguments_of_another_kind_are_named():
    """An `OutputGuarantee` or a number for the guarantee, the other statistic, candidates without a guarantee."""
    counts = SmoothedCount(samples=5, smoothing=30.0, sensitivity=0.8)
    odds = SmoothedOdds(samples=5, smoothing=30.0, sensitivity=1.6)
    for wrong in (None, 1.0, PercentileSparseVector(guarantee=BASE, epsilon=1.0).guarantee):
        for call in (
            lambda g: select_best(coin(0.5), repetitions=Fixed(count=1), guarantee=g),
            lambda g: select_above(coin(0.5), threshold=0.5, stop_probability=0.1, guarantee=g),
            lambda g: SelectAcceptable(acceptable=bool, floor=0.1, base=g)(coin(0.5)),
            lambda g: SelectWithDummies(threshold=0.5, runs=5, gamma=0.1, base=g)(coin(0.5)),
            lambda g: PercentileSparseVector(guarantee=g, epsilon=1.0).first([0.0]),
            lambda g: SampledSparseVector(guarantee=g, statistic=odds, epsilon=1.0, max_queries=1).first(
                [(coin(0.5), 0.5)]
            ),
            lambda g: ThresholdSearch(thresholds=[0.5], target=0.5, base=g, statistic=counts, epsilon=1.0)(coin(0.5)),
            lambda g: PrivateCandidate(coin(0.5), g),
            lambda g: SelectIncreasing(levels=[g], repetitions=Fixed(count=1)),
            lambda g: SelectWithoutThreshold.by_theorem(candidates=1, thresholds=1, base=g, epsilon=1.0, delta=0.1)(
                coin(0.5)
            ),
        ):
            with pytest.raises(TypeError, match=r"^(guarantee|base|levels) must be"):
                call(wrong)
    # the constant of counts is half of that of odds: mixed up, the price would be too small
    with pytest.raises(TypeError, match="SmoothedCount"):
        ThresholdSearch(thresholds=[0.5], target=0.5, base=BASE, statistic=odds, epsilon=1.0)(coin(0.5))
    with pytest.raises(TypeError, match="SmoothedOdds"):
        SampledSparseVector(guarantee=BASE, statistic=counts, epsilon=1.0, max_queries=1)
    with pytest.raises(TypeError, match="candidates"):
        private_mixture([coin(0.5)])


@pytest.mark.parametrize(
    "call",
    [
        lambda: PercentileSparseVector(guarantee=BASE, epsilon=1.0).first(["870 ill"]),
        lambda: log_odds(passing="870 ill", failing=0.5),
        lambda: laplace_log_odds("870 ill", scale=1.0),
        lambda: noisy_score_candidate(["870 ill"], sensitivities=1.0, epsilon=1.0),
        lambda: noisy_value(["870 ill"], sensitivity=1.0, epsilon=1.0),
        lambda: noisy_count("870", epsilon=1.0),
        lambda: noisy_count(870.5, epsilon=1.0),
        lambda: SparseVector(epsilon_threshold=1.0, epsilon_queries=1.0, max_positives=1).above("870 ill", 1.0),
    ],
)
def test_no_error_shows_a_data_value(call):
    with pytest.raises((TypeError, ValueError)) as refused:
        call()
    assert "870" not in "".join(traceback.format_exception_only(refused.value))
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


@pytest.mark.full
def test_a_failing_base_is_priced_in_every_selector():
    """The base's failure mass grows with the number of draws, run or not."""
    base = approximate_dp(epsilon=0.5, delta=1e-9)
    dummies = select_among_dummies(base, runs=1000, gamma=0.1)
    assert dummies.failure == pytest.approx(1e-6, rel=1e-3)
    assert dummies.pure_epsilon == pytest.approx(select_among_dummies(BASE, runs=1000, gamma=0.1).pure_epsilon)
    counts = smoothed_count(base, samples=1000, thresholds=5, delta=1e-6, slack=0.5)
    total = without_threshold(base, statistic=counts, epsilon_search=0.2, thresholds=5, stop_probability=0.01)
    assert 1e-7 * 0.9 < total.failure < 1e-6 + 1000e-9 + 1e-7
    floor = conditional_sampling(base, floor=0.01)
    assert floor.failure == pytest.approx(0.99 * 1e-9 / 0.01, rel=1e-3)
    assert floor.pure_epsilon < 1.0
    assert math.isfinite(conditional_sampling(laplace(scale=2.0), floor=0.01).epsilon(0.0))


@pytest.mark.full
@pytest.mark.parametrize(("page", "examples"), [("how-to/selection.md", 40), ("how-to/scores.md", 8)])
def test_the_examples_of_the_page_run(page, examples):
    path = ROOT / "docs" / page
    failed, tried = doctest.testfile(str(path), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert failed == 0
    assert tried >= examples
