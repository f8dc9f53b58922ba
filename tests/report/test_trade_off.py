"""The plot of what each family of distributions costs: one line a family, from the accountant's own points."""

import pytest

from dpselect.accounting.planning.plan import Goal
from dpselect.errors import ArgumentError
from dpselect.privacy import pure_dp
from dpselect.report import trade_off


class Family:
    def __init__(self, name, whole):
        self.name, self.whole = name, whole


def test_points_are_those_of_each_family_s_sizes(tmp_path, monkeypatch):
    asked, saved = [], []

    def curve(base, family, *, delta, sizes, goal):
        asked.append((family.name, delta, sizes))
        return [(1.0, 0.5), (2.0, 0.75)] if family.name != "none" else []

    def save(axes, path, *, title):
        saved.append(([(line.get_label(), line.get_xydata().tolist()) for line in axes.lines], axes.get_ylabel()))

    monkeypatch.setattr(trade_off, "trade_off_curve", curve)
    monkeypatch.setattr(trade_off, "save_plot", save)
    families = [Family("counts", True), Family("means", False), Family("none", True)]
    trade_off.write_trade_off(tmp_path / "a.svg", pure_dp(epsilon=1.0), families, Goal(), delta=1e-6)
    assert asked == [
        ("counts", 1e-6, trade_off._LIMITS),
        ("means", 1e-6, trade_off._MEANS),
        ("none", 1e-6, trade_off._LIMITS),
    ]
    ((lines, label),) = saved
    assert lines == [("counts", [[1.0, 0.5], [2.0, 0.75]]), ("means", [[1.0, 0.5], [2.0, 0.75]])]
    assert label == "expected quantile of the winner"


def test_another_suffix_is_refused_before_anything_is_computed(tmp_path, monkeypatch):
    monkeypatch.setattr(trade_off, "trade_off_curve", lambda *_, **__: pytest.fail("was computed"))
    with pytest.raises(ArgumentError, match="plot"):
        trade_off.write_trade_off(tmp_path / "a.txt", pure_dp(epsilon=1.0), [Family("x", True)], Goal(), delta=0.0)
