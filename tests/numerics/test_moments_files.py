"""Moments in files and in studies: time stamps of 96 bits, CSV, dates and durations."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from dpselect.cli.app import app
from dpselect.ordered import open_column
from dpselect.tables import SOURCES, Declared
from dpselect.tables.table import Origin
from tests.numerics.moments_cases import LAST, NAT, UNITS, begin, of_arrow, spark_file, stamps
from tests.ordered.sources import column_laws as laws


def test_time_stamps_of_96_bits(tmp_path):
    days = [10_957] * 100 + [2_932_896] * 300  # 2000-01-01 and 9999-12-31
    path = spark_file(tmp_path / "spark.parquet", days)
    asked = ["quantile", str(path), "--column", "x", "--q", "0.5", "--epsilon", "9", "--json"]
    shown = CliRunner().invoke(app, [*asked, "--lower", "1900-01-01", "--upper", "2100-01-01"])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["quantiles"][0]["value"].startswith("2100-01-01T00:00:00")
    with open_column(str(path), "x") as column:
        domain, found, _ = laws.ranks(column, lower="1900-01-01", upper="2100-01-01")
    assert (domain.unit, found) == ("us", {domain.size - 1: 300, 36_524 * 86_400 * 10**6: 100})


def test_96_bits_hold_more_than_microseconds(tmp_path):
    """Julian days of 32 bits reach the year 5,000,000; the bytes of the days are found in the file and replaced."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    column = pa.array([0, 86_400 * 10**6, None, 10**6], pa.int64()).view(pa.timestamp("us"))
    path = tmp_path / "far.parquet"
    plain = {"compression": "NONE", "use_dictionary": False, "write_statistics": False}
    pyarrow.parquet.write_table(pa.table({"x": column}), path, use_deprecated_int96_timestamps=True, **plain)
    written, day = path.read_bytes(), (2_440_589).to_bytes(4, "little")  # 1970-01-02
    assert written.count(day) == 1
    for julian, code in (((1 << 31) - 1, -1), (2_440_588 + 2_932_896, -1), (0, 0), (2_440_589, 86_400 * 10**6)):
        path.write_bytes(written.replace(day, julian.to_bytes(4, "little")))
        with open_column(str(path), "x") as source:
            domain, found, _ = laws.ranks(source, lower="1970-01-01", upper="2000-01-01")
        wanted = {0: 1, 10**6: 1}
        wanted[code % domain.size] = wanted.get(code % domain.size, 0) + 1
        assert found == wanted, julian


def test_files_of_a_folder_in_several_units(tmp_path):
    """Arrow's own conversion to the first file's type raises for a nanosecond that microseconds do not hold."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    for name, unit in (("a", "us"), ("b", "ns"), ("c", "ms")):
        table = pa.table({"x": of_arrow([1_001, NAT, 5 * 10**6], unit)})
        pyarrow.parquet.write_table(table, tmp_path / f"{name}.parquet")
    spark_file(tmp_path / "d.parquet", [20_000, None])
    pyarrow.parquet.write_table(pa.table({"other": [1]}), tmp_path / "e.parquet")
    pyarrow.parquet.write_table(pa.table({"x": [1.5]}), tmp_path / "f.parquet")
    with open_column(str(tmp_path), "x") as source:
        _, found, _ = laws.ranks(source, lower="1970-01-01", upper="1970-01-03")
    end = 2 * 86_400 * 10**6
    assert found == {1_001: 1, 5 * 10**6: 1, 1: 1, 5_000: 1, 1_001_000: 1, 5 * 10**9: 1, end: 1}


def test_moments_of_a_csv_file(tmp_path):
    laws.csv_file(tmp_path / "x.csv", ["9999-12-31T23:00-14:00", "0001-01-01T00:00+14:00", "2000-01-01", "x", ""])
    with open_column(str(tmp_path / "x.csv"), "x", dates=True) as source:
        domain, found, _ = laws.ranks(source, lower="1500-01-01", upper="2100-01-01")
    assert sorted(found) == [0, 15_778_454_400 * 10**6, domain.size - 1]


def test_dates_of_a_study():
    read = Declared(kind="date").read
    for unit in UNITS[2:10]:
        assert read(stamps([NAT, 0], unit)).tolist()[1] == 0.0
    far = {unit: stamps([LAST], unit) for unit in UNITS[:10]}
    for unit, cells in far.items():
        exact = float(begin(LAST, unit))
        assert read(cells)[0] == pytest.approx(exact, rel=1e-15)
        column = np.empty(1, dtype=object)
        column[0] = cells[0]
        assert read(column)[0] == read(cells)[0]


def test_durations_of_a_study():
    read = Declared(kind="duration").read
    for unit in UNITS[2:]:
        ticks = [LAST, -LAST, 1, NAT]
        cells = np.array(ticks, dtype=np.int64).view(f"m8[{unit}]")
        found = read(cells)
        assert found[:3].tolist() == pytest.approx([float(begin(tick, unit)) for tick in ticks[:3]], rel=1e-15)
        assert np.isnan(found[3])
        column = np.empty(1, dtype=object)
        column[0] = cells[0]
        assert read(column)[0] == found[0]
    with pytest.raises(TypeError, match="no fixed length"):
        read(np.array([1], dtype="m8[M]"))
    column = np.array([np.timedelta64(1, "Y"), None], dtype=object)
    assert np.isnan(read(column)).all()


def test_a_study_reads_time_stamps_of_96_bits(tmp_path):
    origin = Origin(str(spark_file(tmp_path / "x.parquet", [10_957, 2_932_896, None])), tmp_path, "data")
    found = Declared(kind="date").read(SOURCES[".parquet"](origin).read(["x"])["x"])
    assert found[:2].tolist() == [946_684_800.0, 253_402_214_400.0]
    assert np.isnan(found[2])
