"""Noisy counts of clipped, missing and unreadable cells: their law, their doors, and answers that are withheld."""

from __future__ import annotations

import csv
import importlib
import json
import math
import sqlite3
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

from dpselect.cli.app import app, main
from dpselect.errors import ArgumentError, ContentError
from dpselect.ledger import Ledger
from dpselect.ordered import Column, count_cells, open_column, quantile
from dpselect.ordered.order_statistics.cell_counts import CellCounts, CountedCells, count_epsilon, noise_above
from dpselect.randomness import keyed_source

ODD = ["", " ", "nan", "NaN", "NA", "null", "unknown", "1_000", "1,5", "12", "-3", "1e400", "-1e400", "inf", "7;7",
       '"quoted, 3"', "0x10", "٣", "1 2", "TRUE", "5.", ".5", "#N/A", "\U0001f600", "'", "None",
       "2024-01-01"]  # fmt: skip
CALM = ["4", "5", "6", "99", "-1"]


def write(path, cells):
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "x"])
        rows.writerows([number, cell] for number, cell in enumerate(cells))
    return str(path)


def of_csv(cells, tmp_path, **options):
    where = write(tmp_path / f"{len(list(tmp_path.iterdir()))}.csv", cells)
    with open_column(where, "x", **options) as source:
        return counts_of(source, **options)


def counts_of(source, *, text=False, dates=False):
    if text:
        return Column(source, categories=["12", "unknown", "NA"]).fates()
    ends = ("2023-01-01", "2025-01-01") if dates else (0, 10)
    return Column(source, lower=ends[0], upper=ends[1]).fates()


def of_sqlite(cells, tmp_path, kind="REAL", **options):
    where = tmp_path / f"{len(list(tmp_path.iterdir()))}.db"
    with sqlite3.connect(where) as base:
        base.execute(f"CREATE TABLE t (x {kind})")
        base.executemany("INSERT INTO t VALUES (?)", [(cell,) for cell in cells])
    base.close()
    with open_column(f"sqlite:///{where}", "x", table="t", text=options.get("text", False)) as source:
        return counts_of(source, **options)


def log_mass(shift, scale):
    """The log of the mass of discrete Laplace noise at `shift`, up to a constant."""
    return -abs(shift) / scale


def loss(counts, neighbour, scale):
    """The largest log ratio of the masses of an output between these counts: far out in the direction of the change."""
    far = [10**6 * (1 if a > b else -1 if b > a else 0) for a, b in zip(counts, neighbour, strict=True)]
    at = [a + shift for a, shift in zip(counts, far, strict=True)]
    mass, other = (sum(log_mass(z - c, scale) for z, c in zip(at, of, strict=True)) for of in (counts, neighbour))
    return mass - other


PAIRS = {
    "add_or_remove_one": ([1.0, 20.0, -4.0, np.nan], [1.0, 20.0, -4.0, np.nan, np.nan]),
    "replace_one": ([1.0, 20.0, -4.0, np.nan], [1.0, 20.0, -4.0, 3.0]),
}


@pytest.mark.theorem("docs/theory/lost-cells.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.parametrize("adjacency", list(PAIRS))
def test_the_exact_loss_of_the_counts_is_epsilon(adjacency):
    mechanism = CellCounts(epsilon=0.75, adjacency=adjacency)
    rows, neighbour = (Column(np.array(part), lower=0, upper=10).fates().tolist() for part in PAIRS[adjacency])
    found = max(loss(rows, neighbour, float(mechanism.scale)), loss(neighbour, rows, float(mechanism.scale)))
    promised = mechanism.guarantee.epsilon(delta=0)
    assert 0.99 * promised < found <= promised * (1 + 1e-9)


def test_noise_for_added_rows_does_not_cover_replaced_ones():
    """The mutation that the theorem excludes: scale 1/epsilon under replace_one."""
    rows, neighbour = (Column(np.array(part), lower=0, upper=10).fates().tolist() for part in PAIRS["replace_one"])
    assert loss(rows, neighbour, 1.0 / 0.75) > 1.9 * 0.75


def law(scale, weight, reach):
    """Of `weight` times one noise, on -reach .. reach."""
    q = math.exp(-1.0 / scale)
    found = np.zeros(2 * reach + 1)
    most = reach // weight
    x = np.arange(-most, most + 1)
    found[reach + weight * x] = (1 - q) / (1 + q) * q ** np.abs(x)
    return found


@pytest.mark.theorem(
    "docs/theory/lost-cells.md, Theorem 2", exact=True, loose="Chernoff's bound on a sum of four noises"
)
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 4.0])
def test_an_answer_is_withheld_with_little_chance_if_the_share_is_allowed(epsilon):
    """At a share of exactly a fifth: 5 (.8 U - .2 (I + B + A)) is a sum of integers, convolved here."""
    scale = 1.0 / epsilon
    reach = math.ceil(200 * scale)
    total = law(scale, 4, reach)
    for _ in range(3):
        total = np.convolve(total, law(scale, 1, reach))
    values = np.arange(len(total)) - len(total) // 2
    margin = noise_above(epsilon, (0.8, 0.2, 0.2, 0.2))
    chance = total[values > 5 * margin].sum()
    assert chance <= 0.05
    assert chance > 0.001  # and the margin is no more than a few times what it takes


def test_what_is_withheld_and_what_is_not():
    mechanism = CellCounts(epsilon=0.05)
    for share, withheld in ((0.0, False), (0.15, False), (0.2, False), (0.25, True), (0.997, True)):
        lost = round(20_000 * share)
        assert mechanism.mostly_lost(CountedCells(20_000 - lost, 0, 0, 5000, lost)) is withheld
    assert not mechanism.mostly_lost(CountedCells(0, 0, 0, 0, 20_000), most=1.0)
    assert not mechanism.mostly_lost(CountedCells(-90, -90, -90, 0, 0))
    with pytest.raises(ArgumentError, match="most"):
        mechanism.mostly_lost(CountedCells(1, 0, 0, 0, 0), most=1.5)


DOORS = {
    "csv": lambda cells, tmp_path: of_csv(cells, tmp_path),
    "csv dates": lambda cells, tmp_path: of_csv(cells, tmp_path, dates=True),
    "csv text": lambda cells, tmp_path: of_csv(cells, tmp_path, text=True),
    "sqlite": lambda cells, tmp_path: of_sqlite(cells, tmp_path),
    "sqlite whole": lambda cells, tmp_path: of_sqlite(cells, tmp_path, kind="INTEGER"),
    "sqlite text": lambda cells, tmp_path: of_sqlite(cells, tmp_path, kind="TEXT", text=True),
    "list": lambda cells, _: Column([float(c) if c in CALM else None for c in cells], lower=0, upper=10).fates(),
}


@pytest.mark.parametrize("door", list(DOORS))
def test_one_row_more_changes_one_count_by_one(door, tmp_path):
    count, odd = DOORS[door], ODD if "sqlite" not in door else ODD[::3]
    before = count(CALM, tmp_path)
    assert before.sum() == len(CALM)
    changes = [count([*CALM, cell], tmp_path) - before for cell in odd]
    assert all(sorted(change.tolist()) == [0, 0, 0, 0, 1] for change in changes)
    # and no row has another fate for the rows beside it
    assert count([*CALM, *odd], tmp_path).tolist() == (before + sum(changes)).tolist()


def test_fates_of_cells_of_a_csv_file(tmp_path):
    cells = ["5", "-5", "50", "", "NA", "unknown", "1,994", "0", "10", "nan", "-inf"]
    assert of_csv(cells, tmp_path).tolist() == [3, 2, 1, 3, 2]
    days = ["2024-05-06", "2000-01-01", "2030-01-01", "", "soon", "2023-01-01"]
    assert of_csv(days, tmp_path, dates=True).tolist() == [2, 1, 1, 1, 1]
    assert of_csv(["12", "unknown", "NA", "", "13", "x"], tmp_path, text=True).tolist() == [3, 0, 0, 1, 2]


def test_doors_agree(tmp_path):
    pa = pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    import pyarrow.parquet

    values = [None if k % 7 == 0 else math.nan if k % 11 == 0 else float(k % 40 - 10) for k in range(500)]
    nan = np.array([math.nan if value is None else value for value in values])
    expected = Column(nan, lower=0, upper=10).fates().tolist()
    assert sum(expected) == 500
    assert min(expected[:4]) > 0
    pyarrow.parquet.write_table(pa.table({"x": pa.array(values, pa.float64())}), tmp_path / "t.parquet")
    with open_column(str(tmp_path / "t.parquet"), "x") as source:
        assert counts_of(source).tolist() == expected
    written = ["" if value is None else str(value) for value in values]
    assert of_csv(written, tmp_path).tolist() == expected
    assert of_sqlite(values, tmp_path).tolist() == expected
    table = duckdb.sql("SELECT 1.0::DOUBLE AS x WHERE false")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (x DOUBLE)")
    connection.executemany("INSERT INTO t VALUES (?)", [[value] for value in values])
    assert Column(connection.sql("SELECT x FROM t"), lower=0, upper=10).fates().tolist() == expected
    assert Column(table, lower=0, upper=10).fates().tolist() == [0, 0, 0, 0, 0]
    chunks = iter([nan[:200], nan[200:].astype(np.float32)])
    assert Column(chunks, lower=0, upper=10).fates().tolist() == expected


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float32, "datetime64[s]", object])
def test_bounds_beyond_the_type(dtype):
    values = np.array([1, 2, 3]).astype(dtype)
    ends = (lambda k: np.datetime64(k, "s")) if values.dtype.kind == "M" else int
    assert Column(values, lower=ends(-500), upper=ends(500)).fates().tolist() == [3, 0, 0, 0, 0]
    assert Column(values, lower=ends(500), upper=ends(600)).fates().tolist() == [0, 3, 0, 0, 0]
    assert Column(values, lower=ends(-600), upper=ends(-500)).fates().tolist() == [0, 0, 3, 0, 0]
    assert Column(values, lower=ends(2), upper=ends(2)).fates().tolist() == [1, 1, 1, 0, 0]


def test_a_public_part_of_epsilon_pays_for_the_counts():
    for epsilon in (2.0**-30, 0.1, 0.3, 1.0, 2.0, 17.3, 2.0**20):
        for adjacency in PAIRS:
            part = count_epsilon(epsilon, adjacency)
            assert 0.0099 * epsilon < part <= 0.05 * epsilon
            assert Fraction(part) + Fraction(epsilon - part) == Fraction(epsilon)
    deviation = math.sqrt(2) * float(CellCounts(epsilon=count_epsilon(2.0)).scale)
    assert 30 <= deviation < 30.3


def test_a_quantile_in_python_is_what_it_was_and_counts_are_bought_apart():
    values = np.arange(1000.0)
    before = quantile(values, q=0.5, lower=0, upper=999, epsilon=1.0, random=keyed_source(7))
    assert before.guarantee.epsilon(delta=0) == 1.0
    found = count_cells(values, lower=100, upper=899, epsilon=2.0, random=keyed_source(7))
    assert found.value.unreadable == 0  # an array of numbers: the type rules it out
    off = max(abs(a - b) for a, b in zip(found.value, (800, 100, 100, 0, 0), strict=True))
    assert off <= CellCounts(epsilon=2.0).margin(1e-9)
    with pytest.raises(ArgumentError, match="assume_sorted"):
        count_cells(values, lower=0, upper=9, epsilon=1.0, assume_sorted=True)


def run(*arguments):
    return CliRunner().invoke(app, ["quantile", *map(str, arguments)])


ASKED = ("--column", "x", "--q", "0.5", "--epsilon", "1", "--lower", "0", "--upper", "10")


def test_the_command_counts_within_epsilon(tmp_path):
    where = write(tmp_path / "t.csv", ["5"] * 900 + ["50"] * 200 + [""] * 300 + ["unknown"] * 60)
    shown = json.loads(run(where, *ASKED, "--json").stdout)
    assert (shown["epsilon"], shown["withheld"], len(shown["quantiles"])) == (1.0, False, 1)
    true = {"inside": 900, "below": 0, "above": 200, "missing": 300, "unreadable": 60}
    assert all(abs(shown["cells"][name] - count) < 500 for name, count in true.items())
    assert shown["cells"]["epsilon"] == count_epsilon(1.0)
    said = run(where, *ASKED).stdout
    assert "above and clipped" in said
    assert "each count off by at most 64, 95 % sure" in said
    plain = json.loads(run(where, *ASKED, "--no-count", "--json").stdout)
    assert (plain["cells"], plain["condition"]) == (None, "if every cell can be read as declared")
    assert plain["quantiles"][0]["rank_error_95"] < shown["quantiles"][0]["rank_error_95"]
    assert '"95 % sure" holds if every cell can be read' in run(where, *ASKED, "--no-count").stdout


def test_an_answer_from_a_column_that_is_mostly_unreadable_is_withheld(tmp_path, monkeypatch, capsys):
    where = write(tmp_path / "t.csv", ["5"] * 3000 + ["unknown"] * 3000)
    book = str(tmp_path / "budget.db")
    with Ledger.open(book) as ledger:
        ledger.create_budget("b", epsilon=2)
    command = importlib.import_module("dpselect.cli.quantile")
    monkeypatch.setattr(command, "quantiles", lambda *_, **__: pytest.fail("a withheld answer was drawn"))
    paid = ("--ledger", book, "--budget", "b", "--plot", tmp_path / "cdf.png", "--json")
    monkeypatch.setattr("sys.argv", ["dpselect", "quantile", where, *ASKED, *map(str, paid)])
    with pytest.raises(SystemExit) as stopped:
        main()
    output, errors = capsys.readouterr()
    assert stopped.value.code == 5
    shown = json.loads(output)
    assert (shown["withheld"], shown["quantiles"]) == (True, [])
    assert "lower" not in shown
    assert "withheld: more than 20 % of the cells" in errors
    assert "--decimal" in errors
    assert not (tmp_path / "cdf.png").exists()
    with Ledger.open(book) as ledger:
        assert ledger.budget("b").remaining().epsilon == Fraction(1)
        ledger.verify()
    monkeypatch.undo()
    assert run(where, *ASKED, "--most-unreadable", "0.6").exit_code == 0
    assert run(where, *ASKED, "--no-count").exit_code == 0


def test_categories_that_hardly_any_cell_is(tmp_path):
    where = write(tmp_path / "t.csv", ["low"] * 2000 + ["Low"] * 2000)
    asked = ("--column", "x", "--q", "0.5", "--epsilon", "1", "--category", "low", "--category", "high")
    found = run(where, *asked)
    assert found.exit_code == 5
    assert "none of the categories (each" in found.stdout
    assert "clipped" not in found.stdout


def test_a_public_sample_is_refused_before_anything_is_paid(tmp_path):
    where = write(tmp_path / "t.csv", ["5"] * 100)
    sample = write(tmp_path / "public.csv", ["5", "1,994", "unknown", "7", ""])
    with pytest.raises(
        ContentError, match=r"2 of 4 cells of column 'x' .*record 2 has '1,994', record 3 has 'unknown'"
    ):
        quantile_of(where, *ASKED, "--like", sample)
    assert json.loads(quantile_of(where, *ASKED, "--like", sample, "--most-unreadable", "0.5", "--json"))["quantiles"]
    other = tmp_path / "other.csv"
    other.write_text("y\n1\n")
    with pytest.raises(ArgumentError, match=r"--like: column: no such column: 'x'"):
        quantile_of(where, *ASKED, "--like", other)
    text = ("--column", "x", "--q", "0.5", "--epsilon", "1", "--category", "5", "--category", "7")
    with pytest.raises(ContentError, match=r"are none of the categories \(record 2"):
        quantile_of(where, *text, "--like", sample)
    days = ("--column", "x", "--q", "0.5", "--epsilon", "1", "--lower", "2024-01-01", "--upper", "2024-12-31")
    with pytest.raises(ContentError, match=r"cannot be read as date \(record 1 has '5'"):
        quantile_of(where, *days, "--kind", "date", "--like", sample)


def quantile_of(*arguments):
    result = run(*arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


@pytest.mark.parametrize(("flags", "least"), [((), "2.98023e-08"), (("--no-count",), "9.31323e-10")])
def test_an_epsilon_too_small_to_share_is_refused_as_it_was_typed(tmp_path, flags, least):
    (tmp_path / "t.csv").write_text("x\n1\n2\n")
    asked = ["quantile", str(tmp_path / "t.csv"), "--column", "x", "--q", "0.5", "--lower", "0", "--upper", "9"]
    error = CliRunner().invoke(app, [*asked, "--epsilon", "5e-10", *flags]).exception
    assert f"--epsilon must be a finite number at least {least}" in str(error)
    assert "got 5e-10" in str(error)
