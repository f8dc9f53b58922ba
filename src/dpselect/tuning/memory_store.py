"""The store of a search that is not kept on disk: it cannot be resumed, and there is no key to destroy."""

from __future__ import annotations

from dpselect.privacy import Receipt
from dpselect.randomness import system_source
from dpselect.tuning.machine import Search, Stage

__all__ = ["MemoryStore"]


class MemoryStore:
    """Has the shape of `SealedStore` and writes nothing."""

    def __init__(self, slots: int) -> None:
        self.identifier = system_source().bytes(16).hex()
        self.stage = Stage.NEW
        self.receipt: Receipt | None = None
        self._slots = slots

    def reserved(self, receipt: Receipt | None) -> None:
        """Note that the price is charged."""
        self.receipt = receipt
        self.stage = Stage.RESERVED

    def create_key(self) -> None:
        """Nothing to do."""

    def has_key(self) -> bool:
        """There is no key that could be lost."""
        return True

    def save(self, search: Search) -> None:
        """Note the stage."""
        self.stage = search.stage

    def load(self) -> Search:
        """A new search."""
        return Search(slots=self._slots)

    def wipe(self) -> str | None:
        """Nothing to do."""
        self.stage = Stage.WIPED
        return None
