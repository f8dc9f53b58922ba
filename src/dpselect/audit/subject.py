"""Subjects of audits: a mechanism on a pair of neighbours, and the guarantee that is claimed for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from dpselect.privacy import Guarantee
from dpselect.privacy.promises import hold_promises
from dpselect.randomness import RandomSource

__all__ = ["FiniteSubject", "Subject"]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A mechanism that can be run, on one pair of neighbours.

    You must ensure that the two data sets are neighbours under the claim's adjacency: it is not checked. An audit is
    about this pair only.

    Attributes:
        name: what it is called in a report.
        draw: `draw(neighbour, count, random)` gives `count` independent outputs, on the data (`neighbour` False) or on
            its neighbour (True), as an array of shape (count,) or (count, features): numbers, or labels (text,
            integers, booleans) for outputs without an order. Outputs of several kinds must come as an array of objects,
            since NumPy makes text of numbers beside a text. Mechanisms that draw elsewhere may ignore `random`.
        claim: the guarantee that is claimed.
    """

    name: str
    draw: Callable[[bool, int, RandomSource], NDArray[Any]]
    claim: Guarantee

    def __post_init__(self) -> None:
        hold_promises(self, "claim")


@dataclass(frozen=True, kw_only=True)
class FiniteSubject:
    """A mechanism with finitely many outputs, by its two exact laws.

    Attributes:
        name: what it is called in a report.
        data: the probability of each output on the data. An output that is missing has probability 0.
        neighbour: the same on its neighbour.
        claim: the guarantee that is claimed.
    """

    name: str
    data: Mapping[Hashable, Fraction | float]
    neighbour: Mapping[Hashable, Fraction | float]
    claim: Guarantee

    def __post_init__(self) -> None:
        hold_promises(self, "claim")
