"""Files that went wrong on the way: joined, cut, named otherwise than they are, with lines that are no rows."""

from __future__ import annotations

import gzip
import math
from typing import Any

from dpselect.tables import Written
from tests.tables.table_cases.case import NAN
from tests.tables.table_cases.csv_text import RAGGED, csv
from tests.tables.table_cases.numbers_in_text import cells
from tests.tables.table_cases.other_files import lines

DAMAGED = "unpacked|packed|archive|damaged"


def array_of_json(rows: int) -> str:
    return "[\n" + ",\n".join(f'{{"id": "r{row}", "x": {row}}}' for row in range(rows)) + "\n]\n"


def arrow_of(kind: str) -> Any:
    def write(path: Any) -> None:
        import pyarrow as pa
        import pyarrow.feather
        import pyarrow.parquet

        table = pa.table({"id": ["a", "b"], "x": [1.0, 2.0]})
        if kind == "parquet":
            pyarrow.parquet.write_table(table, path)
        else:
            pyarrow.feather.write_feather(table, str(path))

    return write


CASES = (
    csv("Windows' end of the header alone", "Rdatatable/data.table#1183", "id,x\r\na,1\nb,2\n", (1, 2)),
    csv("three kinds of line ends", "Rdatatable/data.table#7384", "id,x\na,1\r\nb,2\rc,3\n", (1, 2, 3)),
    csv("carriage returns twice", "adaltas/node-csv-parse#126", "id,x\r\r\na,1\r\r\nb,2\r\r\n", (1, 2)),
    csv("the header again among the rows", "whitfin/s3-concat#3", "id,x\na,1\nid,x\nb,2\n", (1, NAN, 2)),
    csv(
        "files with marks of UTF-8 that were joined",
        "ckan/datapusher#74",
        "\ufeffx,id\n1,a\n\ufeffx,id\n2,b\n",
        (1, NAN, 2),
    ),
    csv(
        "a line of units",
        "BurntSushi/xsv#245",
        "id,x\n,[K]\na,1.5\nb,2\n",
        (NAN, 1.5, 2),
        refused={"gate": "without an id"},
    ),
    csv("a line of totals", "pandas-dev/pandas#4512", "id,x\na,1\nb,2\nTotal,3\n", (1, 2, 3)),
    csv(
        "words below the table",
        "uniVocity/univocity-parsers#107",
        "id,x\na,1\nb,2\n\nSource: the office\n",
        (1, 2, NAN),
        refused=RAGGED,
    ),
    csv(
        "a quote that is not closed, in the last row",
        "BurntSushi/rust-csv#252",
        'id,x\na,1\nb,"2\n',
        (1, 2),
        pandas=False,
    ),
    csv(
        "a quote that is not closed, in a row before others",
        "cldf/csvw#52",
        'id,x\na,1\n"b,2\nc,3\nd,4\n',
        (1, NAN),
        pandas=False,
        refused=RAGGED,
    ),
    csv("quotes within quotes", "pandas-dev/pandas#16682", 'id,x\n"a "b" c",1\nd,2\n', (1, 2)),
    csv("a cell of quotes alone", "tototoshi/scala-csv#95", 'id,x\n"""",1\n"""""",2\n', (1, 2)),
    csv("names of columns that are empty", "wireservice/csvkit#426", "id,x,,,\na,1,,,\nb,2,,,\n", (1, 2)),
    csv("empty names before the others", "alphagov/notifications-utils#1169", ",,id,x\n,,a,1\n,,b,2\n", (1, 2)),
    csv(
        "a delimiter after the header alone",
        "fsprojects/FSharp.Data#688",
        "id,x,\na,1\nb,2\n",
        (1, 2),
        refused=RAGGED,
    ),
    csv(
        "rows of fewer cells at the end",
        "duckdb/duckdb#6764",
        "id,x,y,z\na,1,2,3\nb,2\n",
        (1, 2),
        refused=RAGGED,
    ),
    csv("line separators of Unicode within cells", "eBay/tsv-utils#303", "id,x\na\u2028b,1\n\x85c\x0c,2\n", (1, 2)),
    csv("a form feed beside a number", "eBay/tsv-utils#303", "id,x\na,\x0c1\nb,2\x0b\n", (1, 2), pandas=False),
    csv(
        "columns that blanks align",
        "joutvhu/fixed-width-parser#32",
        "id  x\na   1\nb   2\n",
        (1, 2),
        Written(" "),
        file="t.txt",
    ),
    csv("UTF-16 without a mark", "pandas-dev/pandas#24130", "id,x\na,1\n".encode("utf-16-le"), "utf-16-le"),
    csv(
        "UTF-16 without a mark, declared",
        "wireservice/csvkit#927",
        "id,x\na,1\nb,2\n".encode("utf-16-le"),
        (1, 2),
        Written(encoding="utf-16-le"),
    ),
    csv("UTF-32 that is not declared", "turicas/rows#247", "id,x\na,1\n".encode("utf-32"), "utf-32"),
    csv(
        "an archive that is named otherwise",
        "cytomining/pycytominer#95",
        gzip.compress(b"id,x\na,1\n"),
        "It is a gzip archive",
    ),
    csv(
        "an archive twice packed",
        "hesther/enzymemap#11",
        gzip.compress(gzip.compress(b"id,x\na,1\n")),
        "It is a gzip archive",
        file="t.csv.gz",
    ),
    csv("text that is named an archive", "stanford-crfm/helm#660", "id,x\na,1\nb,2\n", DAMAGED, file="t.csv.gz"),
    csv(
        "an archive that ends early",
        "ruby/zlib#7",
        gzip.compress(b"id,x\n" + b"a,1\n" * 99)[:-12],
        DAMAGED,
        file="t.csv.gz",
    ),
    csv("Parquet that is named CSV", "duckdb/duckdb#11296", arrow_of("parquet"), "It is a Parquet file"),
    csv("Feather that is named CSV", "wesm/feather#226", arrow_of("feather"), "It is an Arrow file"),
    csv(
        "a workbook that is named CSV",
        "nuovo/spreadsheet-reader#77",
        b"PK\x03\x04\x14\x00\x06\x00\x08\x00\x00\x00!\x00\n\x00\xe9\n",
        "It is a zip archive or a workbook",
    ),
    csv(
        "an old workbook that is named CSV",
        "SheetJS/sheetjs#1821",
        bytes.fromhex("d0cf11e0a1b11ae1") + bytes(99),
        "It is an old or encrypted workbook",
    ),
    csv(
        "a page of an error in place of the table",
        "redcap-tools/PyCap#118",
        "<!DOCTYPE html>\n<p>Sign in</p>\n",
        "no such column|must have one column|there is no 'x'",
    ),
    cells(
        "digits of full width with a point",
        "jmcnamara/excel-writer-xlsx#160",
        ["\uff11.\uff15", "\uff11\uff0e\uff15", "2"],
        (1.5, NAN, 2),
        pandas=False,
    ),
    cells(
        "digits above the line",
        "JosephTLyons/lenient_parse#87",
        ["\u00b2", "\u00bd", "\u2460", "7"],
        (NAN, NAN, NAN, 7),
        pandas=False,
    ),
    cells(
        "numbers with letters behind",
        "tursodatabase/turso#5502",
        ["23g", "1.5f", "7L", "2"],
        (NAN, NAN, NAN, 2),
        pandas=False,
    ),
    cells(
        "an infinity in Unicode",
        "JuliaData/CSV.jl#168",
        ["\u221e", "Infinit", "INFINITY", "1"],
        (NAN, NAN, math.inf, 1),
        pandas=False,
    ),
    cells("a NaN with its bits", "simdjson/simdjson#1898", ["nan(0x1)", "NaN(7)", "1"], (NAN, NAN, 1), pandas=False),
    cells(
        "parts of a number in another order",
        "quentinsf/icsv2ledger#83",
        ["1e", "e5", "+-1", "1e+-5", ".", "+", "3"],
        (NAN,) * 6 + (3,),
        pandas=False,
    ),
    cells(
        "blanks within a number", "tidyverse/readr#827", ["- 1", "1 234", "1\t2", "3"], (NAN, NAN, NAN, 3), pandas=False
    ),
    cells(
        "a mark of direction before a number",
        "mholt/PapaParse#1010",
        ["\u200e7", "\u202d8\u202c", "9"],
        (NAN, NAN, 9),
        pandas=False,
    ),
    cells(
        "bits and octal digits",
        "Keyang/node-csvtojson#130",
        ["0b11", "0o17", "1__0", "010"],
        (NAN, NAN, NAN, 10),
        pandas=False,
    ),
    cells("a ratio", "duckdb/duckdb#15473", ["1/2", "1:2", "5"], (NAN, NAN, 5), pandas=False),
    cells(
        "a range and a bound",
        "tidyverse/readr#308",
        ["10-20", "<5", ">=65", "~7", "8"],
        (NAN,) * 4 + (8,),
        pandas=False,
    ),
    cells(
        "exponents beside a decimal comma",
        "pandas-dev/pandas#35873",
        ["1,5e3", "-2,5E-1", "1e3"],
        (1500, -0.25, 1000),
        Written(";", decimal=","),
    ),
    cells(
        "groups of thousands behind the decimal point",
        "pandas-dev/pandas#62658",
        ["1,234.567,8", "12,34.5", "1,234.5"],
        (NAN, NAN, 1234.5),
        Written(thousands=","),
        pandas=False,
    ),
    lines(
        "a field twice in one object",
        "im-anishraj/arnio#1708",
        '{"id": "a", "x": 0, "x": 1}\n{"id": "b", "x": 0.5}\n',
        (1, 0.5),
    ),
    lines(
        "an array of objects, one a line",
        "ndjson/ndjson-spec#40",
        array_of_json(30),
        "one JSON object in each line|not JSON",
    ),
    lines(
        "an array in one line",
        "pandas-dev/pandas#40992",
        '[{"id": "a", "x": 1}, {"id": "b", "x": 2}]\n',
        "one JSON object in each line|not JSON",
    ),
    lines(
        "an object over several lines",
        "ndjson/ndjson-spec#5",
        '{\n  "id": "a",\n  "x": 1\n}\n',
        "one JSON object in each line|not JSON",
    ),
    lines("objects of Python", "jdereg/json-io#62", "{'id': 'a', 'x': 1}\n", "one JSON object in each line|JSON"),
    lines(
        "a number of too many digits",
        "jeroen/jsonlite#111",
        '{"id": "a", "x": 1' + "0" * 5000 + '}\n{"id": "b", "x": 1}\n',
        (math.inf, 1),
        refused={"gate": "digits|JSON|number"},
    ),
    lines(
        "numbers beyond all doubles",
        "simdjson/simdjson#1898",
        '{"id": "a", "x": 1e400}\n{"id": "b", "x": -1e400}\n{"id": "c", "x": 1e-400}\n',
        (math.inf, -math.inf, 0),
    ),
    lines("an object for a number", "blaze/odo#10", '{"id": "a", "x": {"x": 1}}\n{"id": "b", "x": 1}\n', (NAN, 1)),
    lines(
        "a name in escapes", "kinverarity1/lasio#307", '{"id": "a", "\\u0078": 1}\n{"id": "b", "x": 0.5}\n', (1, 0.5)
    ),
    lines(
        "a line that ends early",
        "ndjson/ndjson-spec#24",
        '{"id": "a", "x": 1}\n{"id": "b", "x": 0',
        (1, NAN),
        refused={"gate": "JSON"},
    ),
)
