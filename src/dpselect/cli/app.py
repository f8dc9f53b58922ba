"""Commands, exit statuses and where output goes.

Results go to standard output, everything else to standard error. Exit status 0 means done, 1 failed, 2 wrong usage, and
3 refused because the budget does not allow it. Exit status 5 means withheld because noisy counts say that too many
cells cannot be read. No status and no message depends on what the runs of a search did.
"""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dpselect import __version__
from dpselect.cli.commands import Commands, Later
from dpselect.cli.terminal import say, shown_warnings, warn
from dpselect.errors import ArgumentError, BudgetError, ContentError, StudyError

__all__ = ["app", "main"]

_UsageError: Any = typer.BadParameter.__base__
"""The base of all errors of the parser, under the one name of it that Typer makes public."""
_LONGEST = 2000
"""Characters of a line of an error: a file may name thousands of columns."""

app = typer.Typer(
    name="dpselect",
    cls=Commands,
    help="Differentially private selection: choose among private runs and know what the choice cost.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(shown: bool) -> None:
    if shown:
        say(f"dpselect {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Differentially private selection: choose among private runs and know what the choice cost."""


def main() -> None:
    """Run the command line. Errors become one line on standard error and an exit status."""
    try:
        with shown_warnings():
            status = app(prog_name="dpselect", standalone_mode=False)
    except _UsageError as error:
        _stop_usage(error)
    except typer.Abort:
        warn("Aborted!")
        sys.exit(1)
    except BudgetError as error:
        _stop(error, 3)
    except StudyError as error:  # names keys of a study file, or flags where that was the place
        _stop(error, 2)
    except (ArgumentError, TypeError) as error:
        _stop(in_flags(str(error), sys.argv[1:]), 2)
    except OSError as error:
        _stop(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else error, 1)
    except (ContentError, RuntimeError) as error:
        _stop(error, 1)
    sys.exit(status if isinstance(status, int) else 0)


def in_flags(message: str, arguments: list[str]) -> str:
    """An error that names arguments of the library, with the flags of the command that was called in their place.

    >>> in_flags("epsilon must be above 0; leave expected_quantile out", ["plan"])
    '--epsilon must be above 0; leave --expected-quantile out'
    """
    command: Any = typer.main.get_command(app)
    for word in arguments:
        inner = command.commands.get(word) if isinstance(command, TyperGroup) else None
        if inner is None:
            break
        command = inner.loaded if isinstance(inner, Later) else inner
    flags = {
        option.name: next(flag for flag in option.opts if flag.startswith("--"))
        for option in command.params
        if option.param_type_name == "option"
    }
    # a noun (the data, no claim), words in quotes, a part of a longer name (privacy.delta) and the word "to", unless a
    # colon follows, are something else
    noun = r"\b(?:a|an|the|no|of|one|each|every|any|this|that|such|takes|makes|more than one)\s+"
    quoted = r"(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"|`[^`]*`"
    names = "|".join(map(re.escape, flags))
    whole = re.compile(rf"({quoted})|({noun})?(?<![\w.,:'\"-])(?!to\b(?!:))({names})(?![\w'\"-]|\.\w)")
    said = whole.sub(lambda found: found[0] if found[1] or found[2] else flags[found[3]], message)
    return re.sub(r"(--[a-z-]+) = ", r"\1 ", said)  # as a study writes it


def _stop_usage(error: Any) -> None:
    """End with what to type. A group without a command is answered by its help."""
    from dpselect.cli.usage import usage_text  # loads what few need

    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        sys.exit(error.exit_code)
    _stop(usage_text(error), 2)


def _stop(error: Exception | str, status: int) -> None:
    said = re.sub(r"\bform\.([a-z_]+)", lambda part: f"--{part[1].replace('_', '-')}", str(error))
    lines = (line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..." for line in said.split("\n"))
    warn("dpselect: " + "\n".join(lines))
    sys.exit(status)
