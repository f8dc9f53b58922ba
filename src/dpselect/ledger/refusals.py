"""Refusals and failures of a ledger. After any of these nothing was charged that was not before."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

from dpselect.errors import ArgumentError, BudgetError

__all__ = [
    "MAKES_IT",
    "AdaptiveReservationError",
    "AlreadySettledError",
    "InsufficientBudget",
    "InteractionOpenError",
    "LedgerDamagedError",
    "LedgerError",
    "LedgerMissingError",
    "LedgerUnavailableError",
    "LostLedgerWarning",
    "SchemaVersionError",
    "StaleRecordError",
    "UnwitnessedWarning",
]


MAKES_IT = "create_budget, or `dpselect ledger create`, makes it"


class InsufficientBudget(BudgetError):
    """The error for a request that does not fit a budget. Nothing was charged.

    `requested` and `remaining` hold both amounts by unit, exactly.

    Args:
        budget: the name of the budget.
        requested: the exact amount that was asked for, by unit.
        remaining: the exact amount that is left, by unit. Units that were not asked for are dropped.
    """

    def __init__(self, budget: str, requested: Mapping[str, Fraction], remaining: Mapping[str, Fraction]) -> None:
        self.budget = budget
        self.requested = dict(requested)
        self.remaining = {unit: remaining[unit] for unit in self.requested}
        asked, left = _shown(self.requested, self.remaining), _shown(self.remaining, self.requested)
        said = f"{asked} was asked for, {left} remains; nothing was charged"
        super().__init__(f"budget {budget!r}: {said}{_how_to_share_delta(self.requested, self.remaining)}")

    # copies: an exception with more than a message
    def __reduce__(self) -> tuple[type[InsufficientBudget], tuple[str, dict[str, Fraction], dict[str, Fraction]]]:
        return type(self), (self.budget, self.requested, self.remaining)


def _how_to_share_delta(requested: Mapping[str, Fraction], remaining: Mapping[str, Fraction]) -> str:
    """Advice if delta does not fit: by default the first mechanism that needs any takes all of it."""
    asked, left = (amounts.get("delta", Fraction(0)) for amounts in (requested, remaining))
    if asked <= left:
        return ""
    fits = requested.get("epsilon", Fraction(0)) <= remaining.get("epsilon", Fraction(0))
    what = "Too little delta is left" if left > 0 else "Delta is used up"
    would, when = " (epsilon would fit)" if fits else "", "Give" if left > 0 else "Next time give"
    share = float(left if left > 0 else asked) / 10.0
    return (
        f". {what}{would}. {when} each mechanism a part of it: budget.at(delta={share:.1g}), or delta_each= of "
        "create_budget"
    )


def _shown(amounts: Mapping[str, Fraction], others: Mapping[str, Fraction]) -> str:
    return " and ".join(f"{unit} {_digits(amount, others[unit])}" for unit, amount in amounts.items())


def _digits(amount: Fraction, other: Fraction) -> str:
    """Twelve digits, or twenty where the other amount would look the same."""
    short = f"{float(amount):.12g}"
    if amount == other or short != f"{float(other):.12g}":
        return short
    return f"{Decimal(amount.numerator) / amount.denominator:.20g}"  # decodes: an integer, not text


class AdaptiveReservationError(BudgetError):
    """A budget for a sequence fixed in advance was asked for something else than the next mechanism of the sequence."""


class InteractionOpenError(BudgetError):
    """An interactive mechanism is open on the same data, or would be opened while others are running."""


class AlreadySettledError(ArgumentError):
    """A reservation is settled once."""


class LedgerError(RuntimeError):
    """The record cannot be used as it is."""


class LedgerUnavailableError(LedgerError):
    """The record cannot be written now: locked, read-only, full, on a network file system, or not reachable."""


class LedgerMissingError(LedgerUnavailableError, ArgumentError):
    """There is no ledger where one was named. `create_budget` makes it."""


class LedgerDamagedError(LedgerError):
    """The error for a record that contradicts itself.

    Args:
        message: what is wrong.
        sequence: the number of the first bad entry, or None when the file cannot be read. Kept as `sequence`.
    """

    def __init__(self, message: str, sequence: int | None = None) -> None:
        self.sequence = sequence
        super().__init__(message)


class SchemaVersionError(LedgerError):
    """The record was written by a version of the library that this one does not know."""


class StaleRecordError(LedgerError):
    """The record lacks an entry that the caller or its witness has seen: an older copy, or another ledger."""


class LostLedgerWarning(UserWarning):
    """A new ledger was made where another one used to be: what was spent from that one is not in it."""


class UnwitnessedWarning(UserWarning):
    """The per-user state folder cannot be written, so that an older copy of this ledger would not be found."""
