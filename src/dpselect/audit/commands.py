"""A whole command as a subject: all that it prints and writes, and how it ends, is its output."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dpselect.audit.callables import collected
from dpselect.audit.subject import Subject
from dpselect.errors import ArgumentError, number
from dpselect.privacy import Guarantee
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource

__all__ = ["CommandOutput", "command_subject"]

_LONGEST: Final = 1 << 20  # bytes of one file or stream that are looked at
_FOLDER: Final = "{folder}"


@dataclass(frozen=True)
class CommandOutput:
    """All that one run of a command shows.

    Attributes:
        status: the exit status, or None if it ran out of time.
        printed: its standard output.
        errors: its standard error.
        files: the files that it wrote or changed, by their path in its folder, each as its text.
    """

    status: int | None
    printed: str
    errors: str
    files: dict[str, str] = field(default_factory=dict)


def command_subject(
    command: str | Sequence[str],
    *,
    data: str | os.PathLike[str],
    neighbour: str | os.PathLike[str],
    claim: Guarantee,
    name: str | None = None,
    timeout: float = 60.0,
) -> Subject:
    """Return a subject whose output is what a command prints, writes and ends with.

    Each draw runs the command in a new empty folder, without a shell. `{data}` in the command stands for the path of a
    copy of the file with the data, which has one name for both data sets. `{folder}` replaces the folder's path in the
    output. A key does not repeat the draws, since the command draws its own randomness. Clock times and process
    numbers in the output break the audit's assumption that draws are independent: turn them off.

    Args:
        command: the program and its arguments. A text is split as a shell splits it.
        data: a file with the data.
        neighbour: a file with the neighbouring data.
        claim: the guarantee that is claimed for all that the command shows.
        name: what it is called in a report (by default its program).
        timeout: seconds until a run is ended. Its status is then None.

    Raises:
        ArgumentError: if a file cannot be read, the command does not name `{data}`, or its program does not start.

    Example:
        >>> import tempfile
        >>> from dpselect.audit import audit
        >>> from dpselect.privacy import pure_dp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for rows, file in (("1 2", "one"), ("1", "other")):
        ...         _ = Path(folder, file).write_text(rows)
        ...     shown = command_subject(
        ...         "cat {data}", data=Path(folder, "one"), neighbour=Path(folder, "other"), claim=pure_dp(epsilon=0.1)
        ...     )
        ...     audit(shown, draws=30).violated
        True
    """
    claim = promise("claim", claim)
    timeout = number("timeout", timeout, above=0.0)
    words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
    if not any("{data}" in word for word in words):
        raise ArgumentError("command must name '{data}', where the path of the file goes")
    contents = _content("data", data), _content("neighbour", neighbour)
    suffix = Path(data).suffix

    def draw(on_neighbour: bool, count: int, random: RandomSource) -> Any:  # noqa: ARG001
        return collected([_run(words, contents[int(on_neighbour)], suffix, timeout) for _ in range(count)])

    return Subject(name=name or words[0], draw=draw, claim=claim)


def _content(argument: str, path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        raise ArgumentError(f"{argument}: {path} cannot be read") from None


def _run(words: Sequence[str], content: bytes, suffix: str, timeout: float) -> CommandOutput:
    with tempfile.TemporaryDirectory(prefix="dpselect-audit-") as made:
        folder = Path(made).resolve()
        given, work = folder / f"data{suffix}", folder / "work"
        given.write_bytes(content)
        work.mkdir()
        command = [word.replace("{data}", str(given)) for word in words]
        try:
            done = subprocess.run(command, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
            status, printed, errors = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            status, printed, errors = None, late.stdout or b"", late.stderr or b""
        except OSError as error:
            raise ArgumentError(f"command: {words[0]} does not start: {type(error).__name__}") from None
        files = {str(path.relative_to(work)): _file(path) for path in sorted(work.rglob("*"))}
        changed = _file(given)
        if changed != _text(content):
            files[given.name] = changed
        shown = {name: text.replace(str(folder), _FOLDER) for name, text in files.items()}
        return CommandOutput(
            status, _text(printed).replace(str(folder), _FOLDER), _text(errors).replace(str(folder), _FOLDER), shown
        )


def _file(path: Path) -> str:
    if path.is_symlink():
        return f"link to {os.readlink(path)}"
    if not path.is_file():
        return "folder" if path.is_dir() else "nothing"
    with path.open("rb") as opened:
        return _text(opened.read(_LONGEST))


def _text(written: bytes) -> str:
    return written[:_LONGEST].decode(errors="surrogateescape")
