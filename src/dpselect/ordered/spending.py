"""Paying for a release: the price is reserved before the rows are looked at, and settled when the answer is there."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from dpselect.errors import expect
from dpselect.privacy import Guarantee, Receipt, Spender
from dpselect.privacy.promises import promise

__all__ = ["Payment", "reserve"]


@dataclass(frozen=True)
class Payment:
    """A reservation; without a spender, nothing. One that is never settled stays charged in full."""

    spender: Spender | None
    identifier: str

    def settle(self) -> Receipt | None:
        """Close it in full. Asking again gives the same receipt."""
        return None if self.spender is None else self.spender.settle(self.identifier)


def reserve(spender: Spender | None, guarantee: Guarantee, *, label: str) -> Payment:
    """Reserve a price under a fresh identifier: one that stands in the record already would not be charged again.

    It is durable when this returns. Raises `BudgetError` when the spender refuses.
    """
    guarantee = promise("guarantee", guarantee)
    if spender is not None:
        expect("spender", spender, Spender)
    payment = Payment(spender, secrets.token_hex(16))
    if spender is not None:
        spender.reserve(guarantee, label=label, identifier=payment.identifier)
    return payment
