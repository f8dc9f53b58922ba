"""Categories are no numbers, and a declaration of them takes `unicode` alone."""

from __future__ import annotations

import pytest

from dpselect.errors import ArgumentError
from dpselect.tables import Declared
from dpselect.tables.kinds.declared import KINDS


def test_categories_are_not_read_as_numbers():
    with pytest.raises(TypeError, match="holds categories, which are not numbers"):
        Declared(kind="category").read(["1", "2"])
    assert KINDS["category"].keys == {"unicode"}
    assert not KINDS["category"].numeric
    with pytest.raises(ArgumentError, match="format"):
        Declared(kind="category", format="%d")
