"""The odometer without a budget, against exact analysts who choose mechanisms and when to stop."""

import itertools
import math
import random

import numpy as np
import pytest
from scipy.stats import norm

from dpselect.accounting.stopping import odometer
from dpselect.accounting.stopping.odometer import odometer_epsilon
from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.privacy import approximate_dp, compose, gaussian, pure_dp, renyi_dp

DELTA = 1e-3


def gaussians(square):
    """Mechanisms of this squared mu together."""
    return [(gaussian(noise_multiplier=1 / math.sqrt(square)), 1)]


def excess(square, epsilon):
    """The exact delta of Gaussian noise at this epsilon, from its closed form."""
    mu = math.sqrt(square)
    return norm.sf(epsilon / mu - mu / 2) - math.exp(epsilon) * norm.sf(epsilon / mu + mu / 2)


def ends(levels):
    """For each level, the largest squared mu that reads as it, from below."""
    found = []
    for level in levels:
        low, high = 1e-9, 100.0
        for _ in range(40):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if odometer_epsilon(gaussians(middle), DELTA) <= level else (low, middle)
        found.append(low)
    return found


def stopped_divergence(levels, squares):
    """The exact divergence of an analyst who spends to the end of a level and stops when the loss is above it."""
    x, step = np.linspace(-8.0, 24.0, 1601, retstep=True)
    density, divergence, before = None, 0.0, 0.0
    for level, square in zip(levels, squares, strict=True):
        spent = square - before
        if density is None:
            density = norm.pdf(x, spent, math.sqrt(spent))
        else:
            kernel = norm.pdf(step * np.arange(-800, 801), spent, math.sqrt(spent)) * step
            density = np.convolve(density, kernel, mode="same")
        loss = x - square / 2
        stopped = loss > level
        divergence += step * float(density[stopped] @ -np.expm1(level - loss[stopped]))
        density, before = np.where(stopped, 0.0, density), square
    return divergence


LEVELS = odometer._FIRST * odometer._RATIO ** np.arange(30, 62, 4)


@pytest.mark.theorem("docs/theory/odometer.md, Theorem 3", exact=True)
def test_an_analyst_who_stops_when_the_loss_is_high_stays_within_delta():
    squares = ends(LEVELS * (1 + 1e-9))
    assert 0.0 < stopped_divergence(LEVELS, squares) <= DELTA


def test_without_shares_of_delta_that_analyst_wins(monkeypatch):
    """A mutation: each level and order takes all of delta."""
    assert odometer._SCALES.size == 2
    monkeypatch.setattr(odometer, "_SHARES", 1)
    squares = ends(LEVELS * (1 + 1e-9))
    assert stopped_divergence(LEVELS, squares) > DELTA


@pytest.mark.theorem("docs/theory/odometer.md, Theorem 3", exact=True)
@pytest.mark.parametrize("square", [0.01, 0.3, 2.0, 20.0])
def test_a_level_holds_the_exact_delta_of_gaussian_noise(square):
    """With the share of one level, as no other is reached; and the level below does not."""
    level = odometer_epsilon(gaussians(square), DELTA)
    assert excess(square, level) <= DELTA / (odometer._LEVELS * odometer._SCALES.size)


RATES = (0.1, 0.4, 0.9, 1.7)


def tree_divergence(strategy, view=(), ratio=1.0, one=1.0, spent=(), *, scale=1.0, delta=0.05):
    """The exact E[1 - e^R dP'/dP]_+ of an analyst on randomised responses, over all views.

    `one` is the probability of the view under P, and `ratio` its P' / P.
    """
    chosen = strategy(view)
    if chosen is None:
        counts = [(pure_dp(epsilon=epsilon), spent.count(epsilon)) for epsilon in sorted(set(spent))]
        reading = scale * odometer_epsilon(counts, delta)
        return one * max(0.0, 1.0 - math.exp(reading) * ratio)
    likely = 1.0 / (1.0 + math.exp(-chosen))
    return sum(
        tree_divergence(
            strategy,
            (*view, bit),
            ratio * (1.0 - share) / share,
            one * share,
            (*spent, chosen),
            scale=scale,
            delta=delta,
        )
        for bit, share in ((1, likely), (0, 1.0 - likely))
    )


def analyst(seed):
    """A random analyst of six responses, who chooses each epsilon and the stop by all answers."""
    draw = random.Random(seed)
    plan = {
        view: None if view and draw.random() < 0.15 else draw.choice(RATES)
        for length in range(6)
        for view in itertools.product((0, 1), repeat=length)
    }
    return plan.get


@pytest.mark.parametrize("seed", range(12))
def test_no_adaptive_analyst_on_finite_outputs_exceeds_delta(seed, monkeypatch):
    """Exact over all views. The sum of pure epsilons is left out, as it would be the reading."""
    monkeypatch.setattr(odometer, "_pure_total", lambda used: math.inf)
    assert tree_divergence(analyst(seed)) <= 0.05


@pytest.mark.theorem("docs/theory/odometer.md, Theorem 3", exact=True, sharp=True)
@pytest.mark.parametrize("seed", range(4))
def test_the_sum_of_pure_epsilons_cannot_be_lowered(seed):
    """With a small delta it is the reading. 1 % less is exceeded, by all answers in favour of one side."""
    assert tree_divergence(analyst(seed), delta=1e-9) == 0.0
    assert tree_divergence(analyst(seed), delta=1e-9, scale=0.99) > 1e-9


def test_a_third_of_the_reading_is_exceeded(monkeypatch):
    """A mutation: the analysts above are strong enough to find a reading that is too small."""
    monkeypatch.setattr(odometer, "_pure_total", lambda used: math.inf)
    assert max(tree_divergence(analyst(seed), scale=1 / 3) for seed in range(4)) > 0.05


def test_it_is_above_the_composition_and_rises_with_the_runs():
    run = gaussian(noise_multiplier=4)
    readings = [odometer_epsilon([(run, count)], 1e-5) for count in (1, 2, 10, 20)]
    assert readings == sorted(readings)
    assert compose(*[run] * 20).epsilon(1e-5) < readings[-1] < 1.5 * compose(*[run] * 20).epsilon(1e-5)
    assert readings[2] == odometer_epsilon([(run, 4), (run, 6)], 1e-5)


def test_pure_epsilons_add_up_when_that_is_smaller():
    assert odometer_epsilon([(pure_dp(epsilon=0.1), 2), (pure_dp(epsilon=0.2), 1)], 1e-9) == pytest.approx(0.4)
    assert odometer_epsilon([(pure_dp(epsilon=0.1), 2)], 1e-9) >= 0.2


def test_above_the_last_level_there_is_no_statement():
    assert odometer_epsilon([(gaussian(noise_multiplier=0.01), 1)], 1e-5) == math.inf


@pytest.mark.parametrize(
    ("mechanisms", "delta", "error", "message"),
    [
        ([], 1e-5, ArgumentError, "at least one"),
        ([(approximate_dp(epsilon=1, delta=1e-6), 1)], 1e-5, ArgumentError, "failure mass"),
        ([(pure_dp(epsilon=1), 0)], 1e-5, ArgumentError, "count"),
        ([(pure_dp(epsilon=1), 1)], 0.0, ArgumentError, "delta"),
        ([(pure_dp(epsilon=1), 1)], 1.0, ArgumentError, "delta"),
        ([("run", 1)], 1e-5, ArgumentError, "mechanisms"),
        ([(pure_dp(epsilon=1), 1), (pure_dp(epsilon=1, adjacency="replace_one"), 1)], 1e-5, AdjacencyError, "adjac"),
    ],
)
def test_what_is_refused(mechanisms, delta, error, message):
    with pytest.raises(error, match=message):
        odometer_epsilon(mechanisms, delta)


def test_an_order_without_a_bound_counts_for_nothing():
    """A curve that is known at one order only has no bound above it."""
    curve = renyi_dp(orders=[1.5], epsilons=[0.1])
    assert odometer_epsilon([(curve, 1)], 1e-5) > 10
