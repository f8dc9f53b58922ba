"""What drivers of databases say, which is not passed on: it may quote a cell or a password."""

from __future__ import annotations

__all__ = ["why_not"]


def why_not(error: BaseException) -> str | None:
    """Why a database cannot be read, as far as it is no secret; None where nothing may be said.

    >>> import sqlite3
    >>> why_not(sqlite3.OperationalError("database is locked"))
    'it is locked by another process: wait, or read a copy'
    """
    said = str(error).lower()
    if "lock" in said and ("database is locked" in said or "could not set lock" in said):
        return "it is locked by another process: wait, or read a copy"
    if "not a database" in said or "not a valid duckdb" in said:
        return "the file is no database of this kind"
    return None
