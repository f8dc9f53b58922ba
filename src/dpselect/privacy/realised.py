"""The price of an output that was released: a type of its own, which nothing that asks for a promise accepts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, SupportsFloat

from dpselect.errors import number
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.notebook import bound, card

__all__ = ["RealisedPrice"]

_THEOREM = "realised price of one output (Hartmann et al. 2022, Theorem 7)"


@dataclass(frozen=True, kw_only=True)
class RealisedPrice:
    """The price of an output that was released, in a ledger that reserved the worst case before the mechanism ran.

    It settles that reservation and adds up there (Hartmann et al. 2022, Theorem 7). It is no promise about the
    mechanism: 750 outputs of price 0.01 can carry a loss of 7.5, where advanced composition of 750 promises of 0.01
    says 1.5. So it is no `Guarantee`, and whatever composes, amplifies, converts or reserves refuses it. What the
    mechanism promises is `OutputGuarantee.worst()`.

    Attributes:
        price: the epsilon of the cell that the output fell in.
        delta: the delta of the mechanism, common to all cells and never refunded.
        adjacency: which data sets are neighbours.
        cell: the cell, by which a ledger settles; a function of the released output alone.
        theorem: why such prices add up.

    >>> from dpselect.privacy import OutputGuarantee
    >>> gate = OutputGuarantee(cell=lambda output: output is None, epsilons={True: 0.1, False: 1.0}, delta=1e-6)
    >>> paid = gate.observed(None)
    >>> paid.price, paid.epsilon(delta=1e-6), paid.epsilon(delta=0), gate.worst().epsilon(delta=1e-6)
    (0.1, 0.1, inf, 1.0)
    """

    price: float
    delta: float
    adjacency: Adjacency
    cell: Hashable = field(repr=False)
    theorem: str = _THEOREM

    def epsilon(self, delta: SupportsFloat) -> float:
        """The price where `delta` (from 0 to 1) is at least the mechanism's, else inf."""
        return self.price if number("delta", delta, at_least=0.0, at_most=1.0) >= self.delta else float("inf")

    @property
    def terms(self) -> Mapping[str, Any]:
        """A JSON-able description; public numbers only."""
        return MappingProxyType({"mechanism": "output", "epsilon": self.price, "delta": self.delta})

    def notebook_rows(self) -> list[tuple[str, Any]]:
        """What a notebook shows."""
        return [
            ("realised epsilon", bound(self.price)),
            ("delta", self.delta),
            ("adjacency", self.adjacency.value),
            ("theorem", self.theorem),
        ]

    def _repr_html_(self) -> str:
        note = "It settles a reservation of the worst case in a ledger; it is not what the mechanism promises."
        return card("Realised price", self.notebook_rows(), note=note)
