"""Limits of one trial. Off by default, and counts rather than seconds where that is possible."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from dpselect.errors import ArgumentError, expect, integer, number

__all__ = ["LimitReachedError", "Limits", "count", "counting"]


class LimitReachedError(Exception):
    """A trial counted further than its limit, so it fails. Names neither the count nor the number."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of what one trial may use. A trial that uses more has failed, which ranks below every score.

    A limit in `counts` is part of the objective: whether a run reaches it follows from its data and its key, so a
    replay agrees. The guarantee of one run has to cover that it failed, as it has to for every other failure.

    `seconds` and `memory_bytes` are not like that. The time and the memory of a run depend on the data in ways that no
    noise covers, and failing at a limit tells of it. One row that slows a run down can decide which run wins. A replay
    need not agree, so the outcome is recorded in the store before anything follows from it, and never tried again.

    Such trials run in a process of their own. If it dies by itself, for example because memory ran out, the attempt is
    lost: the trial is run again like that of any worker that dies. These two limits do not exist on Windows.

    Args:
        counts: the most of each count, by name, for what the objective counts with `dpselect.tuning.count(name)`:
            steps, rows, epochs. By default nothing is counted.
        seconds: the most wall time of a trial, above 0. None: no limit. At this time its process is killed, with all
            that it has started.
        memory_bytes: the most address space of the trial's process, libraries included. None: no limit.
        failure_is_private: needed for `seconds` and for `memory_bytes`. With True you state that the guarantee of one
            run covers a failure there too, because neither depends on any one row.

    Raises:
        ArgumentError: for a limit out of range, for seconds or bytes without `failure_is_private`, or for either on
            Windows.
        TypeError: if `counts` is not a mapping.

    >>> Limits(counts={"steps": 1000}).describe()
    {'counts': {'steps': 1000}}
    >>> Limits(seconds=60)
    Traceback (most recent call last):
    dpselect.errors.ArgumentError: seconds needs failure_is_private=True: no noise protects what such a failure tells
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    seconds: float | None = None
    memory_bytes: int | None = None
    failure_is_private: bool = False

    def __post_init__(self) -> None:
        expect("counts", self.counts, Mapping)
        counts = {str(name): integer(f"counts[{name!r}]", most, at_least=0) for name, most in self.counts.items()}
        object.__setattr__(self, "counts", counts)
        if self.seconds is not None:
            object.__setattr__(self, "seconds", number("seconds", self.seconds, above=0.0))
        if self.memory_bytes is not None:
            integer("memory_bytes", self.memory_bytes, at_least=1)
        if self.supervised and os.name == "nt":
            raise ArgumentError("limits in seconds or bytes are not available on Windows")
        if self.supervised and self.failure_is_private is not True:
            name = "seconds" if self.seconds is not None else "memory_bytes"
            raise ArgumentError(f"{name} needs failure_is_private=True: no noise protects what such a failure tells")

    @property
    def supervised(self) -> bool:
        """Whether trials need a process of their own that can be killed."""
        return self.seconds is not None or self.memory_bytes is not None

    def describe(self) -> dict[str, Any]:
        """A JSON-able description, without what is not limited."""
        set_here = {"counts": dict(self.counts), "seconds": self.seconds, "memory_bytes": self.memory_bytes}
        return {name: value for name, value in set_here.items() if value}


_left: Final[ContextVar[dict[str, int] | None]] = ContextVar("dpselect_left_to_count", default=None)


def count(name: str, amount: int = 1) -> None:
    """Count steps, rows or anything else in an objective, and end the trial when it passes its limit.

    Does nothing for a name without a limit, and outside a trial.

    Args:
        name: the count, as in `Limits(counts=...)`.
        amount: how much to add, an integer of at least 0.

    Returns:
        None.

    Raises:
        LimitReachedError: if the count passes its limit, which ends the trial as failed.
        ArgumentError: inside a trial, for a negative `amount`.

    >>> count("steps")
    """
    left = _left.get()
    if left is not None:
        amount = integer("amount", amount, at_least=0)
        if name in left:
            left[name] -= amount
            _check(left)


def _check(left: Mapping[str, int]) -> None:
    if any(most < 0 for most in left.values()):
        raise LimitReachedError


@contextmanager
def counting(limits: Limits | None) -> Iterator[None]:
    """Count from zero in this block. An objective that swallows `LimitReachedError` is ended here anyway."""
    left = {} if limits is None else dict(limits.counts)
    token = _left.set(left)
    try:
        yield
        _check(left)
    finally:
        _left.reset(token)
