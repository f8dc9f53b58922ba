"""Guarantees of other kinds: pairs, curves and the objects of other libraries, read by one reader each."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np

from dpselect.errors import AdjacencyError
from dpselect.privacy.adjacency import Adjacency, parse_adjacency
from dpselect.privacy.guarantee import Guarantee
from dpselect.registry import Registry

__all__ = [
    "ON_THE_CALLERS_WORD",
    "READERS",
    "RENYI_ORDERS",
    "foreign_guarantee",
    "foreign_reader",
    "is_plain_number",
    "own_adjacency",
    "taken",
]

ON_THE_CALLERS_WORD: Final = "on the caller's word"
"""In the terms of a guarantee that rests on numbers that dpselect did not compute."""


RENYI_ORDERS: Final = tuple(
    np.concatenate(
        [np.arange(1.05, 5.0, 0.05), np.arange(5.0, 20.0, 0.25), np.arange(20.0, 64.0), np.geomspace(64.0, 4096.0, 60)]
    ).tolist()
)
"""Orders at which a Renyi curve is asked for: chords between them are within 0.2 % of a smooth curve."""


class Reader(Protocol):
    """A function from an object, and the adjacency that the caller names, to its guarantee. None for other objects."""

    def __call__(self, thing: Any, adjacency: Adjacency | None) -> Guarantee | None: ...


READERS: Final = Registry[Reader]("kind of guarantee", room="dpselect.privacy.foreign")
"""By the name of the package that defines the objects."""


def foreign_reader(package: str, *, takes: str) -> Callable[[Reader], Reader]:
    """Return a decorator that registers the reader for the objects of a package.

    Args:
        package: the top-level name of the module in which the objects' class, or a class that it inherits, is defined.
        takes: what is taken, as a message names it.

    Returns:
        The decorator.

    >>> "a DpEvent" in taken()
    True
    """
    return READERS.register(package, takes=takes)


def taken() -> str:
    """Everything that is taken besides a `Guarantee`, in words."""
    return "; ".join(str(READERS.facts(package)["takes"]) for package in READERS)


def own_adjacency(thing: str, own: Adjacency | None, asked: Adjacency | None) -> Adjacency:
    """The adjacency that an object has, if it has one, else the one that was asked for, else add-or-remove-one.

    Raises `AdjacencyError` if both are there and differ.

    >>> own_adjacency("a pair", None, Adjacency.REPLACE_ONE).value
    'replace_one'
    """
    if own is not None and asked is not None and own is not asked:
        raise AdjacencyError(f"adjacency {asked.value!r} was asked for, and {thing} is for {own.value!r}")
    return own or asked or Adjacency.ADD_OR_REMOVE_ONE


def foreign_guarantee(thing: Any, adjacency: Adjacency | str | None) -> Guarantee | None:
    """The guarantee of an object of another kind, or None for an object that no reader knows."""
    asked = None if adjacency is None else parse_adjacency(adjacency)
    for package in dict.fromkeys(cls.__module__.partition(".")[0] for cls in type(thing).__mro__):
        found = READERS[package](thing, asked) if package in READERS else None
        if found is not None:
            return found
    return None


def is_plain_number(value: object) -> bool:
    """Whether a value is a number that a pair may hold.

    >>> is_plain_number(1e-6), is_plain_number(True)
    (True, False)
    """
    return isinstance(value, (int, float, Fraction, Decimal, np.integer, np.floating)) and not isinstance(value, bool)
