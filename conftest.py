"""Tests and the examples in docstrings keep their state, as a user's program would, but in folders of their own."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True, scope="session")
def _state_of_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(autouse=True)
def _state_of_doctests(request: pytest.FixtureRequest, tmp_path_factory, monkeypatch) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
