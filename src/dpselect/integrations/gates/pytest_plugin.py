"""A plug-in of pytest: the outcomes of a suite's tests are a candidate, and the gate's word is all that is shown.

pytest --gate-outcomes incumbent.csv    # writes a row for each test; then dpselect gate create incumbent.csv ...
pytest --gate my.gate                   # runs the tests, and prints accepted or rejected
"""

from __future__ import annotations

import contextlib
import csv
from pathlib import Path
from typing import Any

from dpselect.errors import BudgetError, missing_extra

try:
    import pytest
except ImportError:
    raise missing_extra("test", "the plug-in of pytest") from None

__all__ = ["pytest_addoption", "pytest_configure"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plug-in."""
    group = parser.getgroup("dpselect")
    group.addoption(
        "--gate", metavar="FILE", help="ask this gate about the outcomes of the tests, and show nothing else"
    )
    group.addoption("--gate-stake", metavar="STAKE", help='what to stake of the purse: a number or "all"')
    group.addoption("--gate-outcomes", metavar="FILE", help="write the outcome of each test into a CSV file")


@pytest.hookimpl(trylast=True)  # when there is a reporter to be silenced
def pytest_configure(config: pytest.Config) -> None:
    """Listen where one of the options is given."""
    worker = hasattr(config, "workerinput")
    if config.getoption("--gate") and not worker:
        config.pluginmanager.register(_Asking(config), "dpselect-gate")
    elif config.getoption("--gate-outcomes") and not worker:
        config.pluginmanager.register(_Writing(config), "dpselect-gate")


class _Outcomes:
    """1 for a test that was run and passed, 0 for every other one."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._outcomes: dict[str, int] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        passed = self._outcomes.get(report.nodeid, 1) and not report.failed and not report.skipped
        self._outcomes[report.nodeid] = int(passed)


class _Writing(_Outcomes):
    """Writes them when all is over."""

    def pytest_sessionfinish(self) -> None:
        with Path(self._config.getoption("--gate-outcomes")).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("id", "outcome"), *self._outcomes.items()])


class _Asking(_Outcomes):
    """Asks with them. Tests are collected and run within the ask: it is charged before they say anything."""

    def __init__(self, config: pytest.Config) -> None:
        from dpselect.holdout import Gate

        super().__init__(config)
        stake = config.getoption("--gate-stake")
        absent = [one for one in config.args if not Path(one.partition("::")[0]).exists()]
        if config.getoption("capture") not in ("fd", "sys") or absent:
            raise pytest.UsageError(f"{absent[0]} does not exist" if absent else "--gate needs output to be captured")
        try:
            self._stake: Any = stake if stake in (None, "all") else float(stake)
            self._gate = Gate.open(config.getoption("--gate"))
        except ValueError as wrong:
            raise pytest.UsageError(f"--gate: {wrong}") from None
        self._inside = False
        self._reporter: Any = config.pluginmanager.unregister(name="terminalreporter")
        distributed = config.pluginmanager.getplugin("dsession")
        if distributed is not None:  # xdist, where it was configured before, holds the reporter by itself
            distributed.terminal = None
            if config.pluginmanager.hasplugin("terminaldistreporter"):
                config.pluginmanager.unregister(name="terminaldistreporter")
        for name in ("lfplugin", "stepwiseplugin"):  # they would keep a list of what failed in .pytest_cache
            if config.pluginmanager.hasplugin(name):
                config.pluginmanager.unregister(name=name)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> bool | None:
        return None if self._inside else True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if self._inside:
            return None
        self._inside = True

        def grade() -> dict[str, int]:
            with contextlib.suppress(session.Interrupted, session.Failed, pytest.UsageError):
                self._config.hook.pytest_collection(session=session)
                self._config.hook.pytest_runtestloop(session=session)
            return self._outcomes

        try:
            said = "accepted" if self._gate.ask(grade, self._stake) else "rejected"
        except (BudgetError, ValueError) as refused:
            said, status = str(refused), 3 if isinstance(refused, BudgetError) else 2
        else:
            status = 0
        session.testsfailed, session.testscollected = 0, 1  # the exit status says nothing either
        if self._reporter is not None:
            self._reporter.write_line(f"gate: {said}")
        if status:
            pytest.exit("the gate has refused", returncode=status)
        return True
