"""A reservation in the hands of whoever runs the mechanism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dpselect.ledger.refusals import LedgerError
from dpselect.privacy import OutputGuarantee, Receipt

__all__ = ["Charge"]


@dataclass(frozen=True)
class Charge(Receipt):
    """The receipt of a reservation, with the way to settle it.

    Used as a context it does nothing at the end: what was not settled stays charged in full, whatever happened.
    """

    _settle: Callable[[Any], Receipt] | None = field(default=None, repr=False, compare=False)
    """Takes the output, or `OutputGuarantee` in place of one: None is an output too."""

    def settle(self, output: Any = OutputGuarantee) -> Receipt:
        """Close the reservation at the cell of the output that was released; without an output, in full.

        Only the epsilon of an output guarantee in an `output` budget comes back, and in a filter on Renyi divergences
        what was not used of them; delta never does. Durable on return.
        Raises `ArgumentError` when the output is in no cell of the partition and `AlreadySettledError` the second time;
        the reservation then stands as it was.
        """
        if self._settle is None:
            raise LedgerError("this receipt has left its process: settle through the budget, by its identifier")
        return self._settle(output)

    def __enter__(self) -> Charge:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        return Receipt, (self.account, self.identifier, self.charged, self.sequence, self.head)
