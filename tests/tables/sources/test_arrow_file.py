"""Parquet and Feather: nested columns, folders of files, and damaged files."""

import random
from decimal import Decimal

import numpy as np
import pytest

from dpselect.errors import ArgumentError, ContentError
from dpselect.ordered import open_column
from dpselect.study.columns.column import Column
from dpselect.tables.categories import category
from dpselect.tables.table import open_table
from tests.tables.every_format import feather, pa, parquet


@pytest.mark.parametrize(
    ("kinds", "want"),
    [
        (("int8", "int64"), "int64"),
        (("bool_", "uint8"), "int64"),
        (("int64", "float64"), "double"),
        (("int64", "string"), "double"),
        (("int64", "null"), "int64"),
        (("string", "int64"), "string"),
    ],
)
def test_a_column_of_a_folder_has_a_type_in_which_the_numbers_of_all_files_are(kinds, want, tmp_path):
    for place, kind in enumerate(kinds):
        parquet.write_table(pa.table({"x": pa.array([None], getattr(pa, kind)())}), tmp_path / f"{place}.parquet")
    found = open_table(tmp_path)
    assert found.empty is not None
    assert str(found.empty("x").type) == want
    cells = found.read(["x"])["x"]
    assert len(cells) == 2


@pytest.mark.full
def test_a_damaged_feather_file_is_refused_and_text_of_any_bytes_is_read(tmp_path):
    pa, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    rows = {
        "text": pa.array([f"cell {k}" for k in range(200)]),
        "coded": pa.array(["a", "b"] * 100).dictionary_encode(),
        "bytes": pa.array([b"\xff\xfe"] * 200).view(pa.string()),
    }
    feather.write_feather(pa.table(rows), tmp_path / "t.feather", compression="uncompressed")
    sound = (tmp_path / "t.feather").read_bytes()
    assert open_table("t.feather", tmp_path).read(["bytes"])["bytes"][0] == "\ufffd\ufffd"
    refused = 0
    for seed in range(150):
        draw, content = random.Random(seed), bytearray(sound)
        for _ in range(5):
            content[draw.randrange(len(content))] = draw.randrange(256)
        (tmp_path / "t.feather").write_bytes(content)
        try:
            table = open_table("t.feather", tmp_path)
            table.check(list(rows))
            table.read(list(rows))
        except (ArgumentError, ContentError):
            refused += 1
    assert refused > 20


NAN = float("nan")


def test_a_nested_column_is_refused_by_name_before_a_row_is_read(tmp_path):
    table = pa.table({"id": ["a", "b"], "x": [[1], [2]], "y": [{"z": 1}, {"z": 2}]})
    parquet.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.feather")
    for name in ("t.parquet", "t.feather"):
        for column in ("x", "y"):
            with pytest.raises(ArgumentError, match=f"'{column}' of .*{name}' holds .*: store its parts"):
                open_table(name, tmp_path).read([column])
            with pytest.raises(ArgumentError, match="store its parts"), open_column(str(tmp_path / name), column):
                pass


def test_a_folder_whose_files_have_other_types_and_columns(tmp_path):
    (tmp_path / "f").mkdir()
    parts = [{"x": [1, 2], "y": ["a", "b"]}, {"x": [3.5]}, {"y": ["c", None], "x": [Decimal("4.25"), None]}]
    for place, part in enumerate(parts):
        parquet.write_table(pa.table(part), tmp_path / "f" / f"{place}.parquet")
    cells = open_table("f", tmp_path).read(["x", "y"])
    np.testing.assert_array_equal(Column(bounds=(0, 9), missing=0).numbers("x", cells["x"]), [1, 2, 3.5, 4.25, NAN])
    assert [category(cell) for cell in cells["y"]] == ["a", "b", "", "c", ""]
