"""The commands by name: their help, their examples, and one that is gone."""

import pytest
import typer
from typer.testing import CliRunner

from dpselect.cli.app import app
from dpselect.cli.commands import COMMANDS as LINES, EXAMPLES, Later
from dpselect.errors import ArgumentError


def commands(group, words=()):
    for name, known in group.commands.items():
        command = known.loaded if isinstance(known, Later) else known
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.cases(11)
@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_shows_its_examples(words):
    shown = CliRunner().invoke(app, [*words.split(), "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).stdout
    assert EXAMPLES[words]
    for example in EXAMPLES[words]:
        assert example.startswith(f"dpselect {words} ")
        assert example in shown


@pytest.mark.parametrize("name", LINES)
def test_the_line_of_a_command_is_the_first_of_its_help(name):
    assert typer.main.get_command(app).commands[name].loaded.help.splitlines()[0] == LINES[name]


def test_no_example_is_of_a_command_that_does_not_exist():
    assert set(EXAMPLES) <= set(COMMANDS)


def test_reproduce_is_answered_with_the_command_to_type_now():
    with pytest.raises(ArgumentError, match="python -m papers PAPER"):
        CliRunner().invoke(app, ["reproduce", "tuning-rdp", "--quick"], catch_exceptions=False)
    assert "reproduce" not in CliRunner().invoke(app, ["--help"]).stdout


@pytest.mark.parametrize("words", COMMANDS)
def test_no_help_has_square_brackets_which_a_terminal_takes_for_markup(words):
    texts = [COMMANDS[words].help, *(getattr(each, "help", "") for each in COMMANDS[words].params)]
    assert not [text for text in texts if text and "[" in text]
