"""A running study in a terminal: its stage, the time and the public distribution, never a trial."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final

from dpselect.cli.terminal import bars, plain, put
from dpselect.repetitions import Repetitions
from dpselect.steps import watched

__all__ = ["Shown", "law_in_words", "showing"]

_TRAINING: Final = "training"
"""The stage of one run, as `run_study` names it."""


@dataclass(frozen=True)
class Shown:
    """The callbacks for a study: `stage` for everyone, or `operator_progress`. Both are None if nothing is shown."""

    stage: Callable[[str], None] | None = None
    operator_progress: Callable[[int, int], None] | None = None


@contextmanager
def showing(law: Repetitions, *, quiet: bool, operator: bool) -> Iterator[Shown]:
    """Show progress on standard error, as long as that is a terminal and `quiet` is not asked for.

    By default there is a line for each stage with the time that it has taken, and the public facts about the number of
    runs. Bars have no end, because the end would tell of K. Only if there is one run, which is public, are its steps of
    training counted. With `operator` it shows counts of trials, even without a terminal.
    """
    stream = sys.stderr  # trials run with the standard streams pointed elsewhere
    if operator:

        def count(done: int, total: int) -> None:
            put(stream, f"operator only: {done} of {total} trials ")

        yield Shown(operator_progress=count)
        put(stream, "")
        return
    if quiet or not stream.isatty():
        yield Shown()
        return
    from rich.progress import BarColumn, TimeElapsedColumn  # here, or it would be imported where nothing is shown

    with bars(stream, BarColumn(bar_width=24), TimeElapsedColumn()) as bar:

        def begins(name: str) -> None:
            for task in bar.task_ids:
                bar.update(task, total=1, completed=1)
            words = f"{name}: {law_in_words(law)}" if name == "searching" else name
            bar.add_task(plain(words), total=None)

        def step(name: str, done: int, count: int) -> None:
            for task in bar.tasks[-1:]:
                if task.description.startswith(_TRAINING):  # and not the models that are made for their size
                    words = f"{_TRAINING}: {done} of {count} {name}"
                    bar.update(task.id, description=words, total=count, completed=done)

        with watched(step) if law.limit == 1 == law.minimum else nullcontext():
            yield Shown(stage=begins)


def law_in_words(law: Repetitions) -> str:
    """The public facts about the number of runs.

    >>> from dpselect.repetitions import Harmonic
    >>> law_in_words(Harmonic(limit=20))
    '5.56 runs on average, at most 20'
    """
    if law.limit == 1 == law.minimum:
        return "one run"
    limit = "no hard limit" if law.limit is None else f"at most {law.limit}"
    return f"{law.mean:.3g} runs on average, {limit}"
