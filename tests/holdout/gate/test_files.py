"""Outcomes and clusters of tasks from files: repeats by row, by column and within a field."""

from __future__ import annotations

import pytest

from dpselect.errors import ContentError
from dpselect.holdout.gate.files import read_groups, read_outcomes


def test_rows_columns_and_lists_are_repeats(tmp_path):
    lines = ['{"id": "a", "x": [1, 0], "y": 1}', '{"id": " b ", "x": 0, "y": [[1], {}]}', '{"id": "a", "x": 0, "y": 1}']
    (tmp_path / "o.jsonl").write_text("\n".join(lines))
    found = read_outcomes(tmp_path / "o.jsonl", "id", ["x", "y"])
    assert found == {"a": [1, 0, 1, 0, 1], "b": [0, None, None]}


def test_the_order_of_columns_is_that_asked_for(tmp_path):
    (tmp_path / "o.csv").write_text("y,id,x\n1,a,0\n")
    assert read_outcomes(tmp_path / "o.csv", "id", ["x", "y"]) == {"a": ["0", "1"]}
    assert read_outcomes(tmp_path / "o.csv", "id", ["y"]) == {"a": ["1"]}


def test_a_row_without_an_id_is_refused(tmp_path):
    (tmp_path / "o.csv").write_text("id,x\n ,1\n")
    with pytest.raises(ContentError, match="without an id"):
        read_outcomes(tmp_path / "o.csv", "id", ["x"])


@pytest.mark.parametrize(("rows", "fits"), [("a,1\nb,2\na,1\n", True), ("a,1\na,2\n", False), ("a,\n", False)])
def test_a_task_has_one_cluster(tmp_path, rows, fits):
    (tmp_path / "c.csv").write_text("id,c\n" + rows)
    if fits:
        assert read_groups(tmp_path / "c.csv", "id", "c") == {"a": "1", "b": "2"}
    else:
        with pytest.raises(ContentError, match="one cluster for each task"):
            read_groups(tmp_path / "c.csv", "id", "c")
