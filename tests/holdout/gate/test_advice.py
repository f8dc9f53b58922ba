"""Advice on asking a gate, from outcomes on development tasks."""

from __future__ import annotations

import pytest

from benchmarks import gate as benchmark
from dpselect.errors import ArgumentError
from dpselect.holdout import advise_gate


def test_advice_grows_with_what_the_development_tasks_say():
    found = [advise_gate(tasks=500, purse=0.05, wins=50 + k, losses=50 - k, development_tasks=500) for k in (0, 10, 25)]
    assert [one.ask for one in found] == [False, False, True]
    for name in ("chance", "stake", "expected_gain"):
        values = [getattr(one, name) for one in found]
        assert values == sorted(values)
    assert found[-1].stake <= 0.05


@pytest.mark.parametrize(("wins", "losses"), [(15, 0), (24, 0), (80, 0), (45, 10)])
def test_what_few_development_tasks_say_clearly_is_believed(wins, losses):
    """Gains far above the typical one: the more is won the surer the advice, up to all tasks."""
    advice = advise_gate(tasks=80, purse=0.05, wins=wins, losses=losses, development_tasks=80)
    assert advice.ask
    assert advice.chance > 0.9
    assert advice.expected_gain == pytest.approx((wins - losses) / 80, abs=0.05)


@pytest.mark.parametrize(
    ("name", "value"), [("purse", 0), ("wins", 501), ("losses", 500), ("development_tasks", 0), ("typical_gain", 0)]
)
def test_advice_refuses(name, value):
    given = {"tasks": 500, "purse": 0.05, "wins": 60, "losses": 40, "development_tasks": 500}
    with pytest.raises(ArgumentError, match=name):
        advise_gate(**{**given, name: value})


@pytest.mark.slow
def test_the_advised_gate_keeps_nearly_what_fresh_tasks_keep():
    found = benchmark.loop(20)
    assert found[0.1, "the gate, advised"] > 0.85 * found[0.1, "fresh tasks each ask, advised"]
    assert found[0.05, "the gate, advised"] > 2.0 * found[0.05, "the gate, screened"]
