"""`dpselect account --sweep`: its verdict as lines, as JSON and as a page."""

import json

import pytest
from typer.testing import CliRunner

from dpselect.cli.app import app
from dpselect.cli.sweep import parse_settings_known, sweep_page
from dpselect.errors import ArgumentError, ContentError
from dpselect.integrations.sweeps.price import price_sweep
from dpselect.integrations.sweeps.sweep import RecordedRun, RecordedSweep
from dpselect.numerics.digits import rounded_up
from tests.integrations.sweeps import tool_records as made

RUNS = [{"noise_multiplier": noise, "sampling_rate": 1, "steps": 1} for noise in (4.0, 5.0, 5.0)]


def run(source, *words):
    words = ["account", "--sweep", str(source), "--delta", "1e-5", *words]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_the_verdict_as_json(tmp_path):
    found = json.loads(run(made.csv_file(tmp_path, RUNS), "--json", "--settings", "fixed"))
    assert found["epsilon"] == found["composition_epsilon"] < found["bounded_epsilon"] < found["odometer_epsilon"]
    assert found["runs"] == 3
    assert [each["runs"] for each in found["settings"]] == [2, 1]
    assert [each["repetitions"]["law"] for each in found["private_searches"]] == ["logarithmic", "geometric", "poisson"]
    assert found["missing"] == []


def test_the_verdict_as_lines(tmp_path):
    shown = run(made.csv_file(tmp_path, RUNS))
    assert "for the whole sweep: odometer of all runs" in shown.splitlines()[0]
    assert "- 2 of noise_multiplier 5, sampling_rate 1, steps 1: epsilon " in shown
    for part in ("the same runs under other conditions:", "as a private search of 3 runs", "it rests on:", "missing:"):
        assert part in shown


def test_the_page_for_a_paper(tmp_path):
    path = tmp_path / "sweep.md"
    run(made.csv_file(tmp_path, RUNS), "--report", str(path), "--settings", "bounded")
    page = path.read_text()
    assert "-differential privacy** under adding or removing one row" in page
    assert "| noise_multiplier = 5, sampling_rate = 1, steps = 1 | 2 |" in page
    assert "| geometric |" in page
    assert "## Missing" not in page
    assert "## It rests on" in page


def test_a_sweep_without_a_guarantee(tmp_path):
    source = made.csv_file(tmp_path, [*RUNS, {"noise_multiplier": 0, "sampling_rate": 1, "steps": 1}])
    assert json.loads(run(source, "--json"))["epsilon"] is None
    shown = run(source)
    assert shown.startswith("no guarantee for the whole sweep\n")
    assert "the runs with a guarantee alone:" in shown
    assert "no guarantee: run 'row 4' (unknown): its noise multiplier is 0" in shown
    run(source, "--report", str(tmp_path / "a.md"))
    assert "**The sweep has no differential privacy guarantee**" in (tmp_path / "a.md").read_text()


def test_names_of_others_are_no_markup():
    name = "a|b\n# <script> `c` [y](z) *\x1b[31m"
    sweep = RecordedSweep("x", name, (RecordedRun(name, RUNS[0]), RecordedRun("b", {"noise_multiplier": 0})))
    page = sweep_page(price_sweep(sweep, delta=1e-5))
    assert not any(sign in page for sign in ("\x1b", "<script>", "[y]", "`c`", "\n# <", "a|b"))
    assert "a\\|b \\# \\<script\\>" in page


def test_epsilons_are_rounded_up(tmp_path):
    source = made.csv_file(tmp_path, RUNS[:1])
    found = json.loads(run(source, "--json"))
    assert run(source).startswith(f"epsilon {rounded_up(found['epsilon'])} at delta 1e-05")
    assert float(rounded_up(found["epsilon"])) >= found["epsilon"]


def test_a_base_and_a_study_of_optuna(tmp_path):
    pytest.importorskip("sqlalchemy")
    from tests.integrations.sweeps.formats.test_optuna_storage import EXAMPLES

    shown = run(EXAMPLES / "past_search.log", "--base", "gaussian:noise_multiplier=4", "--study-name", "digits")
    assert "12 of the base" in shown
    shown = run(EXAMPLES / "past_search.log", "--columns", "noise_multiplier=4,sampling_rate=1,steps=1")
    assert "12 of noise_multiplier 4" in shown


def test_many_settings_are_cut_in_lines_and_whole_in_json(tmp_path):
    source = made.csv_file(tmp_path, [{"noise_multiplier": 4 + n, "sampling_rate": 1, "steps": 1} for n in range(15)])
    assert "- and 3 more" in run(source)
    assert len(json.loads(run(source, "--json"))["settings"]) == 15


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--repetitions", "fixed:count=2"], "--sweep goes with"),
        (["--optuna", "a.db"], "--sweep goes with"),
        (["--fixed-beforehand"], "--sweep goes with"),
        (["--rows", "2"], "--sweep goes with"),
        (["--adjacency", "replace_one"], "add_or_remove_one"),
        (["--settings", "x"], "settings must be 'fixed' or 'bounded'"),
        (["--columns", "sigma"], "ROLE=COLUMN"),
        (["--sweep-format", "x"], "unknown sweep format"),
        (["--untrained", "x"], "no run is called 'x'"),
        (["--report", "absent/a.md"], "cannot be written"),
    ],
)
def test_bad_options(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match=message):
        run(made.csv_file(tmp_path, RUNS), *words)


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(ArgumentError, match="no file or folder"):
        run(tmp_path / "a.csv")
    with pytest.raises(ContentError, match=r"--sweep: a\.csv has no rows"):
        run(made.wrote(tmp_path / "a.csv", "a\n"))


@pytest.mark.parametrize("words", [["--columns", "steps=1"], ["--report", "a"], ["--sweep-format", "csv"]])
def test_options_of_a_sweep_need_one(words):
    with pytest.raises(ArgumentError, match="go with --sweep"):
        CliRunner().invoke(app, ["account", "--base", "pure:epsilon=1", "--delta", "0", *words], catch_exceptions=False)


def test_declarations():
    assert [parse_settings_known(text) for text in (None, "fixed", "bounded")] == [None, "fixed", "bounded"]
