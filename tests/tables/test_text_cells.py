"""Cells as Python values: every type of Arrow has text, integers or nothing, and text may hold any bytes."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.tables.text_cells import arrow_texts, cells_of, text_type

pa = pytest.importorskip("pyarrow")
DAMAGED = pa.array([b"a\xff", None], pa.binary()).view(pa.string())


def test_types_of_text_and_of_integers():
    texts = (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()))
    whole = (pa.int8(), pa.uint64(), pa.bool_(), pa.dictionary(pa.int8(), pa.int64()))
    others = (pa.float64(), pa.binary(), pa.date32(), pa.list_(pa.string()))
    assert [text_type(kind) for kind in (*texts, *whole, *others)] == [True] * 3 + [False] * 8
    assert [text_type(kind, whole=True) for kind in (*texts, *whole, *others)] == [True] * 7 + [False] * 4


def test_bytes_that_are_no_text_are_replaced():
    assert arrow_texts(DAMAGED) == ["a\ufffd", None]
    assert arrow_texts(pa.array(["b", None, "b"]).dictionary_encode()) == ["b", None, "b"]
    assert arrow_texts(pa.array([1, None])) == [1, None]


def test_cells_of_any_container():
    assert cells_of(pa.chunked_array([["a"], [None, "b"]])) == ["a", None, "b"]
    assert cells_of(pa.array([1.5, 2.5])) == [None, None]
    assert cells_of(np.array([1, 2])) == [1, 2]
    pd = pytest.importorskip("pandas")
    assert cells_of(pd.Series(["a", None], dtype=pd.ArrowDtype(pa.string()))) == ["a", None]
    with pytest.raises(ArgumentError, match="one-dimensional"):
        cells_of(np.zeros((2, 2)))
