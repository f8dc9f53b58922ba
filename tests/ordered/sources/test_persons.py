"""Columns with at most a declared number of each person's rows, and what a person then moves, exactly."""

from __future__ import annotations

import csv
import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.ordered import (
    Column,
    Quantile,
    Quantiles,
    count_cells,
    open_column,
    private_range,
    quantile,
    quantile_interval,
    quantiles,
    quantiles_by_group,
)
from dpselect.ordered.order_statistics.cell_counts import CellCounts
from dpselect.ordered.sources.persons import limited_in_memory
from dpselect.privacy import Guarantee
from dpselect.randomness import keyed_source
from tests.ordered.order_statistics.one_cases import score
from tests.ordered.order_statistics.test_joint import scores as joint_scores
from tests.ordered.order_statistics.test_recursive import recursive_law

BOUNDS = {"lower": 0, "upper": 100}
PERSONS = ["a", "b", " a ", "", None, "7", "7"]


def rows_in(column):
    return [float(v) for chunk in column.source.chunks() for v in chunk if v == v]


def cells(count, seed=3):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 100, count).astype(float), [PERSONS[i] for i in rng.integers(0, len(PERSONS), count)]


def write(path, values, persons, names=("x", "who")):
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(names)
        rows.writerows(zip(values, persons, strict=True))
    return str(path)


@pytest.mark.theorem("docs/theory/persons.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.parametrize("most", [1, 2])
def test_without_a_person_at_most_so_many_rows_are_gone(most):
    """Every table of up to three rows: in memory, of numbers and of text."""
    kinds, largest = [("a", 1.0), ("a", 2.0), ("b", 1.0)], 0

    def kept(table, text):
        values = [str(v) for _, v in table] if text else np.array([v for _, v in table], dtype=float)
        terms = {"categories": ["1.0", "2.0"]} if text else BOUNDS
        column = Column(values, persons=[p for p, _ in table], rows_per_person=most, **terms)
        return Counter(v for chunk in column.source.chunks() for v in chunk)

    for size in range(4):
        for table in product(kinds, repeat=size):
            for text in (False, True):
                whole, less = (kept(rows, text) for rows in (table, [row for row in table if row[0] != "a"]))
                assert not less - whole
                largest = max(largest, gone := sum((whole - less).values()))
                assert gone == min(most, sum(person == "a" for person, _ in table))
    assert largest == most


def ranges(laws):
    """The largest range of the log ratios of two distributions in a set, as a ratio."""
    worst = Fraction(0)
    for one, other in laws:
        found = [one[z] / other[z] for z in one]
        worst = max(worst, max(found) / min(found), *found, *(1 / each for each in found))
    return worst


def pairs(law, size, most, rows=3):
    """Each table of up to so many rows, and the same with up to `most` rows of one person."""
    for n in range(rows + 1):
        for table in combinations_with_replacement(range(size), n):
            for k in range(1, most + 1):
                for own in combinations_with_replacement(range(size), k):
                    yield law(table), law(tuple(sorted((*table, *own))))


def single_law(q, rate, power):
    def law(rows):
        weights = {z: Fraction(2) ** int(power * rate * score(rows, z, q * len(rows))) for z in range(3)}
        return {z: w / sum(weights.values()) for z, w in weights.items()}

    return law


@pytest.mark.theorem("docs/theory/persons.md, Theorem 3", exact=True, sharp=True)
@pytest.mark.parametrize("q", [Fraction(0), Fraction(1, 3), Fraction(1, 2)])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_quantile_is_within_epsilon_for_a_person_and_no_larger_rate_would_do(q, most):
    column = Column(range(3), domain_size=3, persons=[1, 2, 3], rows_per_person=most)
    bound, _ = Quantile(q=q, epsilon=1.0, mechanism="exponential").bind(column)
    rate = bound._rate(column)
    power = (rate / q.denominator).denominator
    worst = ranges(pairs(single_law(q, rate, power), 3, most))
    assert worst == Fraction(2) ** power  # exp(epsilon): the range
    # the mutation: the rate of one row for a person with several
    double = ranges(pairs(single_law(q, rate * most, power), 3, most))
    assert (double > Fraction(2) ** power) is (most > 1)


@pytest.mark.theorem("docs/theory/persons.md, Theorem 3", exact=True, sharp=True)
@pytest.mark.parametrize("most", [1, 2])
def test_recursive_cuts_are_within_epsilon_for_a_person(most):
    """Its rows may be in different parts of a level."""
    qs, size = tuple(Fraction(k, 4) for k in (1, 2, 3)), 3
    plan = Quantiles(epsilon=1.0, qs=qs, method="recursive", rows_per_person=most)
    steps = zip(plan.cuts, plan.rates, strict=True)
    units = math.lcm(*((rate * cut.share).denominator * rate.denominator for cut, rate in steps))
    known = {}

    def law(rows, factor=1):
        key = rows, factor
        if key not in known:
            known[key] = recursive_law(rows, plan, size, lambda exponent: Fraction(2) ** int(factor * exponent * units))
        return known[key]

    both = [(law(a), law(b)) for a, b in pairs(lambda rows: rows, size, most, rows=2)]
    worst = max(max(max(p[z] / q[z], q[z] / p[z]) for z in p) for p, q in both)
    assert Fraction(2) ** (units // 2) < worst <= Fraction(2) ** units
    if most > 1:
        both = [(law(a, most), law(b, most)) for a, b in pairs(lambda rows: rows, size, most, rows=2)]
        assert max(max(max(p[z] / q[z], q[z] / p[z]) for z in p) for p, q in both) > Fraction(2) ** units


@pytest.mark.theorem("docs/theory/persons.md, Theorem 3", exact=True, loose="a joint score may not move as far")
@pytest.mark.parametrize("most", [1, 2])
def test_the_joint_mechanism_is_within_epsilon_for_a_person(most):
    qs = (Fraction(1, 4), Fraction(1, 2))
    (rate,) = Quantiles(epsilon=1.0, qs=qs, method="joint", rows_per_person=most).rates
    units = rate.denominator * math.lcm(*(q.denominator for q in qs))

    def law(rows, factor=1):
        weights = {z: Fraction(2) ** int(units * factor * rate * s) for z, s in joint_scores(rows, qs, 3).items()}
        return {z: w / sum(weights.values()) for z, w in weights.items()}

    assert Fraction(2) ** (units // 2) < ranges(pairs(law, 3, most, rows=2)) <= Fraction(2) ** units
    if most > 1:
        assert ranges(pairs(lambda rows: law(rows, most), 3, most, rows=2)) > Fraction(2) ** units


@pytest.mark.parametrize("method", ["independent", "recursive", "joint", "tree"])
def test_rates_are_those_of_a_row_at_a_part_of_epsilon(method):
    qs = [0.25, 0.5, 0.75]
    row = Quantiles(qs=qs, epsilon=0.25, method=method, domain_size=100)
    person = Quantiles(qs=qs, epsilon=1.0, method=method, domain_size=100, rows_per_person=4)
    assert [float(rate) for rate in person.rates] == pytest.approx([float(rate) for rate in row.rates], rel=1e-9)
    assert person.guarantee.epsilon(delta=0) == 1.0
    assert person.guarantee.terms["rows_per_person"] == 4
    if method != "tree":
        assert person.rank_errors(100) == pytest.approx(row.rank_errors(100), rel=1e-9)


def test_counts_have_the_noise_of_all_rows_of_a_person():
    counts = CellCounts(epsilon=1.0, rows_per_person=3)
    assert counts.scale == 3 * CellCounts(epsilon=1.0).scale
    assert counts.margin() > 2 * CellCounts(epsilon=1.0).margin()
    assert counts.guarantee.terms["rows_per_person"] == 3


def test_each_answer_says_that_it_is_for_persons():
    values, persons = cells(400)
    domain = {"domain_size": 101}
    terms = {**domain, "epsilon": 1.0, "persons": persons, "rows_per_person": 2, "random": keyed_source(1)}
    found = [
        quantile(values, q=0.5, **terms),
        quantiles(values, qs=[0.25, 0.5], **terms),
        count_cells(values, **terms),
        quantile_interval(values, q=0.5, **terms),
    ]
    for release in found:
        assert "rows_per_person" in str(release.guarantee.terms)
        assert release.guarantee.epsilon(delta=0) <= 1.0
    assert found[0].rank_error() == 2 * quantile(values, q=0.5, epsilon=1.0, **domain).rank_error()


def test_a_file_has_the_rows_of_memory(tmp_path):
    values, persons = cells(500)
    where = write(tmp_path / "rows.csv", values, persons)
    wanted = rows_in(Column(values, persons=persons, rows_per_person=20, **BOUNDS))
    with open_column(where, "x", person="who") as source:
        column = Column(source, rows_per_person=20, **BOUNDS)
        assert rows_in(column) == rows_in(column) == wanted
        assert 60 <= len(wanted) < 80  # a, b and 7
        assert column.fates().tolist() == [len(wanted), 0, 0, 0, 0]
        assert column.ranked().total == len(wanted)


@pytest.mark.full
def test_all_cells_of_a_row_go_with_it_in_every_chunk_of_a_file(tmp_path):
    """More rows than one chunk has, some unreadable: each person's only row is one of theirs."""
    count = 70_000
    persons = [str(i % 30_000) for i in range(count)]
    values = ["none" if i % 7 == 0 else str(i) for i in range(count)]
    where = write(tmp_path / "rows.csv", values, persons)
    with open_column(where, "x", person="who") as source:
        column = Column(source, lower=0, upper=count, rows_per_person=1)
        assert column.fates().sum() == 30_000
        found = rows_in(column)
    assert len({value % 30_000 for value in found}) == len(found) == column.ranked().total


def test_text_of_a_file_is_limited_too(tmp_path):
    where = write(tmp_path / "rows.csv", ["low", "high", "low", "odd", ""], ["a", "a", "b", "c", "d"])
    with open_column(where, "x", person="who", text=True) as source:
        column = Column(source, categories=["low", "high"], rows_per_person=1)
        assert column.fates().tolist() == [2, 0, 0, 1, 1]


@pytest.mark.parametrize(
    "kind", [np.int64, np.float32, "datetime64[s]", object], ids=["integers", "float32", "moments", "objects"]
)
def test_each_type_of_values_is_limited(kind):
    values = np.array([5, 6, 7, 8], dtype=np.int64).astype(kind)
    bounds = {"lower": values[0], "upper": values[-1]}
    column = Column(values, persons=["a", "a", "b", None], rows_per_person=1, **bounds)
    assert column.ranked().total == 2
    assert len({*next(column.source.chunks())} & {values[2]}) == 1


def test_missing_values_are_rows_of_a_person():
    column = Column(np.array([1.0, np.nan, np.nan]), persons=["a", "b", "b"], rows_per_person=5, **BOUNDS)
    assert column.fates().tolist() == [1, 0, 0, 2, 0]


WRONG = [
    ({"persons": ["a"] * 4}, "rows_per_person"),
    ({"rows_per_person": 1}, "persons: give"),
    ({"persons": ["a"] * 3, "rows_per_person": 1}, "one entry for each row"),
    ({"persons": ["a"] * 4, "rows_per_person": 0}, "rows_per_person must be"),
    ({"persons": ["a"] * 4, "rows_per_person": 10_001}, "rows_per_person must be"),
    ({"persons": ["a"] * 4, "rows_per_person": 1, "weights": [1.0] * 4}, "not with weights"),
    ({"persons": ["a"] * 4, "rows_per_person": 1, "assume_sorted": True}, "not with weights"),
    ({"persons": np.zeros((4, 2)), "rows_per_person": 1}, "one column"),
    ({"persons": np.zeros(4, dtype="datetime64[s]"), "rows_per_person": 1}, "one column"),
]


@pytest.mark.parametrize(("options", "said"), WRONG, ids=[said for _, said in WRONG])
def test_wrong_persons_are_refused_before_a_row_is_read(options, said):
    with pytest.raises(ArgumentError, match=said):
        Column([1.0, 2.0, 3.0, 4.0], **BOUNDS, **options)


def test_values_that_are_not_in_memory_are_refused():
    for values in (iter([np.array([1.0])]), lambda: iter([np.array([1.0])])):
        with pytest.raises(ArgumentError, match="need values in memory"):
            Column(values, persons=["a"], rows_per_person=1, **BOUNDS)
    polars = pytest.importorskip("polars")
    with pytest.raises(ArgumentError, match="need values in memory"):
        Column(polars.LazyFrame({"x": [1.0]}), persons=["a"], rows_per_person=1, **BOUNDS)
    with pytest.raises(ArgumentError, match="need values in memory"):
        limited_in_memory(object(), object(), ["a"], 1)


def test_persons_need_add_or_remove_one_a_price_and_the_same_number():
    column = Column(np.arange(4.0), persons=[1, 1, 2, 3], rows_per_person=2, **BOUNDS)
    with pytest.raises(ArgumentError, match="add_or_remove_one"):
        quantile(column, q=0.5, epsilon=1.0, adjacency="replace_one")
    with pytest.raises(ArgumentError, match="no price for persons"):
        quantiles(column, qs=[0.25, 0.5], epsilon=1.0, method="slice", delta=1e-6)
    with pytest.raises(ArgumentError, match="by group"):
        quantiles_by_group(column, ["x"] * 4, names=["x"], qs=[0.5], epsilon=1.0)
    for rows in (1, 3):
        with pytest.raises(ArgumentError, match=f"rows_per_person is {rows} here, but 2"):
            Quantile(q=0.5, epsilon=1.0, rows_per_person=rows)(column)
        with pytest.raises(ArgumentError, match=f"rows_per_person is {rows} here, but None"):
            Quantiles(qs=[0.5], epsilon=1.0, rows_per_person=rows)(Column(np.arange(4.0), **BOUNDS))
    assert isinstance(Quantile(q=0.5, epsilon=1.0, rows_per_person=2)(column).guarantee, Guarantee)


def test_a_column_opened_for_persons_is_never_read_as_rows(tmp_path):
    where = write(tmp_path / "rows.csv", [1, 2, 3], ["a", "a", "b"])
    with open_column(where, "x", person="who") as source:
        for read in (
            lambda: quantile(source, q=0.5, epsilon=1.0, **BOUNDS),
            lambda: private_range(source, epsilon=1.0),
        ):
            with pytest.raises(ArgumentError, match="rows_per_person"):
                read()
        with pytest.raises(ArgumentError, match="give rows_per_person alone"):
            Column(source, persons=["a", "a", "b"], rows_per_person=1, **BOUNDS)
    with pytest.raises(ArgumentError, match="person: no such column"):
        open_column(where, "x", person="whom")
    for other in ({"person": "x"}, {"person": "who", "by": "who"}):
        with pytest.raises(ArgumentError, match="person: not with by"):
            open_column(where, "x", **other)
