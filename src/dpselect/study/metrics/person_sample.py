"""How the rows of a figure were drawn: each by itself, or several of one person, which may be alike."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["SINGLE_ROWS", "PersonSample"]


class PersonSample(NamedTuple):
    """Rows of independent persons, each with `per_person` rows at most. The rows of one may depend on each other.

    `rows` is about how many rows there are, public. It decides how short an interval is, never whether it holds. A
    number that depends on the rows would not do: how many rows a person has may tell of what they hold.

    Source: docs/theory/persons.md, Theorem 4.
    """

    per_person: int = 1
    rows: float = 0.0


SINGLE_ROWS: Final = PersonSample()
"""Independent rows."""
