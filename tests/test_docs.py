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
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == shown


def test_there_is_something_to_test():
    assert len(list(sessions())) >= 3
