"""What a reproduction says: rows with the paper's value, ours and the optimal one, and the verdict on each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dpselect.errors import ArgumentError
from dpselect.randomness import RandomSource

__all__ = ["Context", "Curve", "Figure", "Known", "Paper", "Part", "Reproduction", "Row", "Verdict"]

Verdict = Literal["reproduced", "differs, explained", "differs", "not in the paper"]
Known = Literal["printed", "formula", "claim"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One number of a paper beside ours.

    `paper` is the paper's value, None where the paper leaves it unspecified (`note` then says what). `known` says how
    it is known: "printed" or read off a plot; "formula", where the paper prints a formula and its settings and plots
    the curve, so that the value is theirs, worked out apart from this library; "claim", a sentence of the text turned
    into a number, as the row's name says. `ours` is computed from the statement as published, `optimal` by the sharpest
    sound method of this library, where there is one. The row is reproduced if `paper` and `ours` differ by at most
    `tolerance` (absolute), which must have a reason: printed digits, reading a plot, or the spread of a simulation.
    `note` explains a difference.
    """

    name: str
    paper: float | None
    ours: float
    optimal: float | None = None
    tolerance: float = 0.0
    note: str = ""
    known: Known = "printed"

    def __post_init__(self) -> None:
        if any(value is not None and math.isnan(value) for value in (self.paper, self.ours, self.optimal)):
            raise ArgumentError(f"row {self.name!r}: a value is not a number")
        if not (self.tolerance >= 0.0 and math.isfinite(self.tolerance)):
            raise ArgumentError(f"tolerance must be a finite number that is not negative, got {self.tolerance}")
        if self.paper is None and not self.note:
            raise ArgumentError(f"row {self.name!r}: say in the note what the paper leaves unspecified")

    @property
    def verdict(self) -> Verdict:
        """Whether the number reproduces."""
        if self.paper is None:
            return "not in the paper"
        if self.paper == self.ours or abs(self.paper - self.ours) <= self.tolerance:
            return "reproduced"
        return "differs, explained" if self.note else "differs"

    def describe(self) -> dict[str, Any]:
        """JSON-able; infinite values as null."""
        numbers = {"paper": self.paper, "ours": self.ours, "optimal": self.optimal, "tolerance": self.tolerance}
        finite = {
            name: value if value is not None and math.isfinite(value) else None for name, value in numbers.items()
        }
        known = None if self.paper is None else self.known
        return {"name": self.name, **finite, "known": known, "verdict": self.verdict, "note": self.note}


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One line of a plot; `style` is a Matplotlib format such as "--"; `band` the half-width of an interval."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    style: str = "-"
    band: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not all(len(values) == len(self.x) for values in (self.y, self.band or self.y)):
            raise ArgumentError(f"curve {self.label!r}: x, y and band must have one length")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A plot as data, so that it can be tested, written as JSON and drawn by whoever likes."""

    name: str
    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one table or figure of a paper came to."""

    source: str  # "Figure 3", "Table 1", "Theorem 3.1"
    rows: tuple[Row, ...]
    figures: tuple[Figure, ...] = ()
    unspecified: tuple[str, ...] = ()  # what the paper leaves open, and what we chose


@dataclass(frozen=True)
class Context:
    """How to run: quick or full, the source that everything draws from, and where progress is told."""

    quick: bool
    random: RandomSource
    files: Mapping[str, str] = field(default_factory=dict)  # data that the user gives, such as MNIST
    progress: Callable[[str], None] = lambda _what: None


@dataclass(frozen=True, kw_only=True)
class Paper:
    """One paper: its parts in order, each a function of the context. The seconds were measured on two cores.

    `takes` names the files that the user may give.
    """

    name: str
    citation: str
    parts: Mapping[str, Callable[[Context], Part]]
    full_seconds: float
    quick_seconds: float
    takes: tuple[str, ...] = ()

    def run(self, context: Context) -> Iterator[tuple[str, Part]]:
        """One part after another; each draws from a source of its own, so parts do not depend on each other."""
        for name, part in self.parts.items():
            context.progress(name)
            yield name, part(Context(context.quick, context.random.spawn(name), context.files, context.progress))


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A finished reproduction."""

    paper: Paper
    quick: bool
    parts: Mapping[str, Part]
    seconds: float

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows."""
        return tuple(row for part in self.parts.values() for row in part.rows)

    @property
    def reproduced(self) -> bool:
        """Whether every row of the paper is within its tolerance or its difference is explained."""
        return all(row.verdict != "differs" for row in self.rows)
