"""One column in every format: studies, quantiles and holdouts read the same cells."""

import gzip
import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from dpselect.cli.app import app
from dpselect.decoding.limits import DecodingLimits, LimitError
from dpselect.errors import ArgumentError, ContentError
from dpselect.holdout.files import read_columns
from dpselect.ordered import median, open_column
from dpselect.randomness import keyed_source
from dpselect.study.columns.column import Column
from dpselect.study.data import cells_of, load, study_table
from dpselect.study.schema_data import Data
from dpselect.tables.table import open_table
from tests.tables.every_format import (
    CELLS,
    FORMATS,
    IDS,
    feather,
    pa,
    parquet,
    written_workbook,
)

NAN = float("nan")


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


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("d.duckdb", r"write duckdb:///d\.duckdb and name a table \(data\.table\)"),
        ("d.SQLITE3", r"write sqlite:///d\.SQLITE3 and name a table"),
        ("d.xls", r"save it as \.xlsx or \.csv"),
        ("d.json", r"one object a line"),
        ("d.sav", r"export it as \.parquet or \.csv"),
        ("d.doc", r"must be a path ending in \.csv"),
    ],
)
def test_a_file_that_is_not_read_says_what_would_do(name, said, tmp_path):
    (tmp_path / name).touch()
    with pytest.raises(ArgumentError, match=said):
        open_table(name, tmp_path)
