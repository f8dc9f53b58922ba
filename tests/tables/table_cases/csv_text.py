"""How a CSV file is laid out: header, quotation marks, line ends, encodings, rows of odd lengths, archives."""

from __future__ import annotations

import gzip
from typing import Any

from dpselect.tables import Written
from tests.tables.table_cases.case import NAN, Case

RAGGED = {"study": "length", "holdout": "length", "gate": "length"}


def csv(name: str, thread: str, make: Any, want: Any, declared: Written | None = None, **more: Any) -> Case:
    return Case(name=name, thread=thread, make=make, want=want, declared=declared or Written(), **more)


CASES = (
    csv("integers, then decimals", "pola-rs/polars#12692", "id,x\na,1\nb,2.5\nc,-3e2\n", (1, 2.5, -300)),
    csv(
        "a blank before a quote",
        "frictionlessdata/tableschema-js#80",
        'id,x\n"Roe, J", 40\n7, "41"\n "a, b",42\n',
        (40, 41, 42),
    ),
    csv("blanks around names and cells", "d3/d3#978", "id , x \na, 1 \nb,2\n", (1, 2)),
    csv("a quoted name with blanks", "tidyverse/readr#823", '"id", " x "\na, 1\nb,2\n', (1, 2)),
    csv("a blank before each number", "pola-rs/polars#2951", "id,x\na, 77516\nb, 83311\n", (77516, 83311)),
    csv("a blank after each number", "pola-rs/polars#4567", "id,x\na,7.5 \nb,8.25 \n", (7.5, 8.25)),
    csv("a tab after a number", "python/cpython#65496", "id,x\na,\t7\nb,8\t\n", (7, 8)),
    csv("every cell in quotes", "pandas-dev/pandas#13497", '"id","x"\n"a","1"\n"b","2"\n', (1, 2)),
    csv("an empty cell in quotes", "apache/arrow#10892", '"id","x"\n"1","2"\n"4",""\n"5","6"\n', (2, NAN, 6)),
    csv("a quoted line end", "adaltas/node-csv#355", 'id,x\n"a\nb",1\n"c\r\nd",2\n', (1, 2)),
    csv("a quoted line end in the name", "tidyverse/readr#823", 'id,"note\nof it",x\na,c,1\nb,d,2\n', (1, 2)),
    csv("doubled quotes", "pandas-dev/pandas#56690", 'id,x\n"a ""b""",1\nc,2\n', (1, 2)),
    csv("a backslash before a quote", "pandas-dev/pandas#16682", 'id,x\n"2\\" seam",1\nc,2\n', (1, 2), pandas=False),
    csv(
        "a backslash before a quote and a comma",
        "pandas-dev/pandas#21862",
        'id,x\nJeans,1\n"2\\" seam, blue",2\nc,3\n',
        (1, NAN, 3),
        pandas=False,
        refused=RAGGED,
    ),
    csv("a quote within a cell", "tototoshi/scala-csv#95", 'id,x\nfive "feet,1\nb,2\n', (1, 2)),
    csv("an apostrophe is no quote", "duckdb/duckdb#19578", "id,x\n'a,1\nb',2\n", (1, 2)),
    csv("line ends of Windows", "rapidsai/libgdf#168", "id,x\r\na,1\r\nb,2\r\n", (1, 2)),
    csv("lone carriage returns", "thephpleague/csv#305", "id,x\ra,1\rb,2\r", (1, 2)),
    csv("a last line without its end", "ruby/csv#51", "id,x\na,1\nb,2", (1, 2)),
    csv("a mark of UTF-8", "pandas-dev/pandas#4793", "\ufeffid,x\na,1\nb,2\n", (1, 2)),
    csv("a mark of UTF-8 before the column", "Kotlin/dataframe#687", "\ufeffx,id\n1,a\n2,b\n", (1, 2)),
    csv("a mark of UTF-8 before a quote", "pandas-dev/pandas#13497", '\ufeff"x","id"\n1,a\n2,b\n', (1, 2)),
    csv(
        "Latin-1",
        "pandas-dev/pandas#17687",
        "id,x,stra\xdfe\na,1,\xe4\nb,2,\xf6\n".encode("latin-1"),
        (1, 2),
        Written(encoding="latin-1"),
    ),
    csv(
        "code page 1252",
        "ActivitySim/populationsim#84",
        "id,x,\u20ac\na,1,\u2013\nb,2,\u2026\n".encode("cp1252"),
        (1, 2),
        Written(encoding="cp1252"),
    ),
    csv(
        "Latin-1 that is not declared",
        "turicas/rows#247",
        "id,x,stra\xdfe\na,1,b\n".encode("latin-1"),
        "not text in UTF-8",
    ),
    csv(
        "UTF-16",
        "pandas-dev/pandas#24130",
        "id,x\na,1\nb,2\n".encode("utf-16"),
        (1, 2),
        Written(encoding="utf-16"),
    ),
    csv(
        "UTF-16 that is not declared",
        "wireservice/csvkit#927",
        "id,x\na,1\n".encode("utf-16"),
        "not text in UTF-8",
    ),
    csv("blank lines before the header", "pandas-dev/pandas#41304", "\n\nid,x\na,1\nb,2\n", (1, 2)),
    csv("blank lines among the rows", "Rdatatable/data.table#2516", "id,x\n\na,1\n\nb,2\n\n", (1, 2)),
    csv("a comment before the header", "nietras/Sep#274", "# made by hand\nid,x\na,1\nb,2\n", "skip_rows"),
    csv(
        "a comment that is skipped",
        "d99kris/rapidcsv#61",
        "# made by hand, in 2024\nid,x\na,1\nb,2\n",
        (1, 2),
        Written(skip_rows=1),
    ),
    csv(
        "a comment among the rows",
        "pandas-dev/pandas#4623",
        "id,x\n# more\na,1\nb,2\n",
        (NAN, 1, 2),
        pandas=False,
        refused=RAGGED,
    ),
    csv("the encoding in the first line", "mechatroner/vscode_rainbow_csv#13", "UTF-8\nid,x\na,1\n", "'UTF-8'"),
    csv("the line that spreadsheets write", "PowerShell/PowerShell#7776", "sep=;\nid;x\na;1\n", "skip_rows"),
    csv(
        "that line skipped",
        "tspence/csharp-csv-reader#28",
        "sep=;\nid;x\na;1\nb;2\n",
        (1, 2),
        Written(";", skip_rows=1),
    ),
    csv("semicolons that are not declared", "duckdb/duckdb#15576", "id;x\na;1\n", "delimiter may be ';'"),
    csv("bars that are not declared", "duckdb/duckdb#14115", "id|x\na|1\n", r"delimiter may be '\|'"),
    csv("bars", "deephaven/deephaven-core#1800", "id|x\na|1\nb|2\n", (1, 2), Written("|")),
    csv("tabs", "pola-rs/polars#2313", "id\tx\n2.3,2.4\t1\nb\t2\n", (1, 2), file="t.tsv"),
    csv(
        "tabs in a file of another name",
        "shenwei356/csvtk#338",
        "id\tx\na\t1\nb\t2\n",
        (1, 2),
        Written("\t"),
        file="t.txt",
    ),
    csv("gzip", "JuliaData/CSV.jl#46", gzip.compress(b"id,x\na,1\nb,2\n"), (1, 2), file="t.csv.gz"),
    csv(
        "gzip of tabs",
        "airr-community/airr-standards#618",
        gzip.compress(b"id\tx\na\t1\nb\t2\n"),
        (1, 2),
        file="t.tsv.gz",
    ),
    csv(
        "gzip in two members",
        "ruby/zlib#7",
        gzip.compress(b"id,x\na,1\n") + gzip.compress(b"b,2\n"),
        (1, 2),
        file="t.csv.gz",
    ),
    csv("an ending in capitals", "ananthakumaran/paisa#60", "id,x\na,1\nb,2\n", (1, 2), file="T.CSV"),
    csv(
        "two columns of one name", "pandas-dev/pandas#19383", "id,x,x\na,1,2\n", "more than one|must have one|2 columns"
    ),
    csv(
        "two columns of one name but for blanks",
        "pandas-dev/pandas#14367",
        "id,x ,x\na,1,2\n",
        "more than one|must have one|2 columns",
    ),
    csv(
        "two other columns of one name",
        "pandas-dev/pandas#7160",
        "id,x,y,y\na,1,2,3\n",
        (1,),
        refused={"init": "'y'"},
    ),
    csv(
        "no such column",
        "adaltas/node-csv-parse#284",
        "id,y\na,1\n",
        "no such column|must have one column|there is no 'x'",
    ),
    csv(
        "a column of another case",
        "pandas-dev/pandas#14704",
        "id,X\na,1\n",
        "no such column|must have one column|there is no 'x'",
    ),
    csv("an empty file", "pandas-dev/pandas#33011", "", "empty|must have one column|there is no 'x'"),
    csv("a header alone", "redcap-tools/PyCap#118", "id,x\n", (), refused={"holdout": "no rows", "gate": "no rows"}),
    csv(
        "a row too short", "UKGovernmentBEIS/inspect_ai#4549", "id,x,y\na,1,1\nb\nc,3,3\n", (1, NAN, 3), refused=RAGGED
    ),
    csv(
        "a row too long",
        "apache/arrow-rs#10578",
        "id,x\na,1\nb,2,extra\nc,3\n",
        (1, 2, 3),
        pandas=False,
        refused=RAGGED,
    ),
    csv(
        "a delimiter after each row, but for the header",
        "pandas-dev/pandas#14124",
        "id,x\na,1,\nb,2,\n",
        (1, 2),
        pandas=False,  # it makes an index of the first column
        refused=RAGGED,
    ),
    csv("a delimiter after each row", "deephaven/deephaven-core#1800", "id,x,\na,1,\nb,2,\n", (1, 2)),
    csv("an unnamed first column, as R writes it", "natcap/invest#146", '"","id","x"\n"1","a",1\n"2","b",2\n', (1, 2)),
    csv(
        "names of rows that the header has no name for",
        "pola-rs/polars#1999",
        '"id","x"\n"1","a",3\n"2","b",4\n',
        "more cells than the header|must have one column|length differs",
    ),
    csv("bytes of zero in another column", "pandas-dev/pandas#19886", "id,x\na\0b,1\nc,2\n", (1, 2)),
    csv(
        "bytes of zero for a missing number",
        "pandas-dev/pandas#2741",
        "id,x\na,1\nb,\0\0\nc,3\n",
        (1, NAN, 3),
        pandas=False,
    ),
    csv("bytes of zero in the header", "turicas/rows#273", "i\0d,x\na,1\n", "not text in UTF-8"),
    csv(
        "a row that is no text",
        "PaulMcInnis/JobFunnel#56",
        b"id,x\na,1\n\xe9,2\n",
        (1, 2),
        pandas=False,
        refused={"holdout": "not text in UTF-8", "gate": "not text in UTF-8"},
    ),
    csv("names of other scripts", "Gmousse/dataframe-js#96", "\u4e70\u5356,id,x\n\u4e70,a,1\n\u5356,b,2\n", (1, 2)),
    csv("an asterisk for a name", "pandas-dev/pandas#8908", "*,id,x\n1,a,1\n2,b,2\n", (1, 2)),
)
