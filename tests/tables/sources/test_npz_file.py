"""Archives of arrays: matrices are refused by name, and damaged ones without a checksum."""

import gzip

import numpy as np
import pytest

from dpselect.errors import ArgumentError, ContentError
from dpselect.ordered import open_column
from dpselect.tables.table import open_table


def test_a_damaged_archive_shows_no_check_sum(tmp_path):
    content = bytearray(gzip.compress(b"x\n" + b"1\n" * 1000))
    content[-8] ^= 1
    (tmp_path / "t.csv.gz").write_bytes(content)
    with pytest.raises(ContentError, match="truncated or damaged"):
        open_table("t.csv.gz", tmp_path).read(["x"])


def test_a_matrix_is_refused_by_name_before_anything_is_paid(tmp_path):
    np.savez(tmp_path / "t.npz", m=np.zeros((3, 2)), n=np.float64(1), X=np.ones((3, 2)))
    for column in ("m", "n"):
        with (
            pytest.raises(ArgumentError, match=f"'{column}' of .* has not one dimension"),
            open_column(str(tmp_path / "t.npz"), column),
        ):
            pass
    assert open_table("t.npz", tmp_path).read(["x1"])["x1"].tolist() == [1, 1, 1]
