"""JSON lines: names of columns, lines that hold no object, and lists."""

import numpy as np
import pytest

from dpselect.errors import ContentError, StudyError
from dpselect.holdout.files import submitted
from dpselect.holdout.gate.files import read_outcomes
from dpselect.ordered import open_column
from dpselect.study.data import plan_columns
from dpselect.study.schema_data import Data
from dpselect.tables.table import open_table


def test_a_list_of_repeats_counts_as_so_many_rows(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"id": "a", "outcome": [1, 0, 1]}\n{"id": "b", "outcome": 1}\n')
    found = read_outcomes(tmp_path / "t.jsonl", "id", ["outcome"], limits=submitted(4))
    assert found == {"a": [1, 0, 1], "b": [1]}
    with pytest.raises(ContentError, match="more than 3 rows"):
        read_outcomes(tmp_path / "t.jsonl", "id", ["outcome"], limits=submitted(3))


NAN = float("nan")


def test_a_line_that_is_no_object_is_a_row_without_cells(tmp_path):
    path = tmp_path / "t.jsonl"
    lines = ['{"x": 1}', "", "[2]", "{", '{"x": {"y": 3}}', '{"x": "4"}', '{"x": true}', '{"y": 5}', '{"x": 1e999}']
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode() + b'\n{"x": "\xff"}\n{"x": ' + b"9" * 5000 + b"}")
    with open_column(str(path), "x") as source:
        blocks = list(source.blocks())
    found = np.concatenate([values if there is None else np.where(there, values, NAN) for values, there in blocks])
    np.testing.assert_array_equal(found, [1, NAN, NAN, NAN, 4, 1, NAN, np.inf, NAN, np.inf])
    with pytest.raises(ContentError, match=r"must hold one JSON object in each line|not JSON"):
        read_outcomes(path, "x", ["x"])


def test_a_list_with_one_object_a_line_is_refused_however_long(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("[\n" + ",\n".join('{"x": 1}' for _ in range(30)) + "\n]\n")
    with pytest.raises(ContentError, match="must hold one JSON object in each line"):
        open_table(path)
    for lost in (0, 1, 2):  # of objects, a few lines that are none change nothing
        path.write_text("\n".join(['{"x": 1}'] * 2 + ["x"] * lost))
        assert open_table(path).columns == ("x",)


def test_the_names_of_json_lines_do_not_depend_on_one_row(tmp_path):
    path = tmp_path / "t.jsonl"
    rows = ['{"b": 1, "a": 2}', '{"a": 3, "b": 4}', '{"a": 5}', '{"b": 6}']
    for without in range(len(rows)):
        path.write_text("\n".join(row for place, row in enumerate(rows) if place != without))
        assert open_table(path).columns == ("a", "b")


def test_a_row_of_json_lines_adds_no_column_to_a_study(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"x": 1, "y": "a"}\n{"x": 2, "y": "b", "secret": 1}\n')
    facts = {"source": "t.jsonl", "label": "y", "classes": ("a", "b")}
    table = open_table("t.jsonl", tmp_path)
    with pytest.raises(StudyError, match=r"data.bounds: .*t.jsonl.* has no header"):
        plan_columns(Data.model_validate({**facts, "bounds": (0, 9)}), table)
    named = Data.model_validate({**facts, "columns": {"x": {"bounds": (0, 9)}}})
    assert list(plan_columns(named, table)) == ["x"]
