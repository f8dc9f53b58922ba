"""DP-SGD on batches of fixed size: finite outputs of all samples, the event of dp-accounting, and what is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from dp_accounting import dp_event
from scipy.special import ndtr

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.privacy import fixed_batches, from_dp_event, gaussian
from dpselect.privacy.mechanisms.fixed_batches import FixedSampleRenyi

EDGES = np.linspace(-4.0, 4.0, 31)


def outputs(rows, size, noise):
    """Rounded noisy sums of all samples of so many rows."""
    samples = list(itertools.combinations(rows, size))
    ends = np.concatenate(([-np.inf], EDGES, [np.inf]))
    return np.mean([np.diff(ndtr((ends - sum(sample)) / noise)) for sample in samples], axis=0)


@pytest.mark.theorem("Balle, Barthe, Gaboardi 2018, Theorem 9", exact=True)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("steps", [1, 2])
def test_every_sample_of_few_rows(seed, steps):
    draws = np.random.default_rng(seed)
    noise, count = draws.uniform(0.7, 2.0), 5
    rows = draws.uniform(-1.0, 1.0, size=count)
    if seed == 0:  # the others are opposite to the row
        rows = np.array([1.0, -1.0, -1.0, -1.0, -1.0])
    size = 1 + seed % 3
    one, other = (outputs(np.append(rows[1:], end), size, noise) for end in (rows[0], -rows[0]))
    first, second = (np.multiply.outer(each, each).ravel() if steps == 2 else each for each in (one, other))
    guarantee = fixed_batches(noise_multiplier=noise, dataset_size=count, batch_size=size, steps=steps)
    for epsilon in (0.0, 0.2, 1.0, 2.0):
        for p, q in ((first, second), (second, first)):
            exact = float(np.sum(np.maximum(p - math.exp(epsilon) * q, 0.0)))
            assert exact <= guarantee.delta(epsilon)
            if seed == 0 and steps == 1 and epsilon == 0.0:
                # rows -1 become 1 in one of five samples: attained up to the rounding to cells
                assert guarantee.delta(epsilon) <= exact * 1.03


@pytest.mark.full
def test_it_is_the_event_of_dp_accounting():
    inner = dp_event.GaussianDpEvent(2.0)
    event = dp_event.SelfComposedDpEvent(dp_event.SampledWithoutReplacementDpEvent(1000, 10, inner), 100)
    theirs = from_dp_event(event, adjacency="replace_one").epsilon(delta=1e-5)
    ours = fixed_batches(noise_multiplier=2, dataset_size=1000, batch_size=10, steps=100).epsilon(delta=1e-5)
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_whole_batches_are_gaussian_noise():
    found = fixed_batches(noise_multiplier=8, dataset_size=3, batch_size=3, steps=16)
    assert found.epsilon(delta=1e-6) == pytest.approx(
        gaussian(noise_multiplier=1, adjacency="replace_one").epsilon(delta=1e-6)
    )


@pytest.mark.parametrize("order", [1.5, 3.0, 40.0])
def test_the_renyi_curve_bounds_one_row_among_zeros(order):
    noise, rate = 2.0, 0.1
    x = np.linspace(-60.0, 60.0, 200_001)
    zero, up, down = (np.exp(-0.5 * ((x - c) / noise) ** 2) for c in (0.0, 1.0, -1.0))
    first, second = (1 - rate) * zero + rate * up, (1 - rate) * zero + rate * down
    total = np.sum(second * np.exp(order * (np.log(first + 1e-300) - np.log(second + 1e-300)))) / np.sum(second)
    found = float(FixedSampleRenyi(2.0 / noise, rate, 1)(np.array([order]))[0])
    assert math.log(float(total)) / (order - 1.0) <= found


def test_other_neighbours_and_bad_numbers_are_refused():
    with pytest.raises(AdjacencyError, match="replace_one"):
        fixed_batches(noise_multiplier=1, dataset_size=10, batch_size=2, steps=1, adjacency="add_or_remove_one")
    for name, value in (("noise_multiplier", 0), ("dataset_size", 0), ("batch_size", 11), ("steps", 0)):
        with pytest.raises(ArgumentError, match=name):
            fixed_batches(**{"noise_multiplier": 1, "dataset_size": 10, "batch_size": 2, "steps": 1, name: value})
