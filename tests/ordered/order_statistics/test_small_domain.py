"""Small domains: the exact distribution, and counts that the container or the engine makes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.ordered import (
    open_column,
)
from dpselect.ordered.domains import Grid, WholeNumbers
from dpselect.ordered.order_statistics import small_domain
from dpselect.ordered.order_statistics.intervals import SortedColumn, Window
from dpselect.ordered.order_statistics.small_domain import draw_flipped, rows_below
from dpselect.ordered.sources.adapters import read_values
from dpselect.ordered.sources.columns import ChunkedColumn, CountedColumn
from dpselect.randomness import keyed_source
from tests.ordered.order_statistics.one_cases import flipped_law, score
from tests.ordered.sources.columns_cases import FLOATS


@pytest.mark.statistical
@pytest.mark.parametrize("ordered", [False, True])
def test_small_domains_follow_the_law_of_permute_and_flip(ordered):
    rows = [0, 1, 1, 1, 3, 3, 4] * (20 if ordered else 1)
    target, rate, draws = Fraction(3 * len(rows), 10), Fraction(1, len(rows) // 7), 3000
    column = SortedColumn(np.array(rows) if not ordered else np.sort(rows), WholeNumbers(0, 4))
    column = column if ordered else ChunkedColumn(lambda: iter([np.array(rows)]), WholeNumbers(0, 4))
    scores = [score(rows, z, target) for z in range(5)]
    law = flipped_law([Fraction(math.exp(rate * (s - max(scores)))) for s in scores])
    random = keyed_source(4)
    drawn = [draw_flipped(column, size=5, target=target, rate=rate, random=random) for _ in range(draws)]
    expected = np.array([float(p) for p in law]) * draws
    statistic = np.sum((np.bincount(drawn, minlength=5) - expected) ** 2 / expected)
    assert statistic < 37.3  # the 1 - 1.5e-7 quantile of chi-squared with 4 degrees; another rate is far beyond


@pytest.mark.full
def test_small_domains_are_counted_by_the_engine(database, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    domain = Grid(-20, 240, Fraction(1, 32))
    ordered = np.sort(FLOATS[FLOATS == FLOATS])
    wanted = [int(np.sum(domain.encode(ordered) < np.uint64(code))) for code in range(domain.size)] + [len(ordered)]
    with open_column(database, 'a "b"', table="the rows") as source:
        assert rows_below(source.ranked(domain), domain.size).tolist() == wanted
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute("CREATE TABLE rows_ (a DOUBLE)")
        connection.executemany("INSERT INTO rows_ VALUES (?)", [[float(x)] for x in FLOATS])
        column = read_values(connection.table("rows_")).ranked(domain)
        assert rows_below(column, domain.size).tolist() == wanted
    with open_column(f"duckdb:///{tmp_path / 'x.duckdb'}", "a", table="rows_") as source:
        assert rows_below(source.ranked(domain), domain.size).tolist() == wanted
    assert rows_below(SortedColumn(np.repeat(ordered, 9000), domain), domain.size).tolist() == [
        9000 * n for n in wanted
    ]


def test_scores_and_rate_are_those_of_a_quantile_exactly(monkeypatch):
    """Scores are whole multiples of 1/3 here, and the rate is divided by that."""
    given = []
    monkeypatch.setattr(small_domain, "draw_permute_and_flip", lambda *drawn: given.append(drawn) or 0)
    rows, rate, target = [0, 0, 3, 9], Fraction(7, 5), Fraction(4, 3)
    column = SortedColumn(np.array(rows), WholeNumbers(0, 4))
    assert small_domain.rows_below(column, 5).tolist() == [0, 2, 2, 2, 3, 4]
    small_domain.draw_flipped(column, size=5, target=target, rate=rate, random=keyed_source(1))
    ((scores, used, _),) = given
    kept = [0, 0, 3, 4]
    assert [Fraction(float(s)) * used for s in scores.vector()] == [rate * score(kept, z, target) for z in range(5)]


def test_scores_of_billions_of_rows_are_exact(monkeypatch):
    """Random counts of up to 2**33 rows, and targets in up to `MOST_PARTS` parts of a rank, against integers."""
    given = []
    monkeypatch.setattr(small_domain, "draw_permute_and_flip", lambda *drawn: given.append(drawn) or 0)
    random = np.random.default_rng(4)
    for parts in (2, 10, 1023, small_domain.MOST_PARTS - 1, small_domain.MOST_PARTS):
        for _ in range(20):
            counts = random.integers(1, 2**30, 8)
            column = CountedColumn(Window(np.arange(8, dtype=np.uint64), counts, 0, 0))
            target = Fraction(int(random.integers(0, parts + 1)), parts) * column.total
            small_domain.draw_flipped(column, size=8, target=target, rate=Fraction(1), random=keyed_source(1))
            scores, used, _ = given.pop()
            below = [0, *np.cumsum(counts).tolist()]
            exact = [min(below[z + 1] - target, target - below[z]) for z in range(8)]
            assert [Fraction(float(s)) * used for s in scores.vector()] == exact
