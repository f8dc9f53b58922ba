"""Sessions that are paid as a whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self

from dpselect.errors import BudgetError
from dpselect.privacy.paying import IN_FULL, Payment
from dpselect.privacy.release import Receipt
from dpselect.randomness.session import Session, answers

__all__ = ["IN_FULL", "PaidSession"]


class PaidSession(Session, ABC):
    """A session with one price for all of its answers.

    It is reserved when the session is made, not at its first answer: what the budget does not allow is then refused
    before there is a secret to ask about, and a ledger keeps other mechanisms out of an interactive one from its
    beginning. `close` settles it at the realised price. As a context it is closed at the end; after an exception it is
    not, and the whole reservation stays charged. Sessions whose answers have a price each reserve each of them.
    """

    _payment: Payment | None = None
    _settled: Receipt | None = None
    _closed = False

    @property
    def receipt(self) -> Receipt | None:
        """Of the settlement, or while the session is open of the reservation; None without a spender."""
        return self._settled or (None if self._payment is None else self._payment.receipt)

    @answers
    def close(self) -> Receipt | None:
        """End the session, and settle at the realised price. Nothing is answered after that."""
        self._closed = True
        if self._payment is not None and self._settled is None:
            self._settled = self._payment.close(self._outcome())
        return self._settled

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()

    def _pay(self, payment: Payment | None) -> None:
        self._payment = payment

    @abstractmethod
    def _outcome(self) -> Any:
        """The output so far, as far as its price depends on it, or `IN_FULL`."""

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise BudgetError("this session is closed and settled; open and charge a new one")
