"""Rows split by their groups: in memory and in files, of numbers and of text, one part for each row at most."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered import Column, open_column
from dpselect.ordered.sources.groups import columns_by_group, parse_names

REGIONS = ["north", "south", " north ", "", None, "elsewhere"]
NAMED = parse_names(["north", "south"])
BOUNDS = {"lower": 0, "upper": 10**6}


def rows_in(column):
    return [float(v) for chunk in column.source.chunks() for v in chunk if v == v]


def expected(values, regions, name):
    return [float(v) for v, r in zip(values, regions, strict=True) if (r or "").strip() == name]


def cells(count):
    rng = np.random.default_rng(count)
    return np.arange(float(count)), [REGIONS[i] for i in rng.integers(0, len(REGIONS), count)]


@pytest.mark.parametrize("count", [0, 1, 7, 70_000])
def test_rows_in_memory_keep_their_group_in_every_chunk(count):
    values, regions = cells(count)
    parts = columns_by_group(Column(values, **BOUNDS), regions, NAMED)
    assert [rows_in(part) for part in parts] == [expected(values, regions, name) for name in ("north", "south")]
    assert [rows_in(part) for part in parts] == [rows_in(part) for part in parts]  # each reading is the same


def test_no_row_is_in_two_groups_and_a_row_decides_only_its_own():
    kinds = [1, 1.0, "1", True, "2", 2, None, "x", float("nan"), b"1"]
    named = parse_names([1, "2"])

    def rows_by_group(chosen):
        parts = columns_by_group(Column(np.arange(float(len(chosen))), **BOUNDS), chosen, named)
        return [set(rows_in(part)) for part in parts]

    alone = [[bool(rows) for rows in rows_by_group([cell])] for cell in kinds]
    for chosen in itertools.product(range(len(kinds)), repeat=3):
        found = rows_by_group([kinds[kind] for kind in chosen])
        assert not found[0] & found[1]
        assert all([row in part for part in found] == alone[kind] for row, kind in enumerate(chosen))


def test_arrow_pandas_and_polars_are_split_alike():
    pa, pd, pl = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
    values, regions = cells(200)
    wanted = [expected(values, regions, name) for name in ("north", "south")]
    chunked = pa.chunked_array([pa.array(values[:70]), pa.array(values[70:])])
    for column, groups in [
        (chunked, pa.array(regions).dictionary_encode()),
        (pd.Series(values), pd.Series(regions, dtype="category")),
        (pl.Series(values), pl.Series(regions)),
    ]:
        assert [rows_in(part) for part in columns_by_group(Column(column, **BOUNDS), groups, NAMED)] == wanted


def written(path, values, regions):
    lines = [f"{value:g},{'' if region is None else region}" for value, region in zip(values, regions, strict=True)]
    path.write_text("\n".join(["income,region", *lines, "unread,north", ",south"]) + "\n")
    return str(path)


def test_the_rows_of_a_csv_file_are_split_with_their_lost_cells(tmp_path):
    values, regions = cells(3000)
    path = written(tmp_path / "people.csv", values, regions)
    with open_column(path, "income", by="region", look=True) as source:
        parts = columns_by_group(Column(source, **BOUNDS), None, NAMED)
        assert [rows_in(part) for part in parts] == [expected(values, regions, name) for name in ("north", "south")]
        fates = [part.fates().tolist() for part in parts]
    counts = Counter((region or "").strip() for region in regions)
    assert fates == [[counts["north"], 0, 0, 0, 1], [counts["south"], 0, 0, 1, 0]]


def test_the_rows_of_parquet_and_json_lines_are_split(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    values, regions = cells(500)
    frame = pd.DataFrame({"income": values, "region": pd.Series(regions, dtype="category")})
    frame.to_parquet(tmp_path / "people.parquet")
    frame.to_json(tmp_path / "people.jsonl", orient="records", lines=True)
    for name in ("people.parquet", "people.jsonl"):
        with open_column(str(tmp_path / name), "income", by="region") as source:
            parts = columns_by_group(Column(source, **BOUNDS), None, NAMED)
            assert [rows_in(part) for part in parts] == [expected(values, regions, g) for g in ("north", "south")]
        with open_column(str(tmp_path / name), "region", by="income", text=True) as source:
            (part,) = columns_by_group(Column(source, categories=["north", "south"]), None, parse_names([0]))
            assert part.fates().sum() == 1
    pd.DataFrame({"income": [1.0], "when": pd.to_datetime(["2024-01-01"])}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(ArgumentError, match="by: column 'when'"):
        open_column(str(tmp_path / "x.parquet"), "income", by="when")


def test_wrong_requests_name_their_argument(tmp_path):
    path = written(tmp_path / "people.csv", *cells(5))
    for by, message in (("nowhere", "by: "), ("income", "is the column of the values")):
        with pytest.raises(ArgumentError, match=message):
            open_column(path, "income", by=by)
    with open_column(path, "income", by="region") as source, pytest.raises(ArgumentError, match="give no groups"):
        columns_by_group(Column(source, **BOUNDS), ["north"] * 5, NAMED)
    with open_column(path, "income") as source, pytest.raises(ArgumentError, match="groups: need values in memory"):
        columns_by_group(Column(source, **BOUNDS), ["north"] * 5, NAMED)
