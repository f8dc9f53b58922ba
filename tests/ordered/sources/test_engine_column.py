"""Columns in engines that count: each engine against the array, to the bit for the same key."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError, ContentError
from dpselect.ordered import Column, median, quantiles, quantiles_by_group
from dpselect.ordered.domains import Grid, WholeNumbers
from dpselect.ordered.order_statistics.intervals import SortedColumn
from dpselect.ordered.sources import counted_ranks
from dpselect.ordered.sources.engine_column import EngineColumn, bisected, engine_column, one_of, refuse_groups
from dpselect.ordered.sources.groups import columns_by_group, parse_names
from dpselect.randomness import keyed_source
from tests.ordered.sources.columns_cases import same_ranks

RNG = np.random.default_rng(1)
FLOATS = [*np.round(RNG.normal(size=300) * 5, 2).tolist(), *[2.5] * 60, math.inf, -math.inf, math.nan, None, None]
WHOLE = [*RNG.integers(-9, 40, size=200).tolist(), *[7] * 50, 2**53 + 1, -(2**63), 2**63 - 1, None]
TEXT = ["low", "high", "high", " mid", None, "other", "low"]


class InMemory(EngineColumn):
    """Counts a list, for the base class."""

    def __init__(self, cells, kind):
        self.kind, self.cells = kind, [cell for cell in cells if cell is not None and cell == cell]
        self.size = len(cells)

    def grouped(self, edges, ranges):
        def inside(x):
            return not ranges or any((low is None or x >= low) and (high is None or x < high) for low, high in ranges)

        found = {}
        for x in filter(inside, self.cells):
            slot = x if edges is None else bisected(edges, lambda edge: x < edge, lambda c, a, b: a if c else b)  # noqa: B023
            found[slot] = found.get(slot, 0) + 1
        return list(found.items())

    def head(self, rows):
        return self.cells[:rows]

    def rows(self):
        return self.size


def ibis_columns():
    ibis = pytest.importorskip("ibis")
    pytest.importorskip("duckdb")
    pa = pytest.importorskip("pyarrow")
    base = ibis.duckdb.connect()
    for name, cells, kind in (("f", FLOATS, pa.float64()), ("i", WHOLE, pa.int64()), ("t", TEXT, pa.string())):
        base.con.register("given", pa.table({"x": pa.array(cells, type=kind)}))
        base.con.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        yield base.table(name).x


def polars_columns():
    pl = pytest.importorskip("polars")
    for cells, kind in ((FLOATS, pl.Float64), (WHOLE, pl.Int64), (TEXT, pl.String)):
        yield pl.LazyFrame({"x": cells}, schema={"x": kind})


def dask_columns():
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    yield dd.from_pandas(pd.Series(FLOATS, dtype="float64"), npartitions=3)
    yield dd.from_pandas(pd.Series(WHOLE, dtype="Int64"), npartitions=2)
    yield dd.from_pandas(pd.Series(TEXT, dtype="string"), npartitions=2)


def spark_columns():
    sql = pytest.importorskip("pyspark.sql")
    session = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    for cells, kind in ((FLOATS, "double"), (WHOLE, "bigint"), (TEXT, "string")):
        yield session.createDataFrame([(cell,) for cell in cells], f"x {kind}")


COLUMNS = [
    pytest.param(lambda: iter([InMemory(FLOATS, "f"), InMemory(WHOLE, "i"), InMemory(TEXT, "text")]), id="list"),
    pytest.param(ibis_columns, id="ibis", marks=pytest.mark.full),
    pytest.param(polars_columns, id="polars", marks=pytest.mark.full),
    pytest.param(dask_columns, id="dask", marks=pytest.mark.full),
    pytest.param(spark_columns, id="spark", marks=pytest.mark.full),
]


def sorted_column(cells, domain, dtype):
    return SortedColumn(np.sort(np.array([x for x in cells if x is not None and x == x], dtype=dtype)), domain)


@pytest.mark.parametrize("columns", COLUMNS)
def test_an_engine_answers_as_the_array_does(columns, monkeypatch):
    floats, whole, text = columns()
    monkeypatch.setattr(counted_ranks, "_FEW", (40, 40))
    for values, cells, dtype, domain in (
        (floats, FLOATS, np.float64, Grid(-80, 80, Fraction(1, 8))),
        (whole, WHOLE, np.int64, WholeNumbers(-(2**63), 2**63 - 1)),
    ):
        source = Column(values, lower=0, upper=1)
        assert source._source.dtype == dtype
        ranked = source._source.ranked(domain)
        same_ranks(ranked, sorted_column(cells, domain, dtype))
        array = [math.nan if cell is None else cell for cell in cells] if dtype is np.float64 else None
        wanted = Column(array if array else np.array(cells[:-1], dtype=np.int64), lower=0, upper=9).fates()
        wanted[3] += array is None  # the missing one of the whole numbers
        assert Column(values, lower=0, upper=9).fates().tolist() == wanted.tolist()
    bounds = {"lower": -10.0, "upper": 10.0, "epsilon": 2.0, "qs": [0.25, 0.5, 0.9]}
    array = [math.nan if cell is None else cell for cell in FLOATS]
    assert quantiles(floats, random=keyed_source(3), **bounds).value == (
        quantiles(array, random=keyed_source(3), **bounds).value
    )
    named = Column(text, categories=["low", "mid", "high"])
    window = named.ranked().window(1, 9)
    assert np.repeat(window.codes, window.counts).tolist() == [0, 0, 1, 2, 2]
    assert named.fates().tolist() == [5, 0, 0, 1, 1]
    with pytest.raises(TypeError, match="categories"):
        median(text, lower=0, upper=1, epsilon=1.0)


def test_bounds_beyond_what_an_engine_binds():
    column = InMemory([-(2**63), 0, 5, 2**63 - 1, None], "i")
    assert column.fates(-(2**70), 2**70).tolist() == [4, 0, 0, 1, 0]
    assert column.fates(2**70, 2**71).tolist() == [0, 4, 0, 1, 0]
    assert column.fates(0, 5).tolist() == [2, 1, 1, 1, 0]


def test_what_an_engine_says_is_not_shown():
    class Failing(InMemory):
        def grouped(self, edges, ranges):
            raise RuntimeError("s3cr3t")

    with pytest.raises(ContentError) as caught:
        Failing([1.0], "f").counts([0.5])
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__context__ is None


def test_one_column_is_asked_for():
    assert one_of(["x"]) == "x"
    with pytest.raises(ArgumentError, match="one column, got 2"):
        one_of(["x", "y"])


# groups

REGIONS = ["north", " north ", "South", "south", "é", "e\u0301", "1", "1.0", "TRUE", "o'hara", "", None]
SPLIT = [
    (float(value), REGIONS[place], int(code))
    for value, place, code in zip(
        RNG.integers(0, 1000, 900), RNG.integers(0, len(REGIONS), 900), RNG.integers(0, 4, 900), strict=True
    )
]
SPLIT[:3] = [(math.nan, "north", 0), (None, "north", 1), (math.inf, "south", 2)]


def ibis_frame():
    ibis = pytest.importorskip("ibis")
    pytest.importorskip("duckdb")
    pa = pytest.importorskip("pyarrow")
    base = ibis.duckdb.connect()
    base.con.register("given", pa.table(dict(zip("xrc", zip(*SPLIT, strict=True), strict=True))))
    return base.table("given")


def polars_frame():
    pl = pytest.importorskip("polars")
    return pl.LazyFrame(dict(zip("xrc", map(list, zip(*SPLIT, strict=True)), strict=True)))


@pytest.mark.parametrize("frame", [ibis_frame, polars_frame])
def test_groups_of_a_frame_are_those_of_the_array(frame, monkeypatch):
    monkeypatch.setattr(counted_ranks, "_FEW", (10, 10))
    table, (values, regions, codes) = frame(), zip(*SPLIT, strict=True)
    values = [math.nan if value is None else value for value in values]
    terms = {"qs": [0.1, 0.5, 0.9], "lower": 0.0, "upper": 1000.0, "granularity": 1, "epsilon": 3.0}
    for by, cells, names in (("r", regions, ["north", "south", "é", 1, "o'hara", "nobody"]), ("c", codes, [3, "0", 7])):
        expected = quantiles_by_group(values, list(cells), names=names, random=keyed_source(8), **terms)
        found = quantiles_by_group(table.select("x", by), by, names=names, random=keyed_source(8), **terms)
        assert found.value == expected.value
        named = parse_names(names)
        parts = columns_by_group(Column(engine_column(table.select("x", by), by), lower=100, upper=700), None, named)
        arrays = columns_by_group(Column(values, lower=100, upper=700), list(cells), named)
        assert [part.fates().tolist() for part in parts] == [part.fates().tolist() for part in arrays]


@pytest.mark.parametrize("frame", [ibis_frame, polars_frame])
def test_frames_that_are_not_split_say_why(frame):
    table, terms = frame(), {"names": ["north"], "qs": [0.5], "lower": 0, "upper": 9, "epsilon": 1.0}
    with pytest.raises(ArgumentError, match=r"no column 'nowhere'\. There are 'x', 'r'"):
        quantiles_by_group(table.select("x", "r"), "nowhere", **terms)
    with pytest.raises(ArgumentError, match="one column beside 'r', got 2"):
        quantiles_by_group(table, "r", **terms)
    with pytest.raises(ArgumentError, match="'x' holds neither text nor integers"):
        quantiles_by_group(table.select("x", "c"), "x", **terms)
    with pytest.raises(ArgumentError, match="of which groups names one"):
        quantiles_by_group(table.select("x"), ["north"], **terms)


def test_a_package_without_groups_refuses_them_by_name():
    refuse_groups(None, "Spark")
    with pytest.raises(ArgumentError, match="a frame of Spark is not split"):
        refuse_groups("region", "Spark")
