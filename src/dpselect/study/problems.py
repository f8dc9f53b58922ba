"""What is wrong with a study, collected so that all of it is said at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dpselect.errors import ArgumentError, ContentError, StudyError
from dpselect.ledger import LedgerError

__all__ = ["Problems"]

Value = TypeVar("Value")


class Problems:
    """Steps that may refuse, and what they said."""

    def __init__(self) -> None:
        self._found: list[Exception] = []

    def of(self, step: Callable[[], Value]) -> Value | None:
        """What a step returns; None for one that refuses, which is kept."""
        try:
            return step()
        except (ArgumentError, ContentError, LedgerError) as error:
            self._found.append(error)
            return None

    def none(self) -> None:
        """Raise what was kept: one as it is, several as a `StudyError`."""
        if len(self._found) == 1:
            raise self._found[0] from None
        if self._found:
            raise StudyError("the study cannot run:\n  " + "\n  ".join(map(str, self._found)))
