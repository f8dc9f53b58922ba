"""The relation of neighbouring data sets. Guarantees with different adjacencies never compose."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from dpselect.cures import write_one_of
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
        names = [a.value for a in Adjacency]
        said = f"adjacency must be one of {', '.join(map(repr, names))}, got {adjacency!r}"
        raise AdjacencyError(said + write_one_of("adjacency", adjacency, names)) from None


def common_adjacency(adjacencies: Iterable[Adjacency | str]) -> Adjacency:
    """Return the adjacency that all share, or raise `AdjacencyError` if they differ."""
    found = sorted({parse_adjacency(a) for a in adjacencies})
    if len(found) != 1:
        said = f"guarantees with different adjacencies never compose, got {[a.value for a in found]}"
        cure = f". Write adjacency={found[0].value!r} in each that you make" if found else ""
        raise AdjacencyError(said + cure)
    return found[0]
