"""Reserving more than a search by itself: the search and what is trained after it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from dpselect.privacy import Guarantee, OutputGuarantee, Receipt, Spender

__all__ = ["SpenderForMore"]


@dataclass(frozen=True)
class SpenderForMore:
    """A spender that reserves `whole`, of which the guarantee that it is asked for is a part."""

    spender: Spender
    whole: Guarantee

    def reserve(self, guarantee: Guarantee | OutputGuarantee, *, label: str, identifier: str) -> Receipt:  # noqa: ARG002
        """Reserve the whole."""
        return self.spender.reserve(self.whole, label=label, identifier=identifier)

    def settle(self, identifier: str, *, cell: Hashable | None = None) -> Receipt:
        """Settle it in full."""
        return self.spender.settle(identifier, cell=cell)
