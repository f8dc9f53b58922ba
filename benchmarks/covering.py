"""A plugin of pytest under `coverage run`: which test ran which lines.

coverage run --source=src/dpselect/ledger -m pytest -n 0 -p benchmarks.covering
"""

from __future__ import annotations

from collections.abc import Iterator

import coverage
import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A context for each test, named as pytest names it."""
    measured = coverage.Coverage.current()
    assert measured is not None
    measured.switch_context(item.nodeid)
    outcome = yield
    measured.switch_context("")
    return outcome  # type: ignore[return-value]
