"""Tests and the examples in docstrings: where they keep their state, their tiers, and what time they may take.

`pytest` runs the default tier: every theorem, mechanism and command once. `pytest -m full` runs the rest,
further seeds, sizes and parameters; `pytest -m slow` what takes many minutes. `pytest -m peers` compares with other
libraries and counts the comparisons.
"""

from __future__ import annotations

import csv
import os
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from _pytest.runner import runtestprotocol

_LONGER = {"full", "slow", "peers"}
_OVER = pytest.StashKey[bool]()

_LONGER_EXAMPLES = {
    "dpselect.accounting.candidates.sampled_search.sampled_sparse_vector",
    "dpselect.accounting.candidates.sampled_search.smoothed_count",
    "dpselect.accounting.candidates.sampled_search.smoothed_odds",
    "dpselect.accounting.candidates.without_threshold.without_threshold",
    "dpselect.accounting.planning.plan_subset.plan_subset",
    "dpselect.accounting.stopping.optimal_stopping.StoppingGame",
    "dpselect.adaptive.analysis.AdaptiveAnalysis",
    "dpselect.adaptive.planner.plan_analysis",
    "dpselect.adaptive.runs.runs_guarantee",
    "dpselect.adaptive.runs.runs_trade_off",
    "dpselect.holdout.claim_checks.plan_checked",
    "dpselect.holdout.planning.rows_needed",
    "dpselect.holdout.saved_analysis.SavedAnalysis",
    "dpselect.mechanisms.sparse_vector.SparseVector",
    "dpselect.mechanisms.sparse_vector_game.gaussian.gaussian_game_guarantee",
    "dpselect.mechanisms.sparse_vector_game.price.game_guarantee",
    "dpselect.mechanisms.sparse_vector_plan.plan_sparse_vector",
    "dpselect.selection.amplification.amplified",
    "dpselect.selection.one_sided.ThresholdSearch",
    "dpselect.selection.sampled_sparse_vector.SampledSparseVector",
    "dpselect.selection.without_threshold.SelectWithoutThreshold",
}
"""Examples in docstrings that take longer: an example carries no mark."""


@pytest.fixture(autouse=True, scope="session")
def _state_of_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(autouse=True)
def _state_of_doctests(request: pytest.FixtureRequest, tmp_path_factory, monkeypatch) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`@pytest.mark.cases(2)`: the default tier has the first two cases of a test, and the full tier the others.

    A case that is marked slow is in neither.
    """
    seen: Counter[tuple[str, str]] = Counter()
    for item in items:
        if item.name in _LONGER_EXAMPLES:
            item.add_marker("full")
        if item.get_closest_marker("slow"):
            item.own_markers = [mark for mark in item.own_markers if mark.name != "full"]
            continue
        mark = item.get_closest_marker("cases")
        if mark is None or not isinstance(item, pytest.Function):
            continue
        test = (item.parent.nodeid if item.parent else "", item.originalname)
        seen[test] += 1
        if seen[test] > mark.args[0]:
            item.add_marker("full")


def pytest_addoption(parser: pytest.Parser) -> None:
    """What is written of processor times, and whether the budget is kept."""
    group = parser.getgroup("processor time")
    group.addoption("--processor-seconds", metavar="FILE", help="write each test's processor seconds, as CSV")
    group.addoption("--budget", metavar="SECONDS", type=float, help="fail what takes longer and is not marked full")


def _spent() -> float:
    """Of this process and of the child processes that it waited for."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """What took longer than the budget is run again: anyone who comes first pays for what is remembered."""
    if item.config.getoption("--budget") is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if item.stash.get(_OVER, False):
        item.user_properties.clear()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Measure the test itself, without its fixtures."""
    before = _spent()
    yield
    seconds = _spent() - before
    item.user_properties.append(("processor seconds", seconds))
    longer = _LONGER.intersection(mark.name for mark in item.iter_markers())
    most = item.config.getoption("--budget")
    if most is not None and seconds > most and not longer:
        item.stash[_OVER] = True
        pytest.fail(f"{seconds:.2f} processor seconds, above {most}: mark it full, or make it quicker", pytrace=False)


def pytest_configure(config: pytest.Config) -> None:
    """The file that is asked for is written by the process that has all reports."""
    if config.getoption("--processor-seconds") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Written(config.getoption("--processor-seconds")))


class _Written:
    """Writes what each test took."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._rows: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._rows[report.nodeid] = dict(report.user_properties).get("processor seconds", 0.0)

    def pytest_sessionfinish(self) -> None:
        with open(self._path, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("test", "processor seconds"), *sorted(self._rows.items())])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many comparisons there were with each peer: with what its tests assert, and with calls of it."""
    counts: Counter[tuple[str, bool]] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                for name, value in report.user_properties:
                    if name == "peer comparisons":
                        counts[value[0], value[1]] += value[2]
    if counts:
        lines = [
            f"| {peer} | {counts[peer, False]} | {counts[peer, True]} |" for peer in sorted({p for p, _ in counts})
        ]
        total = [sum(n for (_, live), n in counts.items() if live is kind) for kind in (False, True)]
        terminalreporter.write_sep("-", "comparisons with peers")
        for line in ("| peer | asserted by its tests | live calls |", "|---|---|---|", *lines):
            terminalreporter.write_line(line)
        terminalreporter.write_line(f"| all | {total[0]} | {total[1]} |")
