"""Text has no numbers, and its declaration takes nothing more."""

from __future__ import annotations

import pytest

from dpselect.errors import ArgumentError
from dpselect.tables import Declared
from dpselect.tables.kinds.declared import KINDS


def test_text_is_not_read_as_numbers():
    with pytest.raises(TypeError, match="holds text, which is no numbers"):
        Declared(kind="text").read(["1", "2"])
    assert not KINDS["text"].keys
    assert not KINDS["text"].numeric
    with pytest.raises(ArgumentError, match="unicode"):
        Declared(kind="text", unicode="exact")
