"""Rows of persons in databases: at most a declared number of each, the same in every statement and for every order."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered import Column, open_column, quantiles
from dpselect.ordered.sources.sql_persons import SqlPersons, md5
from dpselect.randomness import keyed_source
from tests.ordered.sources.test_sql_groups import TABLES

BOUNDS = {"lower": 0.0, "upper": 1000.0, "granularity": 1}
RNG = np.random.default_rng(7)
NAMES = ["north", " north ", "South", "é", "1", "o'hara:p0 {x}", '"q"', "", "  ", None]
ROWS = [(float(RNG.integers(0, 9)), NAMES[RNG.integers(0, len(NAMES))], int(RNG.integers(0, 60))) for _ in range(300)]


def counts(source, most):
    """How many rows there are with each value."""
    column = Column(source, rows_per_person=most, **BOUNDS)
    ranked = column.ranked()
    found = ranked.window(1, ranked.total)
    return Counter(dict(zip(map(int, found.codes), map(int, found.counts), strict=True)))


@pytest.mark.parametrize("table", TABLES)
def test_at_most_so_many_rows_of_each_person_take_part(table, tmp_path):
    with table(tmp_path, ROWS) as url:
        for most in (1, 3, 10_000):
            persons = Counter((name or "").strip() for _, name, _ in ROWS)
            wanted = sum(min(most, rows) for name, rows in persons.items() if name)
            with open_column(url, "x", table="the rows", person="re:gion") as source:
                assert sum(counts(source, most).values()) == wanted
            with open_column(url, "x", table="the rows", person="code") as source:
                codes = Counter(code for *_, code in ROWS)
                assert sum(counts(source, most).values()) == sum(min(most, rows) for rows in codes.values())


@pytest.mark.theorem("docs/theory/persons.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.parametrize("table", TABLES)
def test_without_a_person_at_most_so_many_of_its_rows_are_gone_and_no_others(table, tmp_path):
    most = 2
    (tmp_path / "less").mkdir()
    for code in (3, 17):
        own = Counter(int(x) for x, _, other in ROWS if other == code)
        (tmp_path / f"{code}").mkdir()
        (tmp_path / f"{code}less").mkdir()
        with table(tmp_path / f"{code}", ROWS) as url, open_column(url, "x", table="the rows", person="code") as source:
            whole = counts(source, most)
        less_rows = [row for row in ROWS if row[2] != code][::-1]  # and in another order
        with (
            table(tmp_path / f"{code}less", less_rows) as url,
            open_column(url, "x", table="the rows", person="code") as source,
        ):
            less = counts(source, most)
        assert not less - whole
        assert sum((whole - less).values()) == min(most, own.total())
        assert not (whole - less) - own


@pytest.mark.parametrize("table", TABLES)
def test_quantiles_counts_and_categories_come_from_the_same_rows(table, tmp_path):
    with table(tmp_path, ROWS) as url:
        with open_column(url, "x", table="the rows", person="code") as source:
            column = Column(source, rows_per_person=2, **BOUNDS)
            rows = column.ranked().total
            assert column.fates().tolist()[:4] == [rows, 0, 0, 0]
            found = quantiles(column, qs=[0.1, 0.5, 0.9], epsilon=50.0, random=keyed_source(1))
            assert found.guarantee.terms["rows_per_person"] == 2
            assert all(abs(value - wanted) <= 2 for value, wanted in zip(found.value, (0, 4, 8), strict=True))
        with open_column(url, "re:gion", table="the rows", person="code", text=True) as source:
            column = Column(source, rows_per_person=2, categories=["north", "South"])
            assert column.fates().sum() == rows


def test_the_choice_goes_by_persons_and_not_by_the_order_in_the_table(tmp_path):
    """Each of a person's values is as likely to be the one that takes part."""
    rows = [(float(code % 2 * 2 + value), None, code) for code in range(100) for value in (1, 0)]
    with TABLES[0].values[0](tmp_path, rows) as url, open_column(url, "x", table="the rows", person="code") as source:
        found = counts(source, 1)
    assert sum(found.values()) == 100
    assert all(8 < found[value] < 42 for value in range(4))


def test_missing_and_unreadable_cells_are_chosen_alike_in_every_order(tmp_path):
    """They have no value, and their counts are released. An engine may read the rows in another order."""
    rows = [(cell, None, code) for code in range(30) for cell in (None, "abc")]
    found = []
    for name, order in (("a", rows), ("b", rows[::-1])):
        (tmp_path / name).mkdir()
        with (
            TABLES[0].values[0](tmp_path / name, order) as url,
            open_column(url, "x", table="the rows", person="code") as source,
        ):
            found.append(Column(source, rows_per_person=1, **BOUNDS).fates().tolist())
    assert found[0] == found[1]
    assert sum(found[0]) == 30
    assert min(found[0][3:]) > 3


def test_a_column_that_names_no_persons_is_refused(tmp_path):
    with TABLES[0].values[0](tmp_path, ROWS[:3]) as url:
        with (
            pytest.raises(ArgumentError, match="neither text nor integers"),
            open_column(url, "code", table="the rows", person="x"),
        ):
            pass
        with (
            pytest.raises(ArgumentError, match="person: there is no column 'y'"),
            open_column(url, "x", table="the rows", person="y"),
        ):
            pass
        with (
            pytest.raises(ArgumentError, match="person: not with a declared kind"),
            open_column(url, "x", table="the rows", person="code", kind="number"),
        ):
            pass
    with pytest.raises(ArgumentError, match="neither text nor integers"):
        SqlPersons("duckdb", "x", named=False)


def test_a_hash_never_fails():
    assert len({md5(cell) for cell in ("", "a", "\ud800", 7, None)}) == 5
