"""Random allocation: published settings, one step an epoch, and what is refused."""

from __future__ import annotations

import pytest

from dpselect.accounting import best_of
from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.privacy import compose, dp_sgd, gaussian, random_allocation
from dpselect.repetitions import Harmonic


def test_one_epoch_of_a_hundred_steps():
    # PLD_accounting 2.0 gives the range 0.8437 to 0.8745; Poisson samples 0.9542
    found = random_allocation(noise_multiplier=1, steps_per_epoch=100)
    assert 0.8575 <= found.epsilon(delta=1e-6) <= 0.8590
    assert found.statement(delta=1e-6).theorem.startswith("privacy-loss distribution of random allocation")
    assert found.terms["mechanism"] == "random-allocation"


def test_ten_epochs():
    # PLD_accounting 2.0 gives the range 0.6815 to 0.7116
    found = random_allocation(noise_multiplier=2, steps_per_epoch=100, epochs=10)
    assert 0.6955 <= found.epsilon(delta=1e-6) <= 0.6970


def test_one_step_an_epoch_is_gaussian_noise():
    whole = random_allocation(noise_multiplier=4, steps_per_epoch=1, epochs=16)
    assert whole.epsilon(delta=1e-6) == pytest.approx(gaussian(noise_multiplier=1).epsilon(delta=1e-6))


@pytest.mark.parametrize("noise", [1e-150, 0.04, 0.05, 1.0, 1e6])
def test_no_price_exceeds_that_of_taking_part_in_each_step(noise):
    found = random_allocation(noise_multiplier=noise, steps_per_epoch=4)
    most = gaussian(noise_multiplier=noise)
    assert found.epsilon(delta=1e-6) <= most.epsilon(delta=1e-6) * (1 + 1e-9)
    assert random_allocation(noise_multiplier=1e150, steps_per_epoch=4).epsilon(delta=1e-6) < 1e-5


def test_it_composes_and_is_searched_and_calibrated():
    base = random_allocation(noise_multiplier=4, steps_per_epoch=20, epochs=2)
    twice = random_allocation(noise_multiplier=4, steps_per_epoch=20, epochs=4)
    assert compose(base, base).epsilon(delta=1e-6) == pytest.approx(twice.epsilon(delta=1e-6), rel=1e-3)
    assert base.epsilon(delta=1e-6) < best_of(base, Harmonic(limit=10)).epsilon(delta=1e-6)
    with_sampling = compose(base, dp_sgd(noise_multiplier=4, sampling_rate=0.05, steps=20))
    assert base.epsilon(delta=1e-6) < with_sampling.epsilon(delta=1e-6) < 2.0 * base.epsilon(delta=1e-6)


@pytest.mark.full
def test_under_replacement():
    """At most what taking part in each step costs, and more than adding a row does."""
    found = random_allocation(noise_multiplier=1, steps_per_epoch=100, adjacency="replace_one")
    assert 1.0045 <= found.epsilon(delta=1e-6) <= 1.0075
    assert found.terms["mechanism"] == "random-allocation"
    for noise in (0.1, 0.3, 0.6, 30.0, 1e6):
        few = random_allocation(noise_multiplier=noise, steps_per_epoch=3, epochs=2, adjacency="replace_one")
        most = gaussian(noise_multiplier=noise / 2**1.5, adjacency="replace_one").epsilon(delta=1e-6)
        least = random_allocation(noise_multiplier=noise, steps_per_epoch=3, epochs=2).epsilon(delta=1e-6)
        assert few.epsilon(delta=1e-6) <= most * (1 + 1e-3)
        assert noise < 0.5 or least < few.epsilon(delta=1e-6) < 2.5 * least + 1e-3


@pytest.mark.parametrize(("noise", "steps"), [(4.0, 1), (0.2, 5)])
def test_under_replacement_a_row_that_is_in_each_step_moves_it_twice(noise, steps):
    found = random_allocation(noise_multiplier=noise, steps_per_epoch=steps, epochs=4, adjacency="replace_one")
    # two rows of full length in opposite directions, in an epoch of one step
    assert found.epsilon(delta=1e-6) >= gaussian(noise_multiplier=noise / 4).epsilon(delta=1e-6) * (1 - 1e-9)


def test_bad_numbers_are_refused():
    with pytest.raises(AdjacencyError, match="adjacency"):
        random_allocation(noise_multiplier=1, steps_per_epoch=10, adjacency="neighbours")
    for name, value in (("noise_multiplier", 0), ("steps_per_epoch", 0), ("steps_per_epoch", 10**6), ("epochs", 0)):
        with pytest.raises(ArgumentError, match=name):
            random_allocation(**{"noise_multiplier": 1, "steps_per_epoch": 10, name: value})
