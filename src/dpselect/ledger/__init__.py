"""The budget record: reserve the worst case, run, settle at what came out; verify."""

from dpselect.ledger.accounting import Amounts
from dpselect.ledger.budget import Budget, PricedBudget
from dpselect.ledger.charge import Charge
from dpselect.ledger.entries import Head
from dpselect.ledger.ledger import Ledger
from dpselect.ledger.refusals import (
    AdaptiveReservationError,
    AlreadySettledError,
    InsufficientBudget,
    InteractionOpenError,
    LedgerDamagedError,
    LedgerError,
    LedgerMissingError,
    LedgerUnavailableError,
    LostLedgerWarning,
    SchemaVersionError,
    StaleRecordError,
    UnwitnessedWarning,
)
from dpselect.ledger.transfer import export_lines, import_lines

__all__ = [
    "AdaptiveReservationError",
    "AlreadySettledError",
    "Amounts",
    "Budget",
    "Charge",
    "Head",
    "InsufficientBudget",
    "InteractionOpenError",
    "Ledger",
    "LedgerDamagedError",
    "LedgerError",
    "LedgerMissingError",
    "LedgerUnavailableError",
    "LostLedgerWarning",
    "PricedBudget",
    "SchemaVersionError",
    "StaleRecordError",
    "UnwitnessedWarning",
    "export_lines",
    "import_lines",
]
