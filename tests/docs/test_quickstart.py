"""The quickstart does what it shows: its table, its study, its commands, and the lines that it quotes."""

import re
import shlex

import pytest
from typer.testing import CliRunner

from dpselect.cli.app import app
from tests.documentation import ROOT, blocks

PAGE = ROOT / "docs/tutorials/quickstart.md"
NUMBER = re.compile(r"\d+(\.\d+)?(e-?\d+)?")


def without_numbers(line):
    return NUMBER.sub("0", line)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_quickstart_runs_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    ((_, table),) = blocks(PAGE, "python")
    ((_, study),) = blocks(PAGE, "toml")
    exec(compile(table, "quickstart.md", "exec"), {})
    (tmp_path / "study.toml").write_text(study)
    commands = [line for _, text in blocks(PAGE, "sh") for line in text.splitlines() if line.startswith("dpselect ")]
    assert [line.split()[1] for line in commands] == ["tune", "tune", "predict"]
    printed = ""
    for command in commands:
        result = CliRunner().invoke(app, shlex.split(command)[1:])
        assert result.exit_code == 0, result.output
        printed += result.output
    (checked, trained, _) = (text for _, text in blocks(PAGE, "text"))
    assert checked.strip() in printed.splitlines()
    assert {without_numbers(line) for line in trained.splitlines()} <= set(map(without_numbers, printed.splitlines()))
    score, lower, _, _, baseline = map(
        float, re.findall(r"0\.\d+", next(x for x in printed.splitlines() if x.startswith("accuracy")))
    )
    assert baseline < lower < score
    for name in ("report.html", "model-card.md", "search.sealed", "budget.db"):
        assert (tmp_path / "release" / name).exists()
    report = (tmp_path / "release" / "report.html").read_text()
    assert "with a probability of 0.548 at most" in re.sub(r"<[^>]+>|\s+", " ", report).replace("  ", " ")
