"""What a reproduction says: rows with the paper's value, ours and the optimal one, and the verdict on each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal

from numpy.typing import NDArray

from dpselect.errors import ArgumentError
from dpselect.randomness import RandomSource

__all__ = [
    "PAPERS",
    "Context",
    "Curve",
    "Figure",
    "Known",
    "Paper",
    "Part",
    "Relation",
    "Reproduction",
    "Row",
    "Verdict",
    "paper_named",
]

PAPERS: Final = ("tuning-rdp", "private-selection", "output-dp", "stable-median", "reorder-slice-compute")
"""By the names that the command line takes; each one's module is imported when it is asked for."""

Verdict = Literal["reproduced", "differs, explained", "differs", "not in the paper"]
Known = Literal["printed", "formula", "claim"]
Relation = Literal["=", ">=", "<="]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One number of a paper beside ours.

    `paper` is the paper's value, None where the paper leaves it unspecified (`note` then says what). `known` says how
    it is known: "printed" or read off a plot; "formula", as most are, where the paper prints a formula and its settings
    and plots the curve, so that the value is theirs, computed apart from this library; "claim", a sentence of the
    text turned into a number, as the row's name says. `ours` is computed from the statement as published, `optimal` by
    the sharpest sound method of this library, where there is one.

    The row is reproduced if `ours` and `paper` are in the `relation` that the paper states (equal; at least; at most),
    to within `tolerance` (absolute), which must have a reason: printed digits, reading a plot, or the spread of a
    simulation. Where they are known not to be, `reason` says why and `corrected` is the value that ours must have
    instead, from another source than `ours`: a row whose value is neither fails, regardless of its reason.
    `note` is a remark that excuses nothing.
    """

    name: str
    ours: float
    paper: float | None = None
    optimal: float | None = None
    relation: Relation = "="
    tolerance: float = 0.0
    note: str = ""
    known: Known = "formula"
    corrected: float | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        values = (self.paper, self.ours, self.optimal, self.corrected)
        if any(value is not None and math.isnan(value) for value in values):
            raise ArgumentError(f"row {self.name!r}: a value is not a number")
        if not (self.tolerance >= 0.0 and math.isfinite(self.tolerance)):
            raise ArgumentError(f"tolerance must be a finite number that is not negative, got {self.tolerance}")
        if self.paper is None and not self.note:
            raise ArgumentError(f"row {self.name!r}: say in the note what the paper leaves unspecified")
        if (self.corrected is None) != (not self.reason):
            raise ArgumentError(f"row {self.name!r}: a corrected value needs a reason, and a reason such a value")

    @property
    def verdict(self) -> Verdict:
        """Whether the number reproduces."""
        if self.paper is None:
            return "not in the paper"
        if self._holds(self.paper, self.relation):
            return "reproduced"
        explained = self.corrected is not None and self._holds(self.corrected, "=")
        return "differs, explained" if explained else "differs"

    @property
    def remark(self) -> str:
        """The reason where it applies, and the note."""
        reason = self.reason if self.verdict == "differs, explained" else ""
        return "; ".join(text for text in (reason, self.note) if text)

    def _holds(self, value: float, relation: Relation) -> bool:
        if self.ours == value:  # also when both are infinite
            return True
        over = self.ours - value
        too_low, too_high = over < -self.tolerance, over > self.tolerance
        return not ((too_low and relation != "<=") or (too_high and relation != ">="))

    def describe(self) -> dict[str, Any]:
        """JSON-able; infinite values as null."""
        numbers = {name: getattr(self, name) for name in ("paper", "ours", "optimal", "tolerance", "corrected")}
        finite = {name: None if value is None or math.isinf(value) else value for name, value in numbers.items()}
        words = {"verdict": self.verdict, "reason": self.reason, "note": self.note}
        known = None if self.paper is None else self.known
        relation = None if self.paper is None else self.relation
        return {"name": self.name, **finite, "relation": relation, "known": known, **words}


@dataclass(frozen=True)
class Curve:
    """One line of a plot; `style` is a Matplotlib format such as "C1--"; `band` the half-width of an interval."""

    label: str
    x: Sequence[float] | NDArray[Any]
    y: Sequence[float] | NDArray[Any]
    style: str = "-"
    band: Sequence[float] | NDArray[Any] | None = None

    def __post_init__(self) -> None:
        if not all(len(values) == len(self.x) for values in (self.y, self.y if self.band is None else self.band)):
            raise ArgumentError(f"curve {self.label!r}: x, y and band must have one length")
        for name in ("x", "y", "band") if self.band is not None else ("x", "y"):
            object.__setattr__(self, name, tuple(float(value) for value in getattr(self, name)))


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A plot as data, so that it can be tested, written as JSON and drawn by anyone who likes."""

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
    """How to run: quick or full, the source that everything draws from, where progress is told and results are written.

    A part may keep in `folder` what takes hours.
    """

    quick: bool
    random: RandomSource
    files: Mapping[str, str] = field(default_factory=dict)  # data that the user gives, such as MNIST
    progress: Callable[[str], None] = lambda _what: None
    folder: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Paper:
    """One paper: its parts in order, each a function of the context. The seconds were measured on two cores.

    `takes` has a check for each name of data that the user may give, which raises before any work if it cannot be used.
    """

    name: str
    citation: str
    parts: Mapping[str, Callable[[Context], Part]]
    full_seconds: float
    quick_seconds: float
    takes: Mapping[str, Callable[[str], None]] = field(default_factory=dict)

    def run(self, context: Context) -> Iterator[tuple[str, Part]]:
        """One part after another; each draws from a source of its own, so parts do not depend on each other."""
        for name, part in self.parts.items():
            context.progress(name)
            yield name, part(replace(context, random=context.random.spawn(name)))


def paper_named(name: str) -> Paper:
    """The paper. Raises `ArgumentError` for a name that is not in `PAPERS`."""
    if name not in PAPERS:
        raise ArgumentError(f"paper must be one of {', '.join(PAPERS)}, got {name!r}")
    paper: Paper = import_module(f"papers.{name.replace('-', '_')}").PAPER
    return paper


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A finished reproduction, or what an interrupted one came to."""

    paper: Paper
    quick: bool
    parts: Mapping[str, Part]
    seconds: float

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows."""
        return tuple(row for part in self.parts.values() for row in part.rows)

    @property
    def missing(self) -> tuple[str, ...]:
        """The parts that are not done: the run was interrupted."""
        return tuple(name for name in self.paper.parts if name not in self.parts)

    @property
    def reproduced(self) -> bool:
        """Whether everything is done and every row is within its tolerance or its difference is explained."""
        return not self.missing and all(row.verdict != "differs" for row in self.rows)
