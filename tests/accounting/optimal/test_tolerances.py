"""Tolerances move effort and never a price below what is attained."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpselect.accounting import best_of
from dpselect.accounting.optimal import direction
from dpselect.accounting.optimal.tolerances import EFFORT, SECANTS, START
from dpselect.privacy import gaussian
from dpselect.repetitions import Harmonic

CHANGES = [
    {"EFFORT": replace(EFFORT, wide=1e9)},
    {"EFFORT": replace(EFFORT, wide=0.0, still_wide=1e9, very_wide=1e9)},
    {"EFFORT": replace(EFFORT, wide=0.0, still_wide=0.0, first_division=0.3, parts=2, most_growth=1)},
    {"SECANTS": replace(SECANTS, steps=1)},
    {"SECANTS": replace(SECANTS, step=0.5, bracket=0.5)},
    {"START": replace(START, rough=0.5, merged=64)},
    {"NEGLIGIBLE": 1e-3},
]


@pytest.mark.parametrize("changed", CHANGES, ids=[repr(change)[:60] for change in CHANGES])
def test_a_price_by_other_tolerances_is_not_below_what_is_attained(changed, monkeypatch):
    law, delta = Harmonic(limit=6), 1e-5
    attained = best_of(gaussian(noise_multiplier=2.1), law, bound="optimal").epsilon_bracket(delta)[0]
    for name, value in changed.items():
        monkeypatch.setattr(direction, name, value)
    other = best_of(gaussian(noise_multiplier=2.1 + 1e-13), law, bound="optimal")  # not the one that is remembered
    assert attained * (1.0 - 1e-9) <= other.epsilon(delta=delta) < 2.0 * attained
