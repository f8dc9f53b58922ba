"""Workbooks: dates of two calendars, formulas, merged cells, errors, durations, what stands before the table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from tests.tables.table_cases.case import NAN, Case, seconds
from tests.tables.table_cases.other_files import NUMBER, TEXT, workbook


def book(
    name: str, thread: str, cells: list[Any], want: Any, *, change: Callable[..., Any] | None = None, **more: Any
) -> Case:
    """A workbook of openpyxl; `change(book, sheet)` does the rest."""

    def write(path: Path) -> None:
        import openpyxl

        made = openpyxl.Workbook()
        sheet = made.active
        for row in [("id", "x"), *((f"r{place}", cell) for place, cell in enumerate(cells))]:
            sheet.append(row)
        if change is not None:
            change(made, sheet)
        made.save(path)

    return Case(name=name, thread=thread, make=write, want=want, file="t.xlsx", **more)


def raw(name: str, thread: str, cells: list[str], want: Any, **more: Any) -> Case:
    return Case(name=name, thread=thread, make=workbook(*cells), want=want, file="t.xlsx", **more)


def since_1904(made: Any, sheet: Any) -> None:
    from openpyxl.utils.datetime import CALENDAR_MAC_1904

    made.epoch = CALENDAR_MAC_1904


def formatted(number_format: str) -> Callable[..., None]:
    def change(made: Any, sheet: Any) -> None:
        for (cell,) in sheet.iter_rows(min_row=2, min_col=2, max_col=2):
            cell.number_format = number_format

    return change


def shifted(made: Any, sheet: Any) -> None:
    sheet.insert_rows(1, 3)
    sheet.insert_cols(1, 2)


def titled(made: Any, sheet: Any) -> None:
    sheet.insert_rows(1)
    sheet["A1"] = "Table 7. Made by the office"


def second_sheet(made: Any, sheet: Any) -> None:
    made.create_sheet("notes", 1).append(("id", "x", "not these"))


def hidden(made: Any, sheet: Any) -> None:
    sheet.row_dimensions[3].hidden = True
    sheet.column_dimensions["B"].hidden = True
    sheet.auto_filter.ref = "A1:B4"


def stray(made: Any, sheet: Any) -> None:
    sheet["ZZ9"] = "a note"


def unnamed(made: Any, sheet: Any) -> None:
    sheet["D1"], sheet["E1"] = " ", ""
    sheet["D2"], sheet["E2"] = "left", "over"


CASES = (
    book(
        "days since 1904",
        "miraisolutions/xlconnect#32",
        [date(1950, 5, 3), date(2001, 4, 14), None],
        (seconds("1950-05-03"), seconds("2001-04-14"), NAN),
        change=since_1904,
        kind="date",
    ),
    book(
        "stamps since 1904",
        "pyexcel/pyexcel#135",
        [datetime(2015, 9, 2, 16), datetime(2015, 6, 1)],
        (seconds("2015-09-02T16:00"), seconds("2015-06-01")),
        change=since_1904,
        kind="date",
    ),
    book(
        "days before March 1900",
        "weshatheleopard/rubyXL#51",
        [1, 59, 61],
        (seconds("1900-01-01"), seconds("1900-02-28"), seconds("1900-03-01")),
        change=formatted("yyyy-mm-dd"),
        kind="date",
    ),
    book(
        "a day beside numbers of days",
        "colearendt/xlsx#48",
        [date(2014, 8, 6), 41857, "2014-08-06"],
        (seconds("2014-08-06"), NAN, seconds("2014-08-06")),
        kind="date",
    ),
    book(
        "days in a column of numbers",
        "colearendt/xlsx#48",
        [1.5, date(2014, 8, 6), 2],
        (1.5, NAN, 2),
    ),
    book(
        "formulas that were never computed",
        "felipe-prenholato/openpyxl#69",
        ["=1+1", "=2*2"],
        (NAN, NAN),
        refused={"study": "no cell that can be read"},
    ),
    book(
        "one formula that was never computed",
        "pyexcel/pyexcel#8",
        [1.5, "=B2*2", 4],
        (1.5, NAN, 4),
    ),
    raw(
        "a formula with its value",
        "jsonkenl/xlsxir#79",
        ['<c r="B?"><f>1+1</f><v>2</v></c>', '<c r="B?" t="str"><f>"3"</f><v>3</v></c>'],
        (2, 3),
    ),
    raw(
        "errors of formulas",
        "ExcelDataReader/ExcelDataReader#329",
        [
            '<c r="B?" t="e"><f>1/0</f><v>#DIV/0!</v></c>',
            '<c r="B?" t="e"><v>#N/A</v></c>',
            TEXT.format("#N/A"),
            NUMBER.format("42"),
        ],
        (NAN, NAN, NAN, 42),
    ),
    raw(
        "booleans",
        "exceljs/exceljs#278",
        ['<c r="B?" t="b"><v>1</v></c>', '<c r="B?" t="b"><v>0</v></c>', TEXT.format("TRUE"), NUMBER.format("1")],
        (1, 0, 1, 1),
    ),
    raw(
        "days as text of ISO 8601",
        "SheetJS/sheetjs#1565",
        ['<c r="B?" t="d"><v>2019-01-01T00:00:00</v></c>', TEXT.format("2019-01-02")],
        (seconds("2019-01-01"), seconds("2019-01-02")),
        kind="date",
    ),
    raw(
        "numbers with all digits of a double",
        "tafia/calamine#724",
        [NUMBER.format("0.30000000000000004"), NUMBER.format("1E-07"), NUMBER.format("123456789012345680")],
        (0.30000000000000004, 1e-07, 123456789012345680.0),
    ),
    raw(
        "text of numbers with separators",
        "tidyverse/readxl#277",
        [TEXT.format("1,994"), TEXT.format(" 7 "), TEXT.format("12 %"), NUMBER.format("5")],
        (NAN, 7, NAN, 5),
    ),
    raw(
        "text in parts of several colours",
        "theorchard/openpyxl#21",
        ['<c r="B?" t="inlineStr"><is><r><t>1</t></r><r><t>2.5</t></r></is></c>', NUMBER.format("1")],
        (12.5, 1),
    ),
    book("shares shown in per cent", "wireservice/csvkit#892", [0.5, 1], (0.5, 1), change=formatted("0%")),
    book("numbers shown as money", "tidyverse/readxl#277", [1234.5, -2], (1234.5, -2), change=formatted('"$"#,##0')),
    book(
        "merged cells have one value",
        "Icinga/icingaweb2-module-fileshipper#16",
        [1, 2, 3],
        (1, NAN, 3),
        change=lambda made, sheet: sheet.merge_cells("B2:B3"),
    ),
    book(
        "a header of merged cells",
        "ExcelDataReader/ExcelDataReader#729",
        [1, 2],
        (1, 2),
        change=lambda made, sheet: sheet.merge_cells("B1:D1"),
    ),
    book(
        "durations of more than a day",
        "tafia/calamine#318",
        [timedelta(hours=255, minutes=10, seconds=10), timedelta(minutes=90), None],
        (255 * 3600 + 610, 5400, NAN),
        kind="duration",
    ),
    book(
        "times of the clock for durations",
        "qax-os/excelize#2004",
        [time(1, 30), time(23, 59, 59)],
        (5400, 86399),
        kind="duration",
    ),
    book("a table in the middle of a sheet", "tidyverse/readxl#274", [1.5, 2], (1.5, 2), change=shifted),
    book("a title above the table", "wireservice/csvkit#909", [1.5, 2], "there are 'Table 7", change=titled),
    book("a sheet of notes beside it", "pandas-dev/pandas#14403", [1.5, 2], (1.5, 2), change=second_sheet),
    book("rows that a filter hides", "nuovo/spreadsheet-reader#77", [1.5, 2, 3], (1.5, 2, 3), change=hidden),
    book("a stray cell far away", "wireservice/csvkit#1108", [1.5, 2], (1.5, 2, NAN), change=stray),
    book("columns without names", "dilshod/xlsx2csv#90", [1.5, 2], (1.5, 2), change=unnamed),
    book(
        "two columns of one name in a workbook",
        "pandas-dev/pandas#19383",
        [1.5, 2],
        "more than one",
        change=lambda made, sheet: sheet.cell(1, 3, "x "),
    ),
    book("a workbook of a header alone", "exceljs/exceljs#740", [], ()),
    Case(
        name="a workbook with a password",
        thread="python-excel/xlrd#192",
        make=bytes.fromhex("d0cf11e0a1b11ae1") + bytes(512),
        want="not a readable Excel workbook",
        file="t.xlsx",
    ),
    Case(
        name="text that is named a workbook",
        thread="stanford-crfm/helm#660",
        make="id,x\na,1\n",
        want="not a readable Excel workbook",
        file="t.xlsx",
    ),
    *(
        Case(
            name=f"codes for categories in a workbook, {words}",
            thread="exceljs/exceljs#76",
            make=workbook(*cells),
            want=want,
            file="t.xlsx",
            kind="category",
            categories=categories,
        )
        for words, cells, categories, want in (
            (
                "numbers",
                [NUMBER.format("1"), NUMBER.format("1.0"), TEXT.format("1"), TEXT.format("01")],
                ("1", "2"),
                (4, 0),
            ),
            (
                "booleans",
                ['<c r="B?" t="b"><v>1</v></c>', TEXT.format("true"), TEXT.format("yes")],
                (True, "yes"),
                (2, 1),
            ),
        )
    ),
)
