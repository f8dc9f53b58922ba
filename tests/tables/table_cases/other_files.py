"""Files that are neither CSV nor Parquet: JSON lines, Feather, spreadsheets, other archives."""

from __future__ import annotations

import base64
import zipfile
import zlib
from pathlib import Path
from typing import Any

from tests.tables.table_cases.case import NAN, Case


def lines(name: str, thread: str, make: str, want: Any, **more: Any) -> Case:
    return Case(name=name, thread=thread, make=make, want=want, file="t.jsonl", **more)


def feather(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.feather

    pyarrow.feather.write_feather(pa.table({"id": ["a", "b"], "x": [1.5, None]}), str(path))


FIRST_FEATHER = (
    "c-nJwbu?sv0!AQag0d5n5Ml`M!yd*Gfzmu+77qgp0|$^~U=V<s0W$|gCjc=E5O4VZ|33$imVugE0amZWzz(E2fGi0H1+ab~;8H-+"
    "kL(T!B-e02?d1ToA?AYAXQqJ6Re+ld(gih_n*+^Un0Xg~*bNvK00}`1i~"
)
"""The same table, packed, in the first version of the format, which Arrow writes no longer."""


def zstandard(path: Path) -> None:
    import pyarrow as pa

    path.write_bytes(pa.compress(b"id,x\na,1\nb,2\n", codec="zstd", asbytes=True))


def workbook(*cells: str) -> Any:
    """A sheet with the columns id and x, the second of these cells."""
    kinds = "http://schemas.openxmlformats.org"
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
    package, sheets = f"{kinds}/package/2006", f"{kinds}/spreadsheetml/2006/main"
    office = f"{kinds}/officeDocument/2006/relationships"
    content = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    rows = "".join(
        f'<row r="{row}"><c r="A{row}" t="inlineStr"><is><t>r</t></is></c>{cell.replace("?", str(row))}</row>'
        for row, cell in enumerate(cells, 2)
    )
    names = (
        '<row r="1"><c r="A1" t="inlineStr"><is><t>id</t></is></c><c r="B1" t="inlineStr"><is><t>x</t></is></c></row>'
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
        f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
        f'ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="{content}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{content}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{sheets}" xmlns:r="{office}"><sheets>'
        '<sheet name="t" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" '
        f'Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{sheets}"><sheetData>{names}{rows}</sheetData></worksheet>',
    }

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in parts.items():
                archive.writestr(name, head + text)

    return write


NUMBER, TEXT = '<c r="B?"><v>{}</v></c>', '<c r="B?" t="inlineStr"><is><t>{}</t></is></c>'

CASES = (
    lines("lines of JSON", "pandas-dev/pandas#40992", '{"id": "a", "x": 1}\n{"id": "b", "x": 0.5}\n', (1, 0.5)),
    lines(
        "lines of JSON with null and text",
        "jdereg/json-io#62",
        '{"id": "a", "x": null}\n{"id": "b", "x": "0.5"}\n{"id": "c", "x": true}\n',
        (NAN, 0.5, 1),
    ),
    lines(
        "a line of JSON without the field",
        "kinverarity1/lasio#307",
        '{"id": "a", "x": 1}\n{"id": "b"}\n',
        (1, NAN),
        refused={"gate": "field 'x'"},
    ),
    lines(
        "long integers in JSON",
        "pandas-dev/pandas#33766",
        '{"id": "a", "x": 72057594038135102}\n',
        (72057594038135102.0,),
    ),
    lines(
        "integers of JSON beyond 64 bits",
        "pandas-dev/pandas#14530",
        '{"id": "a", "x": 10254939386542155531}\n',
        (10254939386542155531.0,),
    ),
    lines("NaN in JSON", "mittinatten/freesasa#57", '{"id": "a", "x": 1}\n{"id": "b", "x": NaN}\n', (1, NAN)),
    lines(
        "lines of JSON in any order of fields",
        "blaze/odo#10",
        '\ufeff{"x": 1, "id": "a"}\n\n{"id": "b", "x": 0}\n',
        (1, 0),
    ),
    Case(
        name="Feather",
        thread="vaexio/vaex#1394",
        make=feather,
        want=(1.5, NAN),
        file="t.feather",
    ),
    Case(
        name="Feather of the first version",
        thread="ICB-DCM/pyABC#315",
        make=zlib.decompress(base64.b85decode(FIRST_FEATHER)),
        file="t.feather",
        want="not a readable Feather file|cannot be read",
    ),
    Case(
        name="no Feather",
        thread="wesm/feather#226",
        make=b"FEA1 and more",
        file="t.feather",
        want="not a readable Feather file|cannot be read",
    ),
    Case(
        name="CSV packed by Zstandard",
        thread="shenwei356/csvtk#338",
        make=zstandard,
        want=(1, 2),
        file="t.csv.zst",
    ),
    Case(
        name="a workbook",
        thread="pandas-dev/pandas#14403",
        make=workbook(NUMBER.format("1.5"), NUMBER.format("2"), ""),
        want=(1.5, 2, NAN),
        file="t.xlsx",
    ),
    Case(
        name="text of numbers in a workbook",
        thread="theorchard/openpyxl#21",
        make=workbook(TEXT.format("10912345670"), NUMBER.format("0.003")),
        want=(10912345670, 0.003),
        file="t.xlsx",
    ),
    Case(
        name="leading zeros in a workbook",
        thread="tidyverse/readxl#389",
        make=workbook(TEXT.format("0000123"), TEXT.format("0000012")),
        want=(123, 12),
        file="t.xlsx",
    ),
)
