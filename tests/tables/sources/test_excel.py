"""Workbooks: cells, sheets, and the memory that they take."""

from datetime import date, datetime, timedelta

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered import open_column
from dpselect.study.columns.column import Column
from dpselect.tables import Written
from dpselect.tables.table import open_table
from tests.tables.every_format import openpyxl, written_workbook

NAN = float("nan")


def test_cells_of_a_workbook_are_what_they_are_there(tmp_path):
    path = tmp_path / "t.xlsx"
    rows = [
        (None,),
        (" id ", "x", "day", "span"),
        ("a", "1_0", datetime(2024, 2, 29, 12), timedelta(hours=2)),
        (),
        ("b", True, date(2024, 3, 1), timedelta(days=1)),
        ("c", "#N/A", "2024-03-02", None),
        ("d", " 7 ", 3, "x", "beyond the header"),
    ]
    written_workbook(path, rows)
    table = open_table(path)
    cells = table.read(["x", "day", "span"])
    assert table.columns == ("id", "x", "day", "span")
    number = Column(bounds=(0, 1), missing=0.5)
    np.testing.assert_array_equal(number.numbers("x", cells["x"]), [NAN, 1, NAN, 7])
    days = Column(kind="date", bounds=("2024-01-01", "2025-01-01"), missing="2024-01-01").numbers("day", cells["day"])
    assert (days[:3] / 86400 - days[0] // 86400).tolist() == [0.5, 1, 2]
    assert np.isnan(days[3])
    spans = Column(kind="duration", bounds=(0, 1), missing=0).numbers("span", cells["span"])
    np.testing.assert_array_equal(spans, [7200, 86400, NAN, NAN])
    with open_column(str(path), "day", dates=True) as source:
        moments = np.concatenate([values for values, _ in source.blocks()])
    noon = moments.astype("datetime64[h]").astype(str).tolist()
    assert noon[:3] == ["2024-02-29T12", "2024-03-01T00", "2024-03-02T00"]


def test_a_sheet_is_named(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(("y",))
    book.create_sheet("people").append(("x",))
    book.save(tmp_path / "t.xlsx")
    assert open_table("t.xlsx", tmp_path).columns == ("y",)
    assert open_table("t.xlsx", tmp_path, form=Written(sheet="people")).columns == ("x",)
    with pytest.raises(ArgumentError, match=r"data\.sheet: there is no 'staff' in .*; there are 'Sheet', 'people'"):
        open_table("t.xlsx", tmp_path, form=Written(sheet="staff"))
    with pytest.raises(ArgumentError, match=r"data\.sheet: goes with \.xlsx, not with \.csv"):
        open_table("t.csv", tmp_path, form=Written(sheet="people"))


def test_one_stray_cell_of_a_workbook_takes_no_room(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(("x",))
    book.active.cell(30_000, 16_384, "stray")
    book.active.cell(30_001, 1, 4.0)
    book.save(tmp_path / "t.xlsx")
    found = open_table(tmp_path / "t.xlsx").read(["x"])["x"]
    assert found.tolist() == [None, 4.0]
