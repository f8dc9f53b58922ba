"""An empty private file, for the tests of what keeps a record."""

from __future__ import annotations

import pytest

from dpselect.storage import durable


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "a.db"
    durable.create_private(found, b"")
    return found
