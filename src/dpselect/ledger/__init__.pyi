from .budget import Budget as Budget
from .ledger import Ledger as Ledger
from .refusals import (
    AlreadySettledError as AlreadySettledError,
    InsufficientBudget as InsufficientBudget,
    InteractionOpenError as InteractionOpenError,
    LedgerDamagedError as LedgerDamagedError,
    LedgerError as LedgerError,
    LedgerMissingError as LedgerMissingError,
    LedgerUnavailableError as LedgerUnavailableError,
    LostLedgerWarning as LostLedgerWarning,
    StaleRecordError as StaleRecordError,
    UnwitnessedWarning as UnwitnessedWarning,
)
