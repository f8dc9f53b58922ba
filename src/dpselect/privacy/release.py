"""The release of a private algorithm, and the protocol by which it is paid for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, runtime_checkable

from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.notebook import card
from dpselect.privacy.output.guarantee import OutputGuarantee, RealisedPrice
from dpselect.privacy.promises import hold_promises

__all__ = ["ClaimSpender", "Receipt", "Release", "Spender"]


@dataclass(frozen=True)
class Receipt:
    """Proof that a price was paid: which account, under which identifier, and what was charged.

    `charged` holds public numbers such as `epsilon` and `delta`. From a ledger, `sequence` is the number of the entry
    and `head` the hash of the chain up to it, by which the record can be found to lack the entry.
    """

    account: str
    identifier: str
    charged: Mapping[str, float | str]
    sequence: int | None = None
    head: str | None = None


@dataclass(frozen=True, kw_only=True)
class Release:
    """A released value with its guarantee. It holds no run count, losing candidate or undeclared score.

    Args:
        value: the released value, None when nothing was found.
        guarantee: the promise of the mechanism before it ran, no matter what the outcome.
        receipt: the proof that the price was paid; None, the default, if nothing was charged.
        replayable: whether the release was drawn from a caller's own source. It promises nothing to anyone who knows
            that source's key. False unless given.
        realised: the price of the outcome, in a ledger that reserved the worst case. None, the default, is for
            mechanisms whose outputs all cost the same.

    Raises:
        ArgumentError: if `guarantee` is not a `Guarantee` (`PromiseError`).
    """

    value: Any
    guarantee: Guarantee
    receipt: Receipt | None = None
    replayable: bool = False
    realised: RealisedPrice | None = None

    def __post_init__(self) -> None:
        hold_promises(self, "guarantee")

    def processed(self, function: Callable[[Any], Any]) -> Self:
        """Post-processing: the value becomes (cell, function(value)), and every price stays.

        The cell, by which it was priced, stays in the output, since the price is a function of it. To hide it,
        `coarsen` the guarantee in advance. Without a realised price the value becomes `function(value)`. `function`
        uses no data (you must ensure this).

        >>> levels = OutputGuarantee(cell=len, epsilons={1: 0.5, 2: 1.0})
        >>> release = Release(value=(3, 4), guarantee=levels.worst(), realised=levels.observed((3, 4)))
        >>> total = release.processed(sum)
        >>> total.value, total.realised.price
        ((2, 7), 1.0)
        """
        value = function(self.value)
        return replace(self, value=value if self.realised is None else (self.realised.cell, value))

    def notebook_rows(self) -> list[tuple[str, Any]]:
        """The rows of a notebook's table for the released value, above those of the guarantee."""
        return [("released", "nothing" if self.value is None else self.value)]

    def _repr_html_(self) -> str:
        paid = [] if self.receipt is None else [("charged", dict(self.receipt.charged)), ("to", self.receipt.account)]
        realised = [] if self.realised is None else self.realised.notebook_rows()[:1]
        note = "Drawn from a key: it promises nothing to anyone who knows that key." if self.replayable else ""
        return card("Release", [*self.notebook_rows(), *self.guarantee.notebook_rows(), *realised, *paid], note=note)


@runtime_checkable
class Spender(Protocol):
    """An account that reserves a price before a run and settles it afterwards.

    `reserve` returns only once the worst case is durable, and raises `BudgetError` when the budget does not allow it.
    A reservation that is never settled stays charged in full. Both are idempotent in `identifier`, so it stands for
    one run: draw a new one for every other, or that is not charged.
    """

    def reserve(self, guarantee: Guarantee | OutputGuarantee, *, label: str, identifier: str) -> Receipt:
        """Reserve the worst case of `guarantee` under your identifier, durably."""
        ...

    def settle(self, identifier: str, *, cell: Hashable | None = None) -> Receipt:
        """Close a reservation: at the observed cell of an output guarantee, or in full."""
        ...


@runtime_checkable
class ClaimSpender(Protocol):
    """A `Spender` whose reservations can be bound to one search, so that copies of its store release once.

    A search binds its reservation to its draws, by a text from which nothing of them can be read, and claims it again
    whenever it is resumed. Only the latest claim can settle, once, and names the hash of the release before that is
    written. `Budget` is one. Refusals raise `ClaimError`, and never depend on what a search found.
    """

    def reserve(
        self,
        guarantee: Guarantee | OutputGuarantee,
        *,
        label: str,
        identifier: str,
        binding: str | None = None,
        claim: str | None = None,
    ) -> Receipt:
        """As `Spender.reserve`. With the same binding and another claim it takes an open reservation over."""
        ...

    def claim(self, identifier: str, *, binding: str, claim: str) -> str | None:
        """Take an open reservation over: None, or the hash of the release that it is settled with, "" without one."""
        ...

    def settle(
        self,
        identifier: str,
        *,
        cell: Hashable | None = None,
        claim: str | None = None,
        release: str | None = None,
    ) -> Receipt:
        """As `Spender.settle`. It refuses a claim that is not the latest, and a second release."""
        ...
