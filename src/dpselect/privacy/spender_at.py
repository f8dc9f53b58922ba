"""The delta that a caller asks for is the delta that is charged."""

from __future__ import annotations

from typing import Protocol, SupportsFloat, overload, runtime_checkable

from dpselect.errors import number
from dpselect.privacy.release import Spender

__all__ = ["spender_at"]


@runtime_checkable
class _Budget(Protocol):
    """A budget of a ledger: one that adds up ("output") can price every guarantee at a delta that is asked for."""

    @property
    def accounting(self) -> str: ...

    def at(self, *, delta: float) -> Spender: ...


@overload
def spender_at(spender: Spender, delta: SupportsFloat | None) -> Spender: ...


@overload
def spender_at(spender: Spender | None, delta: SupportsFloat | None) -> Spender | None: ...


def spender_at(spender: Spender | None, delta: SupportsFloat | None) -> Spender | None:
    """The spender that prices guarantees at `delta`, where it is a budget that would take a delta of its own choice.

    Filters and sequences count in units that need no delta, and `Budget.at` has one already: they stay as they are, as
    does every spender where none is asked for (None, or 0, at which the guarantee itself says what it costs).
    """
    if delta is None or not (isinstance(spender, _Budget) and spender.accounting == "output"):
        return spender
    asked = number("delta", delta, at_least=0.0, below=1.0)
    return spender.at(delta=asked) if asked else spender
