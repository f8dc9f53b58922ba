"""The mesh of losses: adding an independent loss keeps both masses."""

import math

import numpy as np
import pytest

from dpselect.mechanisms.sparse_vector_game.mesh import laplace_losses


def test_an_independent_loss_keeps_both_masses():
    spread = laplace_losses(0.3, 0.01)
    losses = np.arange(-spread.reach, spread.reach + 1) * 0.01
    assert spread.weights.sum() == pytest.approx(1.0, abs=1e-9)
    assert spread.weights @ np.exp(-losses) == pytest.approx(1.0, abs=1e-9)
    assert np.all(spread.weights >= 0.0)
    for epsilon in (0.0, 0.1, 0.25):
        exact = 1 - math.exp((epsilon - 0.3) / 2)
        assert exact <= spread.weights @ np.maximum(1 - np.exp(epsilon - losses), 0.0) <= exact * 1.01 + 1e-4
