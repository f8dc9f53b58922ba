"""DP-SGD with Poisson sampling: a published setting, and every row in every step."""

from __future__ import annotations

import pytest

from dpselect.privacy import (
    dp_sgd,
    gaussian,
)
from dpselect.privacy.renyi import epsilon_from_renyi


def test_dp_sgd_reference_setting():
    # dp-accounting 0.6.0 gives 1.829 by loss distributions and 2.1014 by Renyi accounting on its default orders
    g = dp_sgd(noise_multiplier=1.0, sampling_rate=0.01, steps=1000)
    assert g.epsilon(delta=1e-5) == pytest.approx(1.829, abs=2e-3)
    assert g.renyi_curve is not None
    renyi = epsilon_from_renyi(g.renyi_curve, 1e-5)
    assert 2.09 < renyi < 2.1014
    assert g.statement(delta=1e-5).theorem.startswith("privacy-loss distribution")


def test_dp_sgd_with_every_row_in_every_step_is_the_gaussian_mechanism():
    for steps, noise in ((1, 1.0), (16, 4.0), (100, 10.0)):
        assert dp_sgd(noise_multiplier=noise, sampling_rate=1, steps=steps).epsilon(delta=1e-6) == pytest.approx(
            gaussian(noise_multiplier=1).epsilon(delta=1e-6), rel=1e-9
        )
    assert dp_sgd(noise_multiplier=1, sampling_rate=1, steps=2).terms["mechanism"] == "dp-sgd"
