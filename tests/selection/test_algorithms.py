"""What each private selector draws, runs, releases and refuses."""

import math
import pickle
from itertools import count

import numpy as np
import pytest

from dpselect.accounting import best_of
from dpselect.accounting.candidates.dummies import select_among_dummies
from dpselect.accounting.candidates.sampled_percentile import SmoothedCount, SmoothedOdds
from dpselect.accounting.candidates.sampled_search import smoothed_odds
from dpselect.accounting.candidates.threshold import threshold_stopping
from dpselect.accounting.candidates.without_threshold import without_threshold
from dpselect.errors import AdjacencyError, BudgetError
from dpselect.mechanisms import NoisyCount
from dpselect.privacy import compose, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Geometric, Tabulated
from dpselect.selection import (
    PercentileSparseVector,
    SampledSparseVector,
    SelectAcceptable,
    SelectHyperparameters,
    SelectWithDummies,
    SelectWithoutThreshold,
    ThresholdSearch,
    amplified,
    dummies as with_dummies,
    log_odds,
    one_sided,
    sampled_sparse_vector,
    select_above,
    select_best,
    threshold_grid,
    without_threshold as threshold_free,
)
from dpselect.selection.conditional import first_acceptable_run
from dpselect.selection.hyperparameters import tuning_candidate, two_set_guarantee
from tests.selection.selection_laws import (
    dummies_law,
    first_above_law,
    first_positive_law,
    sampled_search_law,
    threshold_search_law,
)

BASE = pure_dp(epsilon=0.5)
DRAWS = 1500


def levels(masses):
    """A candidate with score 1 - i/size for output i, drawn with these probabilities."""
    edges = np.cumsum(masses)

    def candidate(random):
        output = int(np.searchsorted(edges, random.uniform(1)[0]))
        return 1.0 - output / len(masses), output

    return candidate


def coin(bias):
    return lambda random: (float(random.uniform(1)[0] < bias), None)


def assert_law(select, expected, draws=DRAWS):
    """Frequencies of `select(source)` within five standard errors of `expected`, a mapping.

    False alarm below 6e-7 for each value; a probability that is off by 0.065 or more is caught at 1,500 draws.
    """
    source = keyed_source("selection algorithms")
    found = [select(source) for _ in range(draws)]
    for value, probability in expected.items():
        error = math.sqrt(max(probability * (1 - probability), 1e-6) / draws)
        assert abs(found.count(value) / draws - probability) < 5 * error + 5 / draws, value
    assert set(found) <= set(expected)


def once(monkeypatch, module, name):
    """Work out a price once: a search that is repeated for its law has one price."""
    function, known = getattr(module, name), {}

    def remembered(*arguments, **keywords):
        if not known:
            known["price"] = function(*arguments, **keywords)
        return known["price"]

    monkeypatch.setattr(module, name, remembered)


# ---- laws ------------------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.statistical
def test_law_of_the_percentile_search():
    probabilities = [0.2, 0.6, 0.5]
    queries = [([math.log(p / (1 - p))], [1.0]) for p in probabilities]
    law = first_positive_law(queries, 0.0, epsilon=2.0, sensitivity=1.0)
    stream = [log_odds(passing=p, failing=1 - p) for p in probabilities]
    assert_law(
        lambda source: (
            PercentileSparseVector(guarantee=BASE, epsilon=2.0, oracle_error=0.0, random=source).first(stream).value
        ),
        dict(zip([0, 1, 2, None], law, strict=True)),
    )


@pytest.mark.full
@pytest.mark.statistical
def test_law_of_the_sampled_search(monkeypatch):
    once(monkeypatch, sampled_sparse_vector, "sampled_sparse_vector")
    statistic = SmoothedOdds(samples=4, smoothing=6.0, sensitivity=1.6)
    law = sampled_search_law([0.3, 0.9], statistic, 0.5, epsilon=4.0)
    queries = [(coin(p), 1.0) for p in (0.3, 0.9)]
    assert_law(
        lambda source: (
            SampledSparseVector(guarantee=BASE, statistic=statistic, epsilon=4.0, max_queries=2, random=source)
            .first(queries)
            .value
        ),
        dict(zip([0, 1, None], law, strict=True)),
    )


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


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("sharpness", "weights"), [(math.inf, (1, 1, 0, 0)), (2.0, (1, 1, math.exp(-0.5), math.exp(-1)))]
)
def test_law_of_dummies(sharpness, weights):
    law = dummies_law(MASSES, weights, 6, 5.0)
    select = SelectWithDummies(threshold=0.75, runs=6, gamma=0.25, base=BASE, sharpness=sharpness)
    candidate = levels(MASSES)
    assert_law(
        lambda source: select.draw(candidate, random=source),
        {value: p for value, p in zip([0, 1, 2, 3, None], law, strict=True) if p > 0.0},
    )


@pytest.mark.statistical
def test_law_of_conditional_sampling():
    """The coin comes before each run: "none" also when the first run would have been acceptable."""
    floor, coins = 0.3, Geometric(gamma=0.3)
    masses = floor * (1 - floor) ** np.arange(200)
    law = first_above_law(MASSES, [False, True, True, False], Tabulated(probabilities=(masses / masses.sum()).tolist()))
    assert law[-1] == pytest.approx(floor / (floor + (1 - floor) * 0.7))

    def select(source):
        found = first_acceptable_run(levels(MASSES), lambda score, output: output in (1, 2), coins, source)
        return found.output if found else None

    assert_law(select, dict(zip([1, 2, None], law, strict=True)))


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


def test_two_data_sets():
    law = Geometric(gamma=0.05)
    release = SelectHyperparameters(
        candidates=100_000, repetitions=law, training=BASE, validation_epsilon=0.25, may_overlap=True
    )(lambda i, random: i, correct=lambda model: 500, random=keyed_source(5))
    validation = NoisyCount(epsilon=0.25).guarantee
    assert release.training.epsilon(0.0) == best_of(BASE, law).epsilon(0.0) < 1.5
    assert release.validation.epsilon(0.0) == best_of(validation, law).epsilon(0.0) < 0.75
    assert release.guarantee.epsilon(0.0) == best_of(compose(BASE, validation), law).epsilon(0.0)
    apart = two_set_guarantee(lambda base: best_of(base, law), training=BASE, validation=validation, may_overlap=False)
    assert apart.total.epsilon(0.0) == release.training.epsilon(0.0) < release.guarantee.epsilon(0.0)
    assert release.value.model == release.value.candidate
    with pytest.raises(AdjacencyError):
        two_set_guarantee(
            lambda base: base,
            training=BASE,
            validation=NoisyCount(epsilon=1.0, adjacency="replace_one").guarantee,
            may_overlap=True,
        )


@pytest.mark.statistical
def test_noise_of_the_validation_score():
    """1,000 rows at epsilon 0.5: an accuracy with Laplace noise of scale 0.002, mean absolute error near 0.002.

    Discrete Laplace of scale 2 counts: E|X| = 2q/(1-q^2), q = exp(-1/2); within five standard errors over 2,000 draws.
    """
    candidate = tuning_candidate(lambda i, r: i, candidates=3, correct=lambda model: 900, validation_epsilon=0.5)
    source = keyed_source("validation")
    errors = np.array([abs(candidate(source)[0] - 900.0) for _ in range(2000)])
    q = math.exp(-0.5)
    mean, square = 2 * q / (1 - q * q), 2 * q / (1 - q) ** 2
    assert mean / 1000 == pytest.approx(0.002, rel=0.05)
    assert abs(errors.mean() - mean) < 5 * math.sqrt((square - mean**2) / 2000)


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
