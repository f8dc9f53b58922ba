"""`dpselect quantile`: files and databases in, one answer out, paid from a ledger when asked."""

from __future__ import annotations

import contextlib
import importlib
import json
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

from dpselect.cli.app import app, main
from dpselect.errors import ArgumentError, ContentError
from dpselect.ledger import InsufficientBudget, Ledger
from tests.cli.quantile_cases import run

quantile_command = importlib.import_module("dpselect.cli.quantile")


@pytest.fixture
def people(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    path = tmp_path / "people.parquet"
    moments = np.datetime64("2024-01-01", "s") + np.arange(5000).astype("timedelta64[h]")
    pyarrow.parquet.write_table(
        pa.table({"income": np.linspace(0.0, 100_000.0, 5000), "age": np.arange(5000) % 90, "when": moments}), path
    )
    return path


BOUNDS = ("--lower", "0", "--upper", "1e7")


def test_json_is_one_object_with_the_price(people):
    shown = json.loads(
        run(people, "--column", "income", "--q", "0.75", "--q", "0.25", "--epsilon", "2", *BOUNDS, "--json")
    )
    assert [row["q"] for row in shown["quantiles"]] == [0.75, 0.25]
    for row in shown["quantiles"]:
        assert abs(row["value"] - 100_000 * row["q"]) < 100_000 * row["rank_error_95"] / 5000
    assert (shown["epsilon"], shown["delta"], shown["adjacency"]) == (2.0, 0.0, "add_or_remove_one")
    assert shown["method"] == "joint"


def test_a_method_with_a_smaller_proved_error_is_named(people):
    asked = [people, "--column", "income", "--epsilon", "1", *BOUNDS]
    asked += [word for q in (0.1, 0.25, 0.5, 0.75) for word in ("--q", q)]
    shown = run(*asked)
    assert "rank off by at most 42" in shown
    assert "--method least_bound (independent) is off by at most 28" in shown
    least = run(*asked, "--method", "least_bound")
    assert "rank off by at most 28" in least
    assert "least_bound (" not in least


def test_whole_numbers_moments_and_private_bounds(people, tmp_path):
    ages = json.loads(
        run(people, "--column", "age", "--q", "0.5", "--epsilon", "1", "--lower", "0", "--upper", "120", "--json")
    )
    assert abs(ages["quantiles"][0]["value"] - 44) <= 2
    text = run(
        people, "--column", "when", "--q", "0.5", "--epsilon", "1", "--lower", "2024-01-01", "--upper", "2025-01-01",
        "--granularity", "1 D", "--plot", tmp_path / "plot.png",
    )  # fmt: skip
    assert "2024-04" in text
    assert (tmp_path / "plot.png").stat().st_size > 1000
    shown = json.loads(
        run(people, "--column", "income", "--q", "0.5", "--epsilon", "1", "--range-epsilon", "0.5", "--json")
    )
    assert shown["epsilon"] == 1.5
    assert shown["upper"] >= 100_000
    assert abs(shown["quantiles"][0]["value"] - 50_000) < 2000


def test_a_plot_that_cannot_be_written_does_not_lose_the_answer(people, tmp_path):
    (tmp_path / "cdf.png").mkdir()
    arguments = ("--column", "income", "--q", "0.5", "--epsilon", "1", *BOUNDS, "--plot", str(tmp_path / "cdf.png"))
    result = CliRunner().invoke(app, ["quantile", str(people), *arguments])
    assert isinstance(result.exception, ArgumentError)
    assert result.stdout.startswith("q 0.5: ")


def test_a_ledger_pays_and_a_refusal_reads_nothing(people, tmp_path, monkeypatch):
    where = str(tmp_path / "budget.db")
    with Ledger.open(where) as ledger:
        ledger.create_budget("census", epsilon=3)
    arguments = (people, "--column", "income", "--q", "0.5", *BOUNDS, "--ledger", where, "--budget", "census")
    shown = json.loads(run(*arguments, "--epsilon", "2", "--json"))
    with Ledger.open(where) as ledger:
        assert ledger.budget("census").remaining().epsilon == Fraction(1)
        assert shown["receipt"]["sequence"] == 3
        ledger.verify()
    monkeypatch.setattr(
        "dpselect.ordered.sources.columns.ChunkedColumn._survey", lambda _: pytest.fail("rows were read")
    )
    with pytest.raises(ArgumentError, match="tree"):
        run(*arguments, "--epsilon", "0.5", "--method", "tree")
    with pytest.raises(ArgumentError, match="granularity"):
        run(*arguments, "--epsilon", "0.5", "--granularity", "1e-30")
    with Ledger.open(where) as ledger:
        assert ledger.budget("census").remaining().epsilon == Fraction(1)
    with pytest.raises(InsufficientBudget):
        run(*arguments, "--epsilon", "2")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--q", "1.5", *BOUNDS), "--q"),
        (("--q", "0.5", "--lower", "0"), "--upper"),
        (("--q", "0.5"), "--range-epsilon"),
        (("--q", "0.5", *BOUNDS, "--range-epsilon", "1"), "--range-epsilon"),
        (("--q", "0.5", "--lower", "low", "--upper", "1"), "--lower"),
        (("--q", "0.5", *BOUNDS, "--granularity", "x"), "--granularity"),
        (("--q", "0.5", *BOUNDS, "--ledger", "x"), "--budget"),
        (("--q", "0.5", *BOUNDS, "--method", "best"), "method"),
        (("--q", "0.5", *BOUNDS, "--table", "t"), "table"),
        (("--q", "0.5", "--range-epsilon", "1", "--method", "tree"), "--method"),
        (("--q", "0.5", *BOUNDS, "--epsilon", "0"), "--epsilon"),
        (("--q", "0.5", "--lower", "10", "--upper", "0"), "lower"),
        (("--q", "0.5", "--lower", "nan", "--upper", "1"), "lower"),
        (("--q", "0.5", *BOUNDS, "--method", "slice"), "delta"),
        (("--q", "0.5", *BOUNDS, "--delta", "1e-6"), "delta"),
        (("--q", "0.5", *BOUNDS, "--category", "a"), "--category"),
        (("--q", "0.5", "--category", "a", "--category", "a"), "categories"),
        (("--q", "0.5", *BOUNDS, "--plot", "cdf.txt"), "--plot"),
        (("--q", "0.5", *BOUNDS, "--plot", "nowhere/cdf.png"), "--plot"),
        (("--q", "0.5", *BOUNDS, "--expected-rows", "0"), "expected_rows"),
    ],
)
def test_errors_name_the_flag(people, arguments, word):
    with pytest.raises(ArgumentError, match=word):
        run(people, "--column", "income", "--epsilon", "1", *arguments)


def test_exit_statuses(people, tmp_path, monkeypatch, capsys):
    def status(*arguments):
        monkeypatch.setattr("sys.argv", ["dpselect", "quantile", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code, *capsys.readouterr()

    where = str(tmp_path / "budget.db")
    with Ledger.open(where) as ledger:
        ledger.create_budget("small", epsilon="1/2")
    usual = (people, "--q", "0.5", "--epsilon", "1", *BOUNDS)
    code, output, errors = status(*usual, "--column", "missing")
    assert (code, output) == (2, "")
    assert "missing" in errors
    code, output, errors = status(*usual, "--column", "income", "--ledger", where, "--budget", "small")
    assert (code, output) == (3, "")
    assert len(errors.splitlines()) == 1
    for name in ("broken.parquet", "broken.csv"):
        (tmp_path / name).write_bytes(b'x\n"' + b"PAR1 no" * 30_000)
        code, output, errors = status(tmp_path / name, "--q", "0.5", "--epsilon", "1", *BOUNDS, "--column", "x")
        assert (code, output) == (1, "")
        assert len(errors.splitlines()) == 1
    code, output, errors = status(*usual, "--column", "income")
    assert (code, errors) == (0, "")


def test_a_long_reading_shows_what_is_done_and_no_number_of_rows(people, monkeypatch):
    said = []

    @contextlib.contextmanager
    def computing(what):
        said.append(what)
        yield

    monkeypatch.setattr(quantile_command, "computing", computing)
    run(people, "--column", "income", "--q", "0.5", "--epsilon", "1", *BOUNDS)
    assert said == ["quantiles of income"]


@pytest.mark.full
def test_a_file_as_people_have_them(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,grade\n1,low\n2,high\nnan,low\nabc,high\n,\n5,low\n" + "5,low\n" * 300)
    shown = json.loads(
        run(path, "--column", "x", "--q", "0.5", "--epsilon", "4", *BOUNDS, "--granularity", "1", "--json")
    )
    assert shown["quantiles"][0]["value"] == 5
    grades = ("--q", "0.2", "--q", "0.9", "--epsilon", "4", "--category", "low", "--category", "high")
    assert "q 0.2: low" in run(path, "--column", "grade", *grades, "--plot", tmp_path / "grades.png")
    assert (tmp_path / "grades.png").stat().st_size > 1000
    many = [word for k in range(1, 20) for word in ("--q", str(k / 20))]
    options = ("--lower", "0", "--upper", "100", "--granularity", "1", "--json")
    shown = json.loads(run(path, "--column", "x", *many, "--epsilon", "1", *options))
    assert shown["method"] == "tree"
    assert all(row["rank_error_95"] > 0 for row in shown["quantiles"])
    assert (
        json.loads(run(path, "--column", "x", *many, "--epsilon", "1", "--expected-rows", "5000", *options))["method"]
        == "joint"
    )
    shown = json.loads(
        run(
            path,
            "--column",
            "x",
            "--q",
            "0.2",
            "--q",
            "0.6",
            "--epsilon",
            "1",
            "--method",
            "slice",
            "--delta",
            "1e-6",
            *options,
        )
    )
    assert (shown["method"], shown["delta"]) == ("slice", 1e-6)
    assert shown["epsilon"] <= 1
    assert "3.0" in run(path, "--column", "x", "--q", "0.5", "--epsilon", "1", "--lower", "3", "--upper", "3")
    (tmp_path / "header.csv").write_text("x\n")
    assert "q 0.5" in run(tmp_path / "header.csv", "--column", "x", "--q", "0.5", "--epsilon", "1", *BOUNDS)
    for where, word in (("empty.csv", "is empty"), ("none.db", "no such file")):
        (tmp_path / "empty.csv").write_text("")
        table = ("--table", "t") if word != "is empty" else ()
        name = f"sqlite:///{tmp_path / where}" if table else tmp_path / where
        with pytest.raises((ArgumentError, ContentError), match=word):
            run(name, *table, "--column", "x", "--q", "0.5", "--epsilon", "1", *BOUNDS)
    assert not (tmp_path / "none.db").exists()


def test_a_form_and_dates_are_for_csv_files_alone(people):
    asked = (people, "--column", "income", "--q", "0.5", "--epsilon", "1", *BOUNDS)
    with pytest.raises(ArgumentError, match=r"encoding: goes with \.csv"):
        run(*asked, "--encoding", "latin-1")
    with pytest.raises(ArgumentError, match="kind: only for a column without a type"):
        run(*asked, "--kind", "date")


def test_a_form_is_named_by_its_flags(tmp_path, monkeypatch, capsys):
    (tmp_path / "t.csv").write_bytes("x\n1\n".encode("utf-16"))
    asked = ["quantile", str(tmp_path / "t.csv"), "--column", "x", "--q", "0.5", "--epsilon", "1", *BOUNDS]
    for flags, said in (((), "by --encoding: it reads as utf-16"), (("--decimal", "x"), "--decimal: must be one of")):
        monkeypatch.setattr("sys.argv", ["dpselect", *asked, *flags])
        with pytest.raises(SystemExit):
            main()
        assert said in capsys.readouterr().err
