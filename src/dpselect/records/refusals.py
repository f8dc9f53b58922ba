"""Why the parts of a record refuse. Each kind of record raises its own error with the same message to its callers."""

__all__ = ["RecordDamagedError", "RecordUnavailableError"]


class RecordUnavailableError(Exception):
    """A database or a witness cannot be used now."""


class RecordDamagedError(Exception):
    """A witness cannot be read."""
