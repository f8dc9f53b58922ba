"""What the documentation shows on a `$ dpselect ...` line is what the command prints."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpselect.cli.app import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def plain_blocks(text):
    """The contents of the fenced blocks that name no language."""
    fence, lines = None, []
    for line in text.splitlines():
        if line.strip().startswith("```"):
            if fence == "```":
                yield "\n".join(lines)
            fence, lines = (line.strip(), []) if fence is None else (None, [])
        else:
            lines.append(line)


def sessions():
    for page in PAGES:
        for block in plain_blocks(page.read_text(encoding="utf-8")):
            for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
                command, _, shown = part.replace("\\\n", " ").partition("\n")
                if command.startswith("dpselect ") and shown.strip():
                    yield pytest.param(command, shown.strip(), id=f"{page.name}: {' '.join(command.split())[:60]}")


@pytest.mark.parametrize(("command", "shown"), list(sessions()))
def test_commands_print_what_is_shown(command, shown):
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.exit_code == (1 if "VIOLATED" in shown else 0), result.output  # what an audit finds
    assert result.stdout.strip() == shown


def test_there_is_something_to_test():
    assert len(list(sessions())) >= 3


def python_blocks(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S))


def test_the_page_on_sparse_vectors_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    left = []
    exec(compile(python_blocks("sparse-vector.md"), "sparse-vector.md", "exec"), {"print": left.append})
    # 2400 against 1000 with noise of scale 87, and 1000 against 500: other answers have probability below 1e-3
    assert left[0] == pytest.approx(1.9376, abs=5e-5)
    assert set(left[1]) >= {95, 96, 97, 98, 99}


def test_the_page_on_audits_runs():
    exec(compile(python_blocks("audit.md"), "audit.md", "exec"), {})


def test_the_page_on_propose_test_release_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = python_blocks("propose-test-release.md").replace("[...]", "[i / 1000 for i in range(20_000)]")
    names = {}
    exec(compile(code, "propose-test-release.md", "exec"), names)
    # each of the two answers fails its test with probability below 1e-6
    assert names["found"] is not None
    assert 0.8 <= float(names["budget"].spent().epsilon) <= 1.0
