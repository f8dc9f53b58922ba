"""What once left that must not, a test a finding: each docstring says in one sentence what went wrong."""

from __future__ import annotations

import asyncio
import math
import os
import re
import sqlite3
import warnings
from decimal import Decimal

import numpy as np
import pytest

from dpselect.learners import GatedRelease
from dpselect.mechanisms import ScoreChunks, SparseVector, exponential_mechanism
from dpselect.ordered import interior_point, median, open_column, quantile
from dpselect.repetitions import Fixed
from dpselect.selection import (
    SelectIncreasing,
    select_best,
)
from tests.journeys.reviewed_cases import SECRET, STEP, named, text_of


def table_of(path, kind, cells):
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE t (x {kind})")
        connection.executemany("INSERT INTO t VALUES (?)", ([cell] for cell in cells))
    connection.close()
    return f"sqlite:///{path}"


def test_bounds_beyond_what_sqlite_holds(tmp_path):
    """Integers with an upper bound above 2**63 ended in a traceback of the driver."""
    url = table_of(tmp_path / "x.db", "INTEGER", [*range(100), 2**63 - 1, -(2**63)])
    with open_column(url, "x", table="t") as column:
        assert 0 <= quantile(column, q=0.5, lower=0, upper=2**70, epsilon=1.0).value <= 2**70


def test_a_date_beyond_the_domain_of_moments_is_a_row_like_others():
    """A date that NumPy's moments do not hold made DuckDB raise, after the charge."""
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT DATE '2020-01-01' + i::INTEGER AS x FROM range(50) r(i)")
        connection.execute("INSERT INTO t VALUES (DATE '5877642-06-25 (BC)'), ('infinity'), ('-infinity')")
        bounds = {"lower": np.datetime64("2019-01-01"), "upper": np.datetime64("2021-01-01")}
        assert median(connection.table("t"), epsilon=1.0, **bounds).value >= bounds["lower"]


def test_a_number_beyond_doubles_in_postgresql_is_a_row_like_others():
    """A `numeric` that no double holds overflowed a cast, and the traceback printed the digits of its row."""
    server = os.environ.get("DPSELECT_TEST_POSTGRES")
    if server is None:
        pytest.skip("DPSELECT_TEST_POSTGRES names no server")
    import sqlalchemy as sa

    engine = sa.create_engine(server)
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE IF EXISTS reviewed"))
        connection.execute(sa.text("CREATE TABLE reviewed AS SELECT i::numeric AS x FROM generate_series(0, 99) i"))
        connection.execute(sa.text("INSERT INTO reviewed VALUES (1e400::numeric)"))
    with open_column(server, "x", table="reviewed") as column:
        assert 0.0 <= quantile(column, q=0.5, lower=0.0, upper=99.0, epsilon=1.0).value <= 99.0
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE reviewed"))
    engine.dispose()


def test_a_file_in_another_encoding_shows_no_byte(tmp_path):
    """A file in Latin-1 gave a `UnicodeDecodeError` with a byte of a private cell and its place."""
    (tmp_path / "latin.csv").write_bytes(b"other,x\n" + b"1,5\n" * 50 + b"1,caf\xe9\n")
    with open_column(str(tmp_path / "latin.csv"), "x") as column:
        try:
            said = str(median(column, lower=0, upper=9, granularity=1, epsilon=1.0).value)
        except Exception as error:
            said = text_of(error)
    assert not re.search(r"xe9|position", said)


def test_a_file_in_utf_16_is_refused_by_its_header(tmp_path):
    """A file in UTF-16 gave a `UnicodeDecodeError` where a study's data are opened."""
    (tmp_path / "wide.csv").write_bytes("other,x\n1,2\n".encode("utf-16"))
    with pytest.raises(ValueError, match="UTF-8") as caught:
        named("open_table")("wide.csv", tmp_path)
    assert not isinstance(caught.value, UnicodeError)


@pytest.mark.parametrize("kind", [RuntimeError, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_nothing_of_a_losing_run_leaves(kind, capfd):
    """Warnings, standard output and exceptions that are no `Exception` left `select_best` with what they said."""

    def run(random):
        print(SECRET)
        warnings.warn(SECRET, stacklevel=1)
        raise kind(SECRET)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert select_best(run, repetitions=Fixed(count=2), guarantee=STEP).value is None
        SelectIncreasing(levels=[STEP], repetitions=Fixed(count=2))([run], threshold=1.0)
    printed = capfd.readouterr()
    assert SECRET not in printed.out + printed.err
    assert not [one for one in told if SECRET in str(one.message)]


@pytest.mark.parametrize("odd", [2**64, 10**400, None, Decimal("NaN"), math.nan])
def test_one_odd_score_does_not_raise(odd):
    """A list of scores with one integer of 2**64 or one None among them raised, and so told of a row."""
    for monotonic in (False, True):
        assert exponential_mechanism([1, 2, odd], sensitivity=1, epsilon=1, monotonic=monotonic) in (0, 1, 2)
    assert 0 <= interior_point([1, 2, 3, odd], domain_size=8, epsilon=1).value < 8


def test_chunks_may_differ_in_type():
    """A chunk of integers had doubles where one cell was missing, which was refused, and told of that cell."""
    chunks = [np.arange(50), np.array([1.0, math.nan]), np.arange(50)]
    assert 0 <= median(lambda: iter(chunks), lower=0, upper=49, epsilon=1.0).value <= 49
    scores = ScoreChunks(lambda: iter([np.array([1]), np.array([None, 2], dtype=object)]))
    assert exponential_mechanism(scores, sensitivity=1, epsilon=1) in (0, 1, 2)


def test_a_cell_of_any_length_is_one_row(tmp_path):
    """A cell of 140,000 characters raised an error of Python's reader of CSV."""
    (tmp_path / "long.csv").write_bytes(b"other,x\n" + b"1,5\n" * 50 + b"1," + b"9" * 140_000 + b"\n")
    with open_column(str(tmp_path / "long.csv"), "x") as column:
        assert 0 <= median(column, lower=0, upper=9, granularity=1, epsilon=1.0).value <= 9


def test_an_error_of_the_test_of_a_model_stays():
    """What the error function of a gated release raised left with the text that it had."""

    def error(model):
        raise ValueError(SECRET)

    release = GatedRelease(training=STEP, test_epsilon=0.1, test_shift=1e-3, max_error=0.1)(
        lambda random: "model", error
    )
    assert release.value is None


def test_batches_clip_as_single_queries_do():
    """`above_many` raised for huge integers, which `above` cuts off."""
    make = lambda: SparseVector(epsilon_threshold=9.0, epsilon_queries=9.0, max_positives=9)  # noqa: E731
    assert make().above(10**400, 0.0)
    assert make().above_many([10**400, -(10**400)], 0.0)[0]
