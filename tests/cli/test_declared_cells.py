"""Bounds and answers of a column, as its cells are declared."""

from __future__ import annotations

import json

import pytest

from dpselect.errors import ArgumentError, ContentError
from tests.cli.quantile_cases import run


@pytest.mark.parametrize("form", [("--decimal", ","), ("--thousands", ".", "--decimal", ",")])
def test_a_bound_that_looks_grouped_is_refused_beside_grouped_cells(form, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x;y\n" + "1994,5;a\n" * 2000)  # of few rows the noisy counts withhold the answer now and then
    asked = (path, "--column", "x", "--q", "0.5", "--epsilon", "1", "--lower", "0", "--delimiter", ";")
    with pytest.raises(ArgumentError, match=r"--upper: '20\.000' may be 20000 or a decimal: write 20000"):
        run(*asked, "--upper", "20.000", *form)
    assert "q 0.5" in run(*asked, "--upper", "20000.5", *form)


def test_dates_of_a_csv_file_in_an_encoding_of_its_own(tmp_path):
    path = tmp_path / "visits.csv"
    days = [f"2024-{1 + day // 28:02}-{1 + day % 28:02}" for day in range(300)]
    rows = [*days, *["2024-06-01T01:00:00+02:00"] * 2, "", "n/a", "0001-01-01T00:00:00+14:00", "yesterday"]
    path.write_bytes("\n".join(["Größe;Tag", *(f"3,5;{day}" for day in rows)]).encode("latin-1"))
    asked = (path, "--column", "Tag", "--q", "0.5", "--epsilon", "50", "--lower", "2024-01-01", "--upper", "2025-01-01")
    written = ("--delimiter", ";", "--encoding", "latin-1")
    for granularity in ((), ("--granularity", "1 D")):
        shown = json.loads(run(*asked, *written, "--kind", "date", *granularity, "--json"))
        assert "2024-04" < shown["quantiles"][0]["value"] < "2024-09"
    with pytest.raises(ArgumentError, match="--lower must be a number"):
        run(*asked, *written, "--kind", "number")
    with pytest.raises(ContentError, match=r"dates, .* need their kind"):
        run(*asked, *written)
    with pytest.raises(ContentError, match=r"not text in UTF-8.* declare its own by form.encoding"):
        run(*asked)
    with pytest.raises(ArgumentError, match="encoding: unknown encoding 'latin-one'; such as utf-8"):
        run(*asked, "--encoding", "latin-one")
    with pytest.raises(ArgumentError, match=r"no such column: 'Day'; there are 'Größe', 'Tag'"):
        run(path, "--column", "Day", *asked[3:], *written)


@pytest.mark.full
def test_time_stamps_of_a_database_come_back_in_utc_or_in_the_zone_that_is_declared(tmp_path, monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("t.duckdb") as connection:
        zoned = "to_timestamp(1719828000) AS zoned, TIMESTAMP '2024-07-01 10:00:00' AS plain"
        connection.execute(f"CREATE TABLE t AS SELECT {zoned} FROM range(3000)")
    bounds = ["--lower", "2024-01-01", "--upper", "2025-01-01", "--q", "0.5", "--epsilon", "50"]
    berlin = ("--kind", "timestamp", "--time-zone", "Europe/Berlin")
    asked = {("zoned", ()): "2024-07-01T10:00:00+00:00", ("zoned", berlin): "2024-07-01T12:00:00+02:00"}
    asked[("plain", ())] = "2024-07-01T10:00:00.000000"
    for (column, flags), value in asked.items():
        read = ("duckdb:///t.duckdb", "--table", "t", "--column", column, "--no-count", "--json", *flags, *bounds)
        assert json.loads(run(*read, "--granularity", "1 h"))["quantiles"][0]["value"] == value
    with pytest.raises(ArgumentError, match="kind, time_zone: only for a column without a type"):
        run("duckdb:///t.duckdb", "--table", "t", "--column", "plain", "--no-count", *berlin, *bounds)
