"""Moments and ordered text from every kind of container, file and engine; types that have no ranks are refused."""

from __future__ import annotations

import datetime
import os

import numpy as np
import pytest

from dpselect.ordered import median, open_column, quantile, quantiles
from dpselect.randomness import keyed_source
from tests.ordered.sources.kinds_cases import BOUNDS, MIDDLE, near_the_middle

DAYS = np.datetime64("2024-01-01", "D") + np.arange(300)
MOMENTS = np.repeat(DAYS.astype("datetime64[us]"), 5)
GRADES = ["low"] * 10 + ["middle"] * 300 + ["high"] * 20 + ["unheard of"] * 900
ORDER = ["low", "middle", "high"]
POSTGRES = os.environ.get("DPSELECT_TEST_POSTGRES")


def test_moments_in_memory():
    near_the_middle(MOMENTS)
    near_the_middle(np.append(DAYS, np.datetime64("NaT")))
    median(iter(np.array_split(MOMENTS, 3)), **BOUNDS)
    near_the_middle(lambda: iter(np.array_split(MOMENTS, 3)))


def test_moments_of_pandas():
    pd = pytest.importorskip("pandas")
    series = pd.Series(MOMENTS)
    near_the_middle(series)
    near_the_middle(pd.concat([series, pd.Series([pd.NaT] * 50)]))
    near_the_middle(series.dt.tz_localize("UTC"))
    # midnight in Tokyo is 15 o'clock of the day before in UTC
    found = median(series.dt.tz_localize("Asia/Tokyo"), random=keyed_source(1), **BOUNDS).value
    assert abs(found - MIDDLE) < np.timedelta64(5, "D")


def test_moments_of_arrow_and_polars():
    pa = pytest.importorskip("pyarrow")
    pl = pytest.importorskip("polars")
    for kind in (pa.timestamp("us"), pa.timestamp("us", tz="UTC"), pa.timestamp("ns"), pa.date32()):
        near_the_middle(pa.array(MOMENTS).cast(kind))
    near_the_middle(pa.chunked_array([pa.array(MOMENTS[:700]), pa.array(MOMENTS[700:])]))
    near_the_middle(pl.Series(MOMENTS))
    near_the_middle(pl.Series(MOMENTS).cast(pl.Date))


def test_text_in_memory():
    pa, pl, pd = (pytest.importorskip(name) for name in ("pyarrow", "polars", "pandas"))
    for values in (
        GRADES,
        np.array(GRADES),
        pa.array([*GRADES, None]),
        pa.array(GRADES).dictionary_encode(),
        pl.Series(GRADES),
        pl.Series(GRADES, dtype=pl.Categorical),
        pd.Series(GRADES),
        pd.Series([*GRADES, None], dtype="string"),
        pd.Series(GRADES, dtype=pd.CategoricalDtype([*ORDER, "unheard of"], ordered=True)),
    ):
        assert median(values, categories=ORDER, epsilon=1.0, random=keyed_source(1)).value == "middle"
        found = quantiles(values, qs=[0.01, 0.5, 0.99], categories=ORDER, epsilon=6.0, random=keyed_source(1)).value
        assert found == ["low", "middle", "high"]


def make_table(execute, moment, text):
    execute(f"CREATE TABLE rows_ (moment {moment}, grade {text})")
    for start in range(0, len(MOMENTS), 500):
        part = zip(MOMENTS[start : start + 500].tolist(), (GRADES * 2)[start : start + 500], strict=True)
        execute("INSERT INTO rows_ VALUES " + ", ".join(f"('{m:%Y-%m-%d %H:%M:%S}', '{grade}')" for m, grade in part))
    execute("INSERT INTO rows_ VALUES (NULL, NULL)")


def by_engine(url):
    with open_column(url, "moment", table="rows_") as source:
        assert source.dtype.kind == "M"
        near_the_middle(source)
    with open_column(url, "grade", table="rows_") as source:
        found = median(source, categories=ORDER, epsilon=1.0, random=keyed_source(1))
        assert found.value == "middle"


def test_sqlite(tmp_path):
    import sqlite3

    with sqlite3.connect(tmp_path / "rows.db") as connection:
        make_table(connection.execute, "DATETIME", "TEXT")
        connection.execute("INSERT INTO rows_ VALUES ('no moment at all', 'low')")
    by_engine(f"sqlite:///{tmp_path / 'rows.db'}")


@pytest.mark.full
def test_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        make_table(connection.execute, "TIMESTAMP", "VARCHAR")
        connection.execute("INSERT INTO rows_ VALUES ('infinity', 'low'), ('-infinity', 'it''s')")
        relation = connection.table("rows_").project("moment")
        near_the_middle(relation)
        near_the_middle(connection.sql("SELECT CAST(moment AS DATE) AS day FROM rows_"))
        near_the_middle(connection.sql('SELECT moment AS "a.b" FROM rows_'))
        grades = connection.table("rows_").project("grade")
        assert median(grades, categories=[*ORDER, "it's"], epsilon=1.0, random=keyed_source(1)).value == "middle"
        exact = connection.sql("SELECT CAST(range AS DECIMAL(18, 3)) AS x FROM range(1001)")
        assert abs(median(exact, lower=0.0, upper=1000.0, epsilon=4.0, random=keyed_source(1)).value - 500.0) < 10.0
    by_engine(f"duckdb:///{tmp_path / 'rows.duckdb'}")


@pytest.mark.skipif(POSTGRES is None, reason="DPSELECT_TEST_POSTGRES names no server")
def test_postgresql():
    import sqlalchemy as sa

    engine = sa.create_engine(POSTGRES)
    for kind in ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "DATE"):
        with engine.begin() as connection:
            connection.execute(sa.text("DROP TABLE IF EXISTS rows_"))
            make_table(lambda statement: connection.execute(sa.text(statement)), kind, "TEXT")
            connection.execute(sa.text("INSERT INTO rows_ VALUES ('infinity', 'low')"))
        by_engine(POSTGRES)
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE rows_"))
        connection.execute(sa.text("CREATE TABLE amounts (x NUMERIC, y DOUBLE PRECISION, z BIGINT)"))
        connection.execute(sa.text("INSERT INTO amounts SELECT k, k, k FROM generate_series(0, 1000) AS k"))
        connection.execute(sa.text("INSERT INTO amounts VALUES (NULL, 'NaN', NULL), ('NaN', 'infinity', NULL)"))
    for column in "xyz":
        with open_column(POSTGRES, column, table="amounts") as source:
            found = quantile(source, q=0.5, lower=0, upper=2000, epsilon=4.0, random=keyed_source(1)).value
            assert abs(found - 500) < 10
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE amounts"))


@pytest.mark.parametrize(
    "values",
    [
        np.array(["secret"], dtype=object),
        np.array([datetime.date(2024, 1, 1)], dtype=object),
        np.array([1 + 2j]),
        np.array(["secret"]),
    ],
    ids=["text objects", "dates", "complex", "text"],
)
def test_types_without_ranks_are_refused_without_a_value(values):
    with pytest.raises(TypeError) as caught:
        median(values, lower=0, upper=9, epsilon=1.0)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
