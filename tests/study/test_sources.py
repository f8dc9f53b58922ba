"""Openers of version 0.2 still work, with a warning."""

import importlib

import numpy as np
import pytest

from dpselect.tables import SOURCES


def test_an_opener_of_version_02_is_warned(tmp_path):
    with pytest.warns(FutureWarning, match=r"import SOURCES from dpselect\.tables"):
        assert importlib.import_module("dpselect.study.sources").SOURCES is SOURCES
    with pytest.warns(FutureWarning, match="read in chunks"):
        table = importlib.import_module("dpselect.study.sources").Table(("a",), lambda names: {"a": np.arange(3)})
    assert table.read(["a"])["a"].tolist() == [0, 1, 2]
