"""`dpselect audit MODULE:NAME`: does a mechanism keep its claim?"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from dpselect.audit import (
    FiniteSubject,
    OneRunAudit,
    Subject,
    audit as black_box,
    audit_outputs,
    command_subject,
    exact_audit,
    sampled,
)
from dpselect.audit.entry import Auditable, function_of_data, resolve_entry, subject_of, where_it_failed
from dpselect.audit.result import Audit
from dpselect.cli.described import BASE_HELP, base_of
from dpselect.cli.options import AsJson, print_result
from dpselect.cli.terminal import bars, plain, warn
from dpselect.decoding.arrays import array_of
from dpselect.decoding.json_text import json_file, json_of
from dpselect.decoding.limits import AUDITED, LimitError
from dpselect.errors import ArgumentError, ContentError, number
from dpselect.privacy import Guarantee, approximate_dp, pure_dp
from dpselect.randomness import keyed_source

__all__ = ["audit"]

_DRAWS, _QUICK = 1_000_000, 20_000
_RUNS = 2_000  # of a command, which takes longer to start than a function
CLAIM_HELP = BASE_HELP.removeprefix("One run: ")
_CANNOT_TELL = 4  # 3 is a refusal by a budget, in other commands
_INTERRUPTED = 130  # what shells say of a program that was stopped by Ctrl-C


def audit(
    entry: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODULE:NAME]",
            help="A function of the data, or a Subject, a FiniteSubject, a OneRunAudit or a function that returns "
            "one. Its module is imported from the current folder first.",
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="For a function: its argument as JSON, or @FILE with JSON in it.")
    ] = None,
    neighbour: Annotated[str | None, typer.Option(help="The neighbouring data set, in the same form.")] = None,
    claim: Annotated[
        str | None, typer.Option(help="The claimed guarantee, in place of the subject's own. " + CLAIM_HELP)
    ] = None,
    claim_epsilon: Annotated[float | None, typer.Option(help="In place of --claim: an epsilon.")] = None,
    claim_delta: Annotated[float | None, typer.Option(help="With --claim-epsilon: a delta. The default is 0.")] = None,
    outputs: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="DATA.npy NEIGHBOUR.npy", help="In place of MODULE:NAME: files of outputs that you drew."),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            help="In place of MODULE:NAME: a command to run for each draw. {data} in it becomes the path of --data "
            "or --neighbour. Its output is everything that it prints and writes, and its exit status."
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(help=f"Outputs to draw from each data set. The default is {_DRAWS}, or {_RUNS} of a command."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help=f"Only {_QUICK} draws. Finds only large faults.")] = False,
    confidence: Annotated[
        float, typer.Option(help="A true claim is called violated with probability at most 1 - confidence.")
    ] = 0.99,
    delta: Annotated[
        float | None, typer.Option(help="The delta of the measured epsilon. The default is the claim's delta, or 1e-5.")
    ] = None,
    ignore_low_bits: Annotated[bool, typer.Option("--ignore-low-bits", help="Ignore the last bits of floats.")] = False,
    key: Annotated[
        str | None,
        typer.Option(help="A key that makes the draws repeatable, if the subject draws from the given source."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Try to show that a mechanism leaks more than it claims. An audit never proves that it does not.

    Exit status: 0 not violated, 1 violated, 4 undecided (the audit would often miss a leak of twice the claim), 2 wrong
    usage, 130 interrupted. The audit runs the mechanism many times and shows its outputs, so use synthetic data.
    """
    if sum(given is not None for given in (entry, outputs, command)) != 1:
        raise ArgumentError("give either an entry point MODULE:NAME, or --outputs, or --command")
    if quick and draws is not None:
        raise ArgumentError("give either --quick or --draws")
    number("--confidence", confidence, above=0.0, below=1.0)
    if delta is not None:
        number("--delta", delta, at_least=0.0, below=1.0)
    promised = _claim(claim, claim_epsilon, claim_delta)
    random = None if key is None else keyed_source(key)
    how: dict[str, Any] = {"confidence": confidence, "delta": delta, "random": random}
    try:
        if outputs is not None:
            if promised is None or data is not None or neighbour is not None or draws is not None or quick:
                raise ArgumentError("--outputs needs a claim, and goes without data, --draws and --quick")
            one, other = outputs
            how |= {"name": f"{one.name} and {other.name}", "low_bits": not ignore_low_bits}
            found = audit_outputs(_array(one), _array(other), promised, **how)
        else:
            with _output_to_stderr(), _current_folder():  # anything that the mechanism prints is no result
                subject: Auditable
                if command is not None:
                    subject, draws = _command(command, data, neighbour, promised), draws or _RUNS
                else:
                    subject = _subject(str(entry), data, neighbour, promised)
                subject = _sized(subject, draws, quick=quick)
                wanted = _QUICK if quick else _DRAWS if draws is None else draws
                found = _run(subject, wanted, how, low_bits=not ignore_low_bits)
    except KeyboardInterrupt:
        warn("dpselect: interrupted; nothing is said about the claim")
        raise typer.Exit(_INTERRUPTED) from None
    print_result(found.describe(), as_json, *found.lines())
    if found.verdict != "not violated":
        raise typer.Exit(1 if found.violated else _CANNOT_TELL)


def _sized(subject: Auditable, draws: int | None, *, quick: bool) -> Auditable:
    """The subject, if so many draws of it make sense. A finite one is computed unless draws are asked for."""
    if isinstance(subject, OneRunAudit) and (quick or draws is not None):
        raise ArgumentError("--draws and --quick: a one-run audit trains once")
    return sampled(subject) if isinstance(subject, FiniteSubject) and draws is not None else subject


def _run(subject: Auditable, draws: int, how: dict[str, Any], *, low_bits: bool) -> Audit:
    if isinstance(subject, Audit):
        return subject
    with _progress(subject.name) as progress:
        try:
            if isinstance(subject, FiniteSubject):
                return exact_audit(subject, delta=how["delta"])
            if isinstance(subject, OneRunAudit):
                return subject.run(**how)
            return black_box(subject, draws=draws, low_bits=low_bits, progress=progress, **how)
        except (ArgumentError, KeyboardInterrupt):
            raise
        except BaseException as error:  # SystemExit as well: its status would be taken for a verdict
            raise ArgumentError(f"{subject.name}: drawing failed: {where_it_failed(error)}") from error


@contextmanager
def _output_to_stderr() -> Iterator[None]:
    """Send the mechanism's standard output to standard error, also that of its C code and of child processes."""
    with ExitStack() as undone:
        if sys.stdout is sys.__stdout__ and sys.stdout is not None:  # else someone took it already
            sys.stdout.flush()
            kept = os.dup(1)
            undone.callback(os.close, kept)
            undone.callback(os.dup2, kept, 1)
            os.dup2(2, 1)
        undone.enter_context(redirect_stdout(sys.stderr))
        yield


@contextmanager
def _current_folder() -> Iterator[None]:
    """Let the mechanism import what is in the current folder, as `python -m` does."""
    sys.path.insert(0, folder := os.getcwd())
    try:
        yield
    finally:
        with suppress(ValueError):  # the mechanism may have changed it
            sys.path.remove(folder)


@contextmanager
def _progress(name: str) -> Iterator[Callable[[float], None]]:
    """The share of the draws, on standard error."""
    from rich.progress import BarColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with bars(sys.stderr, *columns, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(plain(f"drawing: {name}"), total=1.0)
        yield lambda share: bar.update(task, completed=share)


def _claim(claim: str | None, epsilon: float | None, delta: float | None) -> Guarantee | None:
    if claim is not None:
        if epsilon is not None or delta is not None:
            raise ArgumentError("give either --claim or --claim-epsilon")
        return base_of(claim, adjacency="add_or_remove_one")
    if epsilon is None:
        if delta is not None:
            raise ArgumentError("--claim-delta goes with --claim-epsilon")
        return None
    number("--claim-epsilon", epsilon, at_least=0.0)
    number("--claim-delta", delta or 0.0, at_least=0.0, below=1.0)
    return approximate_dp(epsilon=epsilon, delta=delta) if delta else pure_dp(epsilon=epsilon)


def _subject(entry: str, data: str | None, neighbour: str | None, claim: Guarantee | None) -> Auditable:
    if (data is None) != (neighbour is None):
        raise ArgumentError("--data and --neighbour: give both or neither")
    found = resolve_entry(entry)
    if data is not None and neighbour is not None:
        if claim is None:
            raise ArgumentError("a function of data makes no claim: give --claim or --claim-epsilon")
        pair = _json("--data", data), _json("--neighbour", neighbour)
        return function_of_data(found, data=pair[0], neighbour=pair[1], claim=claim, name=entry)
    subject = subject_of(found, name=entry)
    if claim is None:
        return subject
    if isinstance(subject, Audit):
        raise ArgumentError(f"entry point {entry!r} gives a finished audit; it takes no claim")
    return replace(subject, claim=claim)


def _command(command: str, data: str | None, neighbour: str | None, claim: Guarantee | None) -> Subject:
    if data is None or neighbour is None or claim is None:
        raise ArgumentError("--command needs --data FILE, --neighbour FILE and --claim or --claim-epsilon")
    return command_subject(command, data=data.removeprefix("@"), neighbour=neighbour.removeprefix("@"), claim=claim)


def _json(flag: str, text: str) -> Any:
    """Parse a data set. Neither a message nor a traceback shows it."""
    if text.startswith("@"):
        try:
            return json_file(Path(text[1:]), AUDITED)
        except OSError:
            raise ArgumentError(f"{flag}: {text[1:]} cannot be read") from None
        except ContentError as error:
            raise ArgumentError(f"{flag}: {error}") from None
    try:
        return json_of(text, AUDITED, flag)
    except ContentError as error:
        raise ArgumentError(str(error)) from None


def _array(path: Path) -> Any:
    try:
        return array_of(path, AUDITED)
    except LimitError as error:
        raise ArgumentError(f"--outputs: {error}") from None
    except (OSError, ContentError):
        raise ArgumentError(f"--outputs: {path} is not an array of numbers or text that NumPy saved") from None
