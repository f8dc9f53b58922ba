"""Intervals for rows of persons hold by the exact law of persons, rows and noise. Those for independent rows fail."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import log_ndtr

from dpselect.randomness import keyed_source
from dpselect.study.metrics import METRICS, ScoreNoise, noisy_means
from dpselect.study.metrics.mean_shares import mean_share_interval
from dpselect.study.metrics.metric import metrics_for
from dpselect.study.metrics.noisy_means import SumNoise, hat_sums, weights_of_bet
from dpselect.study.metrics.noisy_shares import CellNoise
from dpselect.study.metrics.person_sample import SINGLE_ROWS, PersonSample
from dpselect.study.target import Target
from tests.study.metrics.metrics_cases import ADD, NUMBER, TWO
from tests.study.metrics.test_noisy_shares import cell_noise
from tests.study.metrics.test_score_noise import rounded_gaussian

K, PERSONS, FAILURE = 9, 12, 0.1
# the rows of each kind of person, as numbers from 0 to 1, and the part of the persons that are so
ALIKE = [((1.0,) * K, 0.7), ((0.0,) * K, 0.3)]
MANY_GOOD = [((1.0,) * K, 0.4), ((0.0,), 0.6)]
MANY_BAD = [((1.0,), 0.5), ((0.0,) * K, 0.3), ((1.0, 0.0), 0.2)]
SMALL = [((0.02,) * K, 0.9), ((1.0,) * K, 0.1)]
POPULATIONS = {"alike": ALIKE, "many good": MANY_GOOD, "many bad": MANY_BAD, "small": SMALL}


def mean_of(persons):
    """The mean over rows of new persons."""
    return sum(part * sum(rows) for rows, part in persons) / sum(part * len(rows) for rows, part in persons)


def about(persons):
    """How many rows there are on average."""
    return PERSONS * sum(part * len(rows) for rows, part in persons)


def outcomes(persons):
    """How many persons of each kind there may be, and how likely it is."""
    for first in itertools.product(range(PERSONS + 1), repeat=len(persons) - 1):
        counts = (*first, PERSONS - sum(first))
        if counts[-1] >= 0:
            logs = (n * math.log(part) - math.lgamma(n + 1) for n, (_, part) in zip(counts, persons, strict=True))
            yield np.array(counts), math.exp(math.lgamma(PERSONS + 1) + sum(logs))


def chance_of_share(persons, sample, multiplier, *, upwards):
    """The exact probability that the share of all rows is shown to be beyond itself."""
    p = mean_of(persons) if upwards else 1.0 - mean_of(persons)
    noise = CellNoise(sample=sample)
    values, masses = np.zeros(1), np.ones(1)
    if multiplier:
        noise = CellNoise(cell_noise(ScoreNoise(None, ADD, multiplier)).cumulants, sample=sample)
        values, masses = rounded_gaussian(multiplier)
        values, masses = values[masses > 1e-9], masses[masses > 1e-9]
    joint, chance = np.outer(masses, masses), 0.0
    for counts, likely in outcomes(persons):
        rows = sum(n * len(each) for n, (each, _) in zip(counts, persons, strict=True))
        good = sum(n * sum(each) for n, (each, _) in zip(counts, persons, strict=True))
        good = good if upwards else rows - good
        excess = (1.0 - p) * (good + values)[:, None] - p * (rows - good + values)[None, :]
        ends = np.array([p])
        least = threshold(noise, ends, rows)
        chance += likely * float(np.sum(joint[excess >= least - 1e-12]))
    return chance


def threshold(noise, p, rows):
    """The least excess that is shown, by halving."""
    low, high = 0.0, 1e4
    for _ in range(60):
        middle = (low + high) / 2.0
        found = bool(noise.shown(np.array([middle]), p, [(1, 1.0 - p), (1, p)], rows, FAILURE)[0])
        low, high = (low, middle) if found else (middle, high)
    return high


SHARES = [name for name in POPULATIONS if name != "small"]


@pytest.mark.theorem("docs/theory/persons.md, Theorem 4", exact=True, loose="Markov's inequality")
@pytest.mark.full
@pytest.mark.cases(12)
@pytest.mark.parametrize("name", SHARES)
@pytest.mark.parametrize("upwards", [True, False])
@pytest.mark.parametrize("multiplier", [0.0, 3.0])
def test_a_share_is_shown_wrongly_as_seldom_as_is_said(name, upwards, multiplier):
    persons = POPULATIONS[name]
    sample = PersonSample(K, about(persons))
    assert chance_of_share(persons, sample, multiplier, upwards=upwards) <= FAILURE


def test_the_exact_law_comes_near_and_independent_rows_fail():
    found = [chance_of_share(ALIKE, sample, 0.0, upwards=True) for sample in (PersonSample(K, 108.0), SINGLE_ROWS)]
    assert found[0] > FAILURE / 10
    assert found[1] > 2 * FAILURE


def test_only_the_public_number_of_rows_chooses():
    """The least excess is linear in the number of rows. The smallest over all exponents would bend."""
    for sample, straight in ((PersonSample(K, 100.0), True), (SINGLE_ROWS, False)):
        least = [threshold(CellNoise(sample=sample), np.array([0.4]), rows) for rows in (50.0, 150.0, 250.0)]
        bent = least[1] - (least[0] + least[2]) / 2.0
        assert (abs(bent) < 1e-6) is straight


def chance_of_mean(persons, sample, deviation, *, upwards):
    """The exact probability that some bet wrongly shows the mean beyond the next value of the grid, added up."""
    place = int(np.searchsorted(noisy_means._GRID, mean_of(persons))) - (0 if upwards else 1)
    sums = np.array([hat_sums(np.array(rows), 2**16) / 2**16 for rows, _ in persons])
    found, noise = 0.0, SumNoise(deviation)
    for bet in noisy_means._LOWER_BETS if upwards else noisy_means._UPPER_BETS:
        weights, least = weights_of_bet(bet, about(persons), noise, FAILURE, sample.per_person, upwards=upwards)
        given, tau = sums @ weights[place], deviation * float(np.linalg.norm(weights[place]))
        for counts, likely in outcomes(persons):
            missing = least[place] - float(counts @ given)
            found += likely * (float(np.exp(log_ndtr(-missing / tau))) if tau > 0.0 else float(missing <= 0.0))
    return found


@pytest.mark.theorem("docs/theory/persons.md, Theorem 4", exact=True, loose="Markov's inequality")
@pytest.mark.cases(24)
@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("upwards", [True, False])
@pytest.mark.parametrize("deviation", [0.0, 3.0, 12.0])
def test_a_mean_is_shown_wrongly_as_seldom_as_is_said(name, upwards, deviation):
    persons = POPULATIONS[name]
    assert chance_of_mean(persons, PersonSample(K), deviation, upwards=upwards) <= FAILURE


def test_means_of_rows_that_are_taken_for_independent_fail():
    assert chance_of_mean(ALIKE, SINGLE_ROWS, 0.0, upwards=True) > 2 * FAILURE


def test_shares_of_classes_are_averaged_as_their_rows_depend_on_each_other():
    good, total = np.full(3, 240.0), np.full(3, 300.0)
    alone = mean_share_interval(good, total, CellNoise(), 0.05)
    persons = mean_share_interval(good, total, CellNoise(sample=PersonSample(2, 900.0)), 0.05)
    assert persons[0] < alone[0] < 0.8 < alone[1] < persons[1]
    assert persons[1] - persons[0] < 3.0 * (alone[1] - alone[0])


class Given:
    """Answers with the rows."""

    def predict(self, X):
        return X


@pytest.mark.parametrize("target", [TWO, NUMBER])
def test_metrics_with_intervals_for_persons(target):
    found = {name: metric.of_persons(PersonSample(2, 500.0)) for name, metric in metrics_for(target).items()}
    without = {"auc"} if target is TWO else {"r2"}
    assert {name for name, metric in found.items() if metric is None} == without
    for name, metric in found.items():
        if metric is None:
            continue
        for noise in (ScoreNoise(None, ADD, 1.0), ScoreNoise(1.0, ADD)):
            cells = metric.typical(10_000.0, noise)
            one, many = (
                each.estimate(cells, noise=noise, failure=0.05) for each in (metrics_for(target)[name], metric)
            )
            assert many.value == one.value, name
            assert many.low < one.low < one.high < many.high, name


@pytest.mark.full
@pytest.mark.cases(4)
@pytest.mark.parametrize("name", ["accuracy", "balanced-accuracy", "median-error", "absolute-error"])
def test_figures_hold_for_persons_and_would_not_for_rows(name):
    """Of 60 tables at .2 at most 12 fail in expectation. Every person has nine equal rows."""
    random, noise, missed = np.random.default_rng(7), ScoreNoise(None, ADD, 2.0), {True: 0, False: 0}
    regression = name.endswith("error")
    metric = METRICS[name](Target(bounds=(0.0, 1.0)) if regression else TWO)
    truth = {"accuracy": 0.8, "balanced-accuracy": 0.8, "median-error": 0.5, "absolute-error": 0.5}[name]
    for table in range(60):
        if regression:
            y = np.zeros(60 * K)
            answers = np.repeat(random.random(60), K)
        else:
            y = np.repeat(random.integers(0, 2, 60), K)
            answers = np.where(np.repeat(random.random(60), K) < 0.8, y, 1 - y)
        cells = metric.noisy(metric.cells(Given(), answers, y), noise, keyed_source(table))
        for counted, each in ((True, metric.of_persons(PersonSample(K, 540.0))), (False, metric)):
            found = each.estimate(cells, noise=noise, failure=0.2)
            missed[counted] += not found.low <= truth <= found.high
    assert missed[True] <= 12
    assert missed[False] > 12
