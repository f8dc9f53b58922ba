"""`dpselect ledger`, through its own application."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from dpselect.cli.ledger import ledger_app
from dpselect.errors import ArgumentError
from dpselect.ledger import InsufficientBudget, Ledger, LedgerDamagedError, StaleRecordError
from dpselect.testing.ledger_contract import GATE
from tests.root import ROOT


@pytest.fixture
def where(tmp_path):
    return str(tmp_path / "budget.db")


def run(*arguments):
    result = CliRunner().invoke(ledger_app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_create_show_verify_export_import(where, tmp_path):
    created = json.loads(run("create", where, "--budget", "census", "--epsilon", "3", "--delta", "1e-6", "--json"))
    assert created["remaining"] == {"epsilon": 3.0, "delta": 1e-6, "epsilon_exact": "3", "delta_exact": "1/1000000"}
    run("create", where, "--budget", "ann", "--epsilon", "1/3", "--delta", "1e-7", "--parent", "census")
    with Ledger.open(where) as ledger:
        budget = ledger.budget("census")
        receipt = budget.reserve(GATE, label="s").settle(None)
        budget.reserve(GATE, label="s")
    shown = json.loads(run("show", where, "--json"))
    census = {row["name"]: row for row in shown["budgets"]}["census"]
    assert (census["spent"]["epsilon_exact"], census["refunded_epsilon"]) == ("11/10", 0.9)
    table = run("show", where)
    assert "census" in table
    assert "1.1" in table
    run("show", where, "--budget", "census", "--plot", tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").stat().st_size > 1000

    (tmp_path / "receipt.json").write_text(json.dumps({"sequence": receipt.sequence, "head": receipt.head}))
    (tmp_path / "release.json").write_text(json.dumps({"value": 1, "receipt": {"sequence": 1, "head": "ab" * 32}}))
    verified = json.loads(run("verify", where, "--receipt", tmp_path / "receipt.json", "--json"))
    assert verified["verified"] is True
    with pytest.raises(StaleRecordError):
        run("verify", where, "--receipt", tmp_path / "release.json")
    with pytest.raises(ArgumentError):
        run("verify", where, "--receipt", tmp_path / "plot.svg")

    run("export", where, tmp_path / "out.jsonl")
    assert run("export", where) == (tmp_path / "out.jsonl").read_text()
    imported = json.loads(run("import", tmp_path / "out.jsonl", tmp_path / "new.db", "--json"))
    assert imported == {"sequence": verified["sequence"], "head": verified["head"]}


def test_refusals_are_errors_of_the_library(where, tmp_path):
    run("create", where, "--budget", "b", "--epsilon", "1", "--delta", "1e-6")
    with pytest.raises(InsufficientBudget):  # exit status 3 at the command line
        run(
            "create",
            where,
            "--budget",
            "g",
            "--epsilon",
            "2",
            "--delta",
            "1e-7",
            "--parent",
            "b",
            "--accounting",
            "renyi",
        )
    with pytest.raises(ArgumentError):
        run("show", where, "--plot", tmp_path / "plot.svg")
    (tmp_path / "text.db").write_text("no database" * 1000)
    with pytest.raises(LedgerDamagedError):
        run("verify", tmp_path / "text.db")


def test_no_two_columns_have_one_name(where):
    run("create", where, "--budget", "b", "--epsilon", "1")
    heads = re.split(r"\s{2,}", run("show", where).splitlines()[0].strip())
    assert heads == ["budget", "within", "counts", "epsilon", "spent", "left", "saved", "delta", "delta left"]


def test_a_missing_ledger_and_a_missing_budget_are_wrong_usage(where, monkeypatch, capsys):
    """Both say the same, and exit with the same status."""
    from dpselect.cli import app

    def status(*arguments):
        monkeypatch.setattr("sys.argv", ["dpselect", *arguments])
        with pytest.raises(SystemExit) as caught:
            app.main()
        return caught.value.code, capsys.readouterr().err

    missing_ledger, said = status("ledger", "show", where)
    assert missing_ledger == 2
    assert "there is no ledger" in said
    run("create", where, "--budget", "b", "--epsilon", "1")
    missing_budget, also = status("ledger", "show", where, "--budget", "c")
    assert missing_budget == 2
    assert "there is no" in also
    assert "'c' in" in also
    assert all("`dpselect ledger create`, makes it" in one for one in (said, also))


def test_the_page_in_the_documentation(tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs" / "how-to/ledger.md").read_text(encoding="utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs/how-to/ledger.md", "exec"), {})
    assert "epsilon 1 and delta 0 was asked for, epsilon 0.3 and delta 1e-06 remains" in capsys.readouterr().out
