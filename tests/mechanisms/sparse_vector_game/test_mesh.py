"""The mesh of losses: adding an independent loss keeps both masses."""

import math

import numpy as np
import pytest

from dpselect.mechanisms.sparse_vector_game.mesh import Mesh, laplace_losses, place, pure_losses


def test_an_independent_loss_keeps_both_masses():
    spread = laplace_losses(0.3, 0.01)
    losses = np.arange(-spread.reach, spread.reach + 1) * 0.01
    assert spread.weights.sum() == pytest.approx(1.0, abs=1e-9)
    assert spread.weights @ np.exp(-losses) == pytest.approx(1.0, abs=1e-9)
    assert np.all(spread.weights >= 0.0)
    for epsilon in (0.0, 0.1, 0.25):
        exact = 1 - math.exp((epsilon - 0.3) / 2)
        assert exact <= spread.weights @ np.maximum(1 - np.exp(epsilon - losses), 0.0) <= exact * 1.01 + 1e-4


def test_a_mesh_covers_its_ends_and_pads_by_a_chord_to_one():
    mesh = Mesh.between(-0.25, 0.31, 0.1)
    assert mesh.losses[0] <= -0.25 < mesh.losses[1] + 0.1
    assert mesh.losses[-1] >= 0.31
    values = np.linspace(0.2, 0.6, mesh.size)
    padded = mesh.padded(values, 3)
    assert padded[:3].tolist() == [0.2] * 3
    assert padded[3:-3].tolist() == values.tolist()
    assert padded[-3:] == pytest.approx(1 - 0.4 * np.exp(-0.1 * np.arange(1, 4)), rel=1e-15)


@pytest.mark.parametrize("loss", [-0.37, 0.0, 0.123, 5.0])
def test_a_loss_is_between_two_points_with_its_mean_ratio(loss):
    below, weight = place(loss, 0.1)
    mean = (1 - weight) * math.exp(-below * 0.1) + weight * math.exp(-(below + 1) * 0.1)
    assert mean == pytest.approx(math.exp(-loss), rel=1e-12)
    assert mean <= math.exp(-loss) * (1 + 1e-15)  # rounded to the larger loss


def test_a_pure_loss_is_that_of_randomised_response_and_losses_add_up():
    one = pure_losses(0.25, 0.05)
    losses = np.arange(-one.reach, one.reach + 1) * 0.05
    truth = math.tanh(0.125)
    assert truth <= one.weights @ np.maximum(1 - np.exp(-losses), 0.0) <= truth * 1.1
    two = one.convolve(one)
    assert two.reach == 2 * one.reach
    assert two.weights == pytest.approx(np.convolve(one.weights, one.weights), rel=1e-12)
    assert np.all(two.weights >= np.convolve(one.weights, one.weights))


def test_no_loss_changes_nothing_and_an_expectation_is_at_most_one():
    mesh = Mesh.between(-1.0, 1.0, 0.1)
    values = np.linspace(0.1, 1.0, mesh.size)
    assert laplace_losses(0.0, 0.1).expected(mesh, values) is values
    expected = laplace_losses(0.3, 0.1).expected(mesh, values)
    assert np.all(expected <= 1.0)
    spread = laplace_losses(0.3, 0.1)
    middle = mesh.size // 2
    assert expected[middle] == pytest.approx(values[middle - spread.reach : middle + spread.reach + 1] @ spread.weights)
