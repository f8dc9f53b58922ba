"""How much work a bracket of epsilon is worth. No value here can make a price too small: each only moves effort.

Upper values are certified and lower ones attained, regardless of where they are evaluated. These numbers say where to
evaluate, and when a bracket is narrow enough. `python benchmarks/optimal.py` times what they do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["EFFORT", "KNOTS", "NEGLIGIBLE", "SECANTS", "START"]

NEGLIGIBLE: Final = 1e-17
"""A delta below which a curve has ended: less than the rounding of a sum of masses."""


@dataclass(frozen=True)
class Effort:
    """The means against a bracket that stays wide, in this order: more pieces, divided atoms, the recursion."""

    wide: float = 1e-3
    """Relative width in epsilon from which three times as many pieces are tried."""
    still_wide: float = 1.5e-3
    """Width after that from which the atoms that leave much open are divided."""
    very_wide: float = 5e-3
    """Width after that from which the recursion runs, which takes longest."""
    wide_delta: float = 1.1
    """Ratio of upper to attained delta from which the recursion looks at one epsilon."""
    first_division: float = 5e-4
    """Relative distance from the root at which division is tried first; doubled until it succeeds."""
    left_open: float = 4e-3
    """An atom is divided if it leaves open more than this fraction of delta."""
    parts: int = 8
    """Into how many parts."""
    most_growth: int = 4
    """Division ends at this many times the atoms."""
    recursion_atoms: int = 800
    """Atoms of the recursion: its time grows with their square."""
    recursion_points: int = 9
    """Epsilons that it looks at together."""
    lost: float = 1e-4
    """Relative rounding error of phi' from which more pieces cannot narrow a bracket."""
    largest_power: int = 64
    """For laws with at least so many runs, phi' falls so fast that its scale is not looked for."""


@dataclass(frozen=True)
class Start:
    """The first guess of a root, on few atoms."""

    merged: int = 8
    """Atoms that are merged into one."""
    smallest_guess: float = 1e-12
    first_factor: float = 1.3
    """Epsilons have any size, so steps are factors, each the power 1.5 of the one before."""
    largest_factor: float = 1e30
    """After such a step the next lower epsilon is 0."""
    rough: float = 1e-3
    """Relative accuracy of the guess."""


@dataclass(frozen=True)
class Secants:
    """The search for the epsilon at which the attained value crosses delta."""

    steps: int = 12
    """After these, bisection: the curve bends too much."""
    step: float = 1e-7
    """Relative step below which a secant step has arrived."""
    bracket: float = 1e-6
    """Relative width at which the points on both sides are the same."""
    least_slope: float = 1e-3
    """Fall of log delta per epsilon that is assumed at least: a floor has none."""
    usual_tries: int = 4
    """After these the bound is far from what is attained, and steps grow faster."""


@dataclass(frozen=True)
class Knots:
    """The places of the points in a table of a curve."""

    scan: int = 49
    """Points that find out how the curve falls."""
    deep: float = 15.0
    """Knots are fewer where log delta has fallen by more: such a delta matters less in a composition."""
    even_share: float = 0.6
    """Knots that are equally spaced up to there, relative to those that are spread by the fall."""
    far: float = 22.0
    """A fall of log delta from which equally spaced knots end."""
    flat_share: float = 0.1
    """Knots that are equally spaced over all, relative to those that are spread by the fall."""
    knots_per_root: float = 1.85
    """Knots over the square root of the atoms of the curve. Their error goes by the inverse of the atoms."""
    pieces_per_root: float = 11.0
    """Atoms over the square root of those of the curve, for the same reason."""
    levels_per_root: float = 60.0
    """Pieces of heavy atoms over the cube root of the atoms of the curve."""
    finest: int = 3000
    """Atoms that are merged to so few, at least."""
    wide: float = 0.03
    """Relative width of delta from which peaks are looked for again: that gains little and takes as long again."""
    together: int = 3
    """With more different searches in a composition, the work is divided among them ..."""
    least: int = 2000
    """... as long as each has the accuracy of so many atoms."""


EFFORT: Final = Effort()
START: Final = Start()
SECANTS: Final = Secants()
KNOTS: Final = Knots()
