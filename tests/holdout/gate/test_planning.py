"""Plans of gates: the gains that can be accepted with so many tasks, and the power."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.holdout import plan_gate
from dpselect.holdout.gate.rules import sign_test

TABLE = {
    50: [(0.161, None), (0.195, None), (None, None), (None, None)],
    100: [(0.111, 0.156), (0.142, 0.179), (0.184, None), (None, None)],
    200: [(0.078, 0.114), (0.100, 0.134), (0.134, 0.163), (0.159, 0.183)],
    500: [(0.048, 0.073), (0.063, 0.087), (0.086, 0.109), (0.103, 0.125)],
    1000: [(0.034, 0.052), (0.045, 0.062), (0.061, 0.078), (0.074, 0.090)],
    5000: [(0.015, 0.023), (0.020, 0.028), (0.027, 0.035), (0.033, 0.041)],
}


@pytest.mark.parametrize("tasks", TABLE)
def test_gains_with_power(tasks):
    for level, (half, ninety) in zip((1e-2, 1e-3, 1e-5, 1e-7), TABLE[tasks], strict=True):
        plan = plan_gate(tasks=tasks, consultations=1, failure_probability=level)
        rounded = [None if gain is None else round(gain, 3) for gain in (plan.half_power, plan.ninety_power)]
        assert rounded == [half, ninety]


@pytest.mark.parametrize(("tasks", "gain"), [(50, 0.20), (100, 0.14), (500, 0.060), (1000, 0.042)])
def test_the_smallest_gain_of_twenty_asks(tasks, gain):
    plan = plan_gate(tasks=tasks, consultations=20)
    assert plan.smallest_gain == [gain] * 20
    assert plan.after_accepts[0] == gain
    known = [one for one in plan.after_accepts if one is not None]
    assert known == sorted(known)


@pytest.mark.statistical
def test_power_is_that_of_the_test():
    """2,000 draws: the error is below 0.04 except with probability 0.0004."""
    random, plan = np.random.default_rng(0), plan_gate(tasks=100, consultations=5)
    level = Fraction(plan.level)
    drawn = random.multinomial(100, [0.17, 0.03, 0.8], size=2000)
    accepted = np.mean([sign_test(int(w), int(l), level) for w, l, _ in drawn])
    assert plan.power(0.14) == pytest.approx(accepted, abs=0.04)


def test_few_tasks_believe_nothing():
    plan = plan_gate(tasks=10, consultations=20)
    assert plan.smallest_gain == plan.after_accepts == [None] * 20
    assert plan.half_power is plan.ninety_power is None


@pytest.mark.parametrize(
    ("name", "value"), [("tasks", 0), ("consultations", 0), ("failure_probability", 1.0), ("discordant", 0.0)]
)
def test_plans_refuse(name, value):
    with pytest.raises(ArgumentError, match=name):
        plan_gate(**{"tasks": 100, "consultations": 10, name: value})
