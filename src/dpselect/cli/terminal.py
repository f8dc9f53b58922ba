"""The one place where the command line writes: no text of a file, a name or a server steers the terminal.

Names of columns, files and keys come from others. Characters that would move the cursor, change the direction of
writing or colour the text are written as escapes, such as \\x1b. Nothing is taken for markup.
"""

from __future__ import annotations

import json
import sys
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

__all__ = ["ask", "bars", "console", "plain", "print_json", "put", "say", "shown_warnings", "warn", "write_data"]

_KEPT: Final = "\n\t"
_SPACES: Final = "Zs"


def plain(text: str) -> str:
    """The text with an escape in place of each sign that is not printed as itself. Ends of lines and tabs stay.

    >>> plain("a" + chr(27) + "[31m [red]") == "a" + chr(92) + "x1b[31m [red]"
    True
    """
    if text.isprintable():
        return text
    return "".join(sign if _harmless(sign) else ascii(sign)[1:-1] for sign in text)


def _harmless(sign: str) -> bool:
    return sign.isprintable() or sign in _KEPT or unicodedata.category(sign) == _SPACES


def say(*lines: str) -> None:
    """Results for people, on standard output."""
    typer.echo(_for(sys.stdout, "\n".join(lines)))


def print_json(found: Any, *, indent: int | None = None) -> None:
    """A result for programs, on standard output: JSON in ASCII."""
    typer.echo(json.dumps(found, indent=indent))


def warn(*lines: str) -> None:
    """Everything else, on standard error."""
    typer.echo(_for(sys.stderr, "\n".join(lines)), err=True)


def write_data(text: str) -> None:
    """Data on standard output, as they are if that is a file or a program. No end of a line is added."""
    typer.echo(_for(sys.stdout, text) if sys.stdout.isatty() else text, nl=False)


def put(stream: TextIO, text: str) -> None:
    """A line that the next one overwrites. An empty text ends it."""
    stream.write(f"\r{plain(text)}" if text else "\n")
    stream.flush()


def ask(question: str, default: str = "") -> str:
    """A person's answer, without blanks around it."""
    answer: str = typer.prompt(plain(question), default=default, show_default=bool(default), err=True)
    return answer.strip()


def console(stream: TextIO | None = None, *, width: int | None = None) -> Console:
    """For tables and bars. Their texts go through `plain`."""
    from rich.console import Console

    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False)


def bars(stream: TextIO, *columns: ProgressColumn, disable: bool = False) -> Progress:
    """Bars of progress, gone in the end. Their names go through `plain`."""
    from rich.progress import Progress, TextColumn

    named = TextColumn("{task.description}", markup=False)
    shown = console(stream)
    return Progress(
        named, *columns, console=shown, transient=True, redirect_stdout=False, redirect_stderr=False, disable=disable
    )


@contextmanager
def shown_warnings() -> Iterator[None]:
    """Warnings that reach standard error are written by `plain`."""
    before = warnings.formatwarning

    def written(message: Any, category: type[Warning], *_: Any) -> str:
        return f"{plain(f'{category.__name__}: {message}')}\n"

    warnings.formatwarning = written  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.formatwarning = before


def _for(stream: TextIO, text: str) -> str:
    """The text, as far as the stream can hold it."""
    encoding = stream.encoding or "utf-8"
    return plain(text).encode(encoding, "backslashreplace").decode(encoding)
