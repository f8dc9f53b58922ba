"""The relation of neighbouring data sets. Guarantees with different adjacencies never compose."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from dpselect.errors import AdjacencyError

__all__ = ["Adjacency", "common_adjacency", "parse_adjacency"]


class Adjacency(StrEnum):
    """A symmetric relation between data sets."""

    ADD_OR_REMOVE_ONE = "add_or_remove_one"
    """One has a row more than the other; the number of rows is private."""

    REPLACE_ONE = "replace_one"
    """They differ in the content of one row; the number of rows is public."""


def parse_adjacency(adjacency: Adjacency | str) -> Adjacency:
    """Accept the enumeration or its text.

    >>> parse_adjacency("replace_one").value
    'replace_one'
    """
    try:
        return Adjacency(adjacency)
    except ValueError:
        names = ", ".join(repr(a.value) for a in Adjacency)
        raise AdjacencyError(f"adjacency must be one of {names}, got {adjacency!r}") from None


def common_adjacency(adjacencies: Iterable[Adjacency | str]) -> Adjacency:
    """Return the adjacency that all share, or raise `AdjacencyError` if they differ."""
    found = sorted({parse_adjacency(a) for a in adjacencies})
    if len(found) != 1:
        raise AdjacencyError(f"guarantees with different adjacencies never compose, got {[a.value for a in found]}")
    return found[0]
