"""Spenders of a search: for more than the search by itself, and for a copy that has none."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NoReturn

from dpselect.errors import BudgetError
from dpselect.privacy import ClaimSpender, Guarantee, OutputGuarantee, Spender
from dpselect.privacy.release import Receipt

__all__ = ["LedgerNotPickled", "whole_price"]


@dataclass(frozen=True)
class LedgerNotPickled:
    """In the place of the ledger of a search that was pickled: a copy that spent nothing would pay for nothing."""

    def reserve(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse."""
        raise BudgetError(
            "this search is a pickled copy (made for another process?), and its ledger stayed behind: "
            "set_params(ledger=...) where it is fitted, or ledger=None to fit it unpaid"
        )

    settle = reserve


def whole_price(spender: Spender, whole: Guarantee) -> Spender:
    """A spender that reserves `whole` in place of the guarantee that it is asked for, which is a part."""
    if isinstance(spender, ClaimSpender):
        return _WholePriceOnce(spender, whole)
    return _WholePrice(spender, whole)


@dataclass(frozen=True)
class _WholePrice:
    spender: Spender
    whole: Guarantee

    def reserve(self, guarantee: Guarantee | OutputGuarantee, *, label: str, identifier: str) -> Receipt:  # noqa: ARG002
        """Reserve the whole."""
        # payments: a spender that hands on to another
        return self.spender.reserve(self.whole, label=label, identifier=identifier)

    def settle(self, identifier: str, *, cell: Hashable | None = None) -> Receipt:
        """Settle it in full."""
        return self.spender.settle(identifier, cell=cell)  # payments: a spender that hands on to another


@dataclass(frozen=True)
class _WholePriceOnce:
    """With the claims of a spender that has them."""

    spender: ClaimSpender
    whole: Guarantee

    def reserve(self, guarantee: Guarantee | OutputGuarantee, **terms: Any) -> Receipt:  # noqa: ARG002
        """Reserve the whole."""
        return self.spender.reserve(self.whole, **terms)  # payments: a spender that hands on to another

    def claim(self, identifier: str, *, binding: str, claim: str) -> str | None:
        """Take it over."""
        return self.spender.claim(identifier, binding=binding, claim=claim)

    def settle(self, identifier: str, **terms: Any) -> Receipt:
        """Settle it in full."""
        return self.spender.settle(identifier, **terms)  # payments: a spender that hands on to another
