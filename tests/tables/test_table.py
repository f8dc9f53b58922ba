"""One column in every format: studies, quantiles and holdouts read the same cells."""

import gzip
import json
import subprocess
import sys
from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest
from typer.testing import CliRunner

from dpselect.cli.app import app
from dpselect.decoding.limits import DecodingLimits, LimitError
from dpselect.errors import ArgumentError, ContentError, StudyError
from dpselect.holdout.files import read_columns
from dpselect.holdout.gate.files import read_outcomes
from dpselect.ordered import median, open_column
from dpselect.randomness import keyed_source
from dpselect.study.columns.column import Column
from dpselect.study.data import cells_of, load, plan_columns, study_table
from dpselect.study.schema import Data
from dpselect.tables import Written
from dpselect.tables.categories import category
from dpselect.tables.table import open_table

pa = pytest.importorskip("pyarrow")
feather, parquet = (pytest.importorskip(f"pyarrow.{name}") for name in ("feather", "parquet"))
openpyxl = pytest.importorskip("openpyxl")

NAN = float("nan")
CELLS = [1, 2.5, -300.0, None, 40, 7.25]
IDS = [f"p{k}" for k in range(len(CELLS))]
TEXT = "id,x\n" + "".join(f"{name},{'' if cell is None else cell}\n" for name, cell in zip(IDS, CELLS, strict=True))
LINES = "".join(json.dumps({"id": name, "x": cell}) + "\n" for name, cell in zip(IDS, CELLS, strict=True))


def written_csv(path):
    path.write_text(TEXT)


def written_zst(path):
    content = LINES if "jsonl" in path.name else TEXT.replace(",", "\t") if "tsv" in path.name else TEXT
    path.write_bytes(pa.Codec("zstd").compress(content.encode(), asbytes=True))


def written_lines(path):
    path.write_bytes(gzip.compress(LINES.encode()) if path.suffix == ".gz" else LINES.encode())


def arrow():
    return pa.table({"id": IDS, "x": pa.array(CELLS, pa.float64())})


def written_folder(path):
    path.mkdir()
    for start in (0, 2):
        parquet.write_table(arrow().slice(start, 2 if start == 0 else None), path / f"{start}.parquet")


def written_workbook(path, rows=None):
    book = openpyxl.Workbook()
    sheet = book.active
    for row in [("id", "x"), *zip(IDS, CELLS, strict=True)] if rows is None else rows:
        sheet.append(row)
    book.save(path)


FORMATS = {
    "t.csv": written_csv,
    "t.csv.zst": written_zst,
    "t.tsv.zst": written_zst,
    "t.jsonl.zst": written_zst,
    "t.jsonl": written_lines,
    "t.ndjson": written_lines,
    "t.jsonl.gz": written_lines,
    "t.parquet": lambda path: parquet.write_table(arrow(), path),
    "folder": written_folder,
    "t.feather": lambda path: feather.write_feather(arrow(), path),
    "t.xlsx": written_workbook,
    "t.npz": lambda path: np.savez(path, id=np.array(IDS), x=np.array(CELLS, dtype=float)),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_door_reads_every_format(name, tmp_path):
    path = tmp_path / name
    FORMATS[name](path)
    expected = [NAN if cell is None else cell for cell in CELLS]
    table = open_table(path)
    found = Column(bounds=(0, 1), missing=0.5).numbers("x", cells_of(table, ["x"], ["x"])["x"])
    np.testing.assert_array_equal(found, expected)
    with open_column(str(path), "x") as source:
        blocks = [np.where(True if there is None else there, values, NAN) for values, there in source.blocks()]
    np.testing.assert_array_equal(np.concatenate(blocks), expected)
    ids, values = read_columns(path, ["id", "x"], own=True)
    assert ids == IDS
    assert [float(value or NAN) for value in values if value] == [cell for cell in CELLS if cell is not None]
    with open_column(str(path), "id", text=True) as source:
        answer = median(source, categories=IDS[:2], epsilon=100, random=keyed_source(1)).value
    assert answer in IDS[:2]


@pytest.mark.parametrize("name", FORMATS)
def test_a_column_that_is_not_there_is_named(name, tmp_path):
    FORMATS[name](tmp_path / name)
    with (
        pytest.raises(ArgumentError, match=r"no such column: 'y'; there are 'id', 'x'"),
        open_column(str(tmp_path / name), "y"),
    ):
        pass
    with pytest.raises(ContentError, match=r"no such column: 'y'; there are 'id', 'x'"):
        read_columns(tmp_path / name, ["id", "y"], own=True)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.xlsx"])
def test_what_has_no_limits_is_not_read_from_others(name, tmp_path):
    FORMATS[name](tmp_path / name)
    with pytest.raises(ArgumentError, match=r"is not read from others, as its decoder has no limits"):
        read_columns(tmp_path / name, ["id", "x"])


def test_a_submission_in_an_archive_is_read_under_limits(tmp_path):
    small = DecodingLimits(size=1 << 20, decoded=1 << 16, finite=False)
    for name in ("t.csv.zst", "t.jsonl.zst", "t.csv.gz"):
        plain = (b"id,x\n" if "csv" in name else b"") + b"\n" * (1 << 20)
        packed = gzip.compress(plain) if name.endswith("gz") else pa.Codec("zstd").compress(plain, asbytes=True)
        (tmp_path / name).write_bytes(packed)
        with pytest.raises(LimitError, match="unpacks to more than"):
            read_columns(tmp_path / name, ["id", "x"], limits=small)


@pytest.mark.parametrize("name", ["t.csv.zst", "t.jsonl.zst", "t.jsonl.gz", "t.parquet", "t.feather"])
def test_half_a_file_is_said_to_be_truncated(name, tmp_path):
    FORMATS[name](tmp_path / name)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) * 2 // 3])
    with pytest.raises(ContentError, match="truncated"):
        open_table(tmp_path / name).read(["x"])


def test_a_line_that_is_no_object_is_a_row_without_cells(tmp_path):
    path = tmp_path / "t.jsonl"
    lines = ['{"x": 1}', "", "[2]", "{", '{"x": {"y": 3}}', '{"x": "4"}', '{"x": true}', '{"y": 5}', '{"x": 1e999}']
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode() + b'\n{"x": "\xff"}\n{"x": ' + b"9" * 5000 + b"}")
    with open_column(str(path), "x") as source:
        blocks = list(source.blocks())
    found = np.concatenate([values if there is None else np.where(there, values, NAN) for values, there in blocks])
    np.testing.assert_array_equal(found, [1, NAN, NAN, NAN, 4, 1, NAN, np.inf, NAN, NAN])
    with pytest.raises(ContentError, match=r"must hold one JSON object in each line|not JSON"):
        read_outcomes(path, "x", ["x"])


def test_the_names_of_json_lines_do_not_depend_on_one_row(tmp_path):
    path = tmp_path / "t.jsonl"
    rows = ['{"b": 1, "a": 2}', '{"a": 3, "b": 4}', '{"a": 5}', '{"b": 6}']
    for without in range(len(rows)):
        path.write_text("\n".join(row for place, row in enumerate(rows) if place != without))
        assert open_table(path).columns == ("a", "b")


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


def test_a_matrix_is_refused_by_name_before_anything_is_paid(tmp_path):
    np.savez(tmp_path / "t.npz", m=np.zeros((3, 2)), n=np.float64(1), X=np.ones((3, 2)))
    for column in ("m", "n"):
        with (
            pytest.raises(ArgumentError, match=f"'{column}' of .* has not one dimension"),
            open_column(str(tmp_path / "t.npz"), column),
        ):
            pass
    assert open_table("t.npz", tmp_path).read(["x1"])["x1"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("write", [parquet.write_table, feather.write_feather])
def test_a_missing_key_changes_no_other_row_s_part(write, tmp_path):
    """Integers beside a missing cell became doubles, whose texts are others: every row was dealt again."""
    name = {parquet.write_table: "t.parquet", feather.write_feather: "t.feather"}[write]
    keys = [1, 2, 2**53 + 1, 4]
    facts = {"x": {"bounds": (0, 9), "missing": 0}, "group": {"categories": (1, 2**53, 2**53 + 1)}}
    data = Data.model_validate(
        {"source": name, "label": "y", "classes": ("a", "b"), "columns": facts, "row_key": "key"}
    )
    found = []
    for missing in ([], [None]):
        whole = pa.array([*keys, *missing], pa.int64())
        rows = len(whole)
        cells = {"key": whole, "group": whole, "x": whole, "y": (["a", "b"] * rows)[:rows]}
        write(pa.table(cells), tmp_path / name)
        found.append(load(data, open_table(name, tmp_path)))
    before, after = found
    assert list(after.digests)[: len(keys)] == list(before.digests)
    assert np.array_equal(after.features[: len(keys)], before.features)
    assert before.features[2].tolist()[-1] == 1


def test_a_folder_whose_files_have_other_types_and_columns(tmp_path):
    (tmp_path / "f").mkdir()
    parts = [{"x": [1, 2], "y": ["a", "b"]}, {"x": [3.5]}, {"y": ["c", None], "x": [Decimal("4.25"), None]}]
    for place, part in enumerate(parts):
        parquet.write_table(pa.table(part), tmp_path / "f" / f"{place}.parquet")
    cells = open_table("f", tmp_path).read(["x", "y"])
    np.testing.assert_array_equal(Column(bounds=(0, 9), missing=0).numbers("x", cells["x"]), [1, 2, 3.5, 4.25, NAN])
    assert [category(cell) for cell in cells["y"]] == ["a", "b", "", "c", ""]


@pytest.mark.parametrize("name", ["t.jsonl", "t.xlsx"])
def test_the_command_line_reads_it(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [("x", "y"), *((k % 50, "ab"[k % 2]) for k in range(400))]
    if name == "t.xlsx":
        written_workbook(tmp_path / name, rows)
    else:
        (tmp_path / name).write_text("".join(json.dumps({"x": x, "y": y}) + "\n" for x, y in rows[1:]))
    flags = ["--column", "x", "--q", "0.5", "--epsilon", "50", "--lower", "0", "--upper", "100", "--json"]
    (answer,) = json.loads(CliRunner().invoke(app, ["quantile", name, *flags]).stdout)["quantiles"]
    assert 20 <= answer["value"] <= 30
    drafted = CliRunner().invoke(app, ["init", name, "--label", "y"]).stdout
    assert f'source = "{name}"' in drafted
    data = Data(source=name, label="y", classes=("a", "b"), bounds=(0, 50))
    assert study_table(name, tmp_path, "data.source", data).columns == ("x", "y")


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("name", ["long.csv", "long.jsonl", "long.parquet", "long.feather", "long.csv.zst"])
def test_a_quantile_of_a_file_takes_the_memory_of_a_chunk(name, tmp_path):
    """The largest that a process holds while it reads 16 and 64 MiB of doubles."""
    peaks = []
    for rows in (1 << 21, 1 << 23):
        values = np.random.default_rng(1).integers(0, 10**6, rows)
        path = tmp_path / name
        if "parquet" in name:
            parquet.write_table(pa.table({"x": values * 1.0}), path, row_group_size=1 << 18)
        elif "feather" in name:
            feather.write_feather(pa.table({"x": values * 1.0}), path)
        else:
            lines = (
                "".join(f'{{"x": {v}}}\n' for v in values) if "json" in name else "x\n" + "\n".join(map(str, values))
            )
            packed = pa.Codec("zstd").compress(lines.encode(), asbytes=True) if "zst" in name else lines.encode()
            path.write_bytes(packed)
        code = (
            "from dpselect.tables import open_table; from pathlib import Path\n"
            f"n = sum(len(chunk['x']) for chunk in open_table(Path({str(path)!r})).chunks(['x'], ['x']))\n"
            "peak = Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0]; print(n, int(peak) >> 10)"
        )
        count, peak = map(
            int, subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split()
        )
        assert count == rows
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 24


def test_a_row_of_json_lines_adds_no_column_to_a_study(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"x": 1, "y": "a"}\n{"x": 2, "y": "b", "secret": 1}\n')
    facts = {"source": "t.jsonl", "label": "y", "classes": ("a", "b")}
    table = open_table("t.jsonl", tmp_path)
    with pytest.raises(StudyError, match=r"data.bounds: .*t.jsonl.* has no header"):
        plan_columns(Data.model_validate({**facts, "bounds": (0, 9)}), table)
    named = Data.model_validate({**facts, "columns": {"x": {"bounds": (0, 9)}}})
    assert list(plan_columns(named, table)) == ["x"]
