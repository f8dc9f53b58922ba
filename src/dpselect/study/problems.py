"""Problems of a study, collected so that all of them are reported at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from dpselect.errors import ArgumentError, ContentError, StudyError
from dpselect.ledger import LedgerError

__all__ = ["Problems"]

Value = TypeVar("Value")


class Problems:
    """Steps that may refuse, and their errors."""

    def __init__(self, wrong: Sequence[str] = ()) -> None:
        """`wrong` are keys that are known to be wrong: steps that depend on one of them are not taken."""
        self._wrong = tuple(wrong)
        self._found: list[Exception] = []

    def of(self, step: Callable[[], Value], *keys: str) -> Value | None:
        """Return the result of a step that depends on these keys or tables, None if it refuses. Its error is kept."""
        if any(
            f"{key}.".startswith(f"{wrong}.") or wrong.startswith(f"{key}.") for key in keys for wrong in self._wrong
        ):
            return None
        try:
            return step()
        except (ArgumentError, ContentError, LedgerError) as error:
            self._found.append(error)
            return None

    @property
    def lines(self) -> list[str]:
        """The kept errors, each once."""
        return list(dict.fromkeys(map(str, self._found)))

    def none(self) -> None:
        """Raise the kept errors: one as it is, several as a `StudyError`."""
        if len(self._found) == 1:
            raise self._found[0] from None
        if self._found:
            raise StudyError("the study cannot run:\n  " + "\n  ".join(self.lines))
