"""The examples in docstrings keep their state, as a user's program would, but in a folder of their own."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _state_of_doctests(request: pytest.FixtureRequest, tmp_path_factory, monkeypatch) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
