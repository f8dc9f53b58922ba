"""Output guarantees: an epsilon for each cell of a partition of the outputs, and one delta; the price of an output.

A realised price is a type of its own, which nothing that asks for a promise accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from dpselect.capabilities import field_values
from dpselect.errors import ArgumentError, PromiseError, expect, number
from dpselect.privacy.adjacency import Adjacency, common_adjacency, parse_adjacency
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.mechanisms.pure import approximate_dp
from dpselect.privacy.notebook import bound, card

__all__ = ["OutputGuarantee", "RealisedPrice"]


_THEOREM = "realised price of one output (Hartmann et al. 2022, Theorem 7)"


@dataclass(frozen=True, kw_only=True)
class RealisedPrice:
    """The price of an output that was released, in a ledger that reserved the worst case before the mechanism ran.

    It settles that reservation and adds up there (Hartmann et al. 2022, Theorem 7). It is no promise about the
    mechanism: 750 outputs of price 0.01 can carry a loss of 7.5, where advanced composition of 750 promises of 0.01
    says 1.5. So it is no `Guarantee`, and anything that composes, amplifies, converts or reserves refuses it. The
    mechanism's guarantee is `OutputGuarantee.worst()`.

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
        return (
            self.price
            if number("delta", delta, at_least=0.0, at_most=1.0, rounding="down") >= self.delta
            else float("inf")
        )

    @property
    def terms(self) -> Mapping[str, Any]:
        """A JSON-able description, public numbers only."""
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


@dataclass(frozen=True, kw_only=True)
class OutputGuarantee:
    """A guarantee whose epsilon depends on the cell an output falls in (Hartmann et al., output differential privacy).

    With P and P' the distributions of the output on two neighbouring data sets, for every set S of outputs

        P(S) <= delta + sum over cells C of exp(epsilon(C)) P'(S and C)        (Definition 2)

    A ledger reads a price as its shortest decimal: `charged_amount`.

    You must ensure both of these:

    - The partition and the prices are fixed without looking at the data.
    - The cell is a function of the released output.

    Args:
        cell: a function from an output to its cell.
        epsilons: the price of each cell, at least 0: a mapping, or a function of the cell together with `supremum`.
        delta: common to all cells, in [0, 1), 0 unless given. A delta for each cell does not compose.
        adjacency: the neighbours, an `Adjacency` or its text; add-or-remove-one unless given.
        supremum: a bound on all prices, which must fit a budget before the mechanism runs. None, the default, takes the
            largest price of a mapping. A function of prices needs one.
        interactive: whether the mechanism answers queries that may depend on other releases meanwhile. A ledger then
            lets nothing else run on the same data until it is settled. False unless given.
        ordinary: a guarantee of the whole output that holds beside the prices, if more is known than the largest of
            them. Its pure epsilon must be `worst_epsilon`, and its failure `delta`. Refunds never touch it: they are
            differences of prices. None, the default, means that no more is known.
        used: a function of a cell and of orders to the part of `ordinary`'s Renyi divergence that an output has used. A
            filter gives back the rest. With u(C) the value of `used(C, orders)` at order a, the mean of (P/P')^(a-1)
            exp((1-a) u(cell)) over P is at most 1, in both directions, as queries continue being answered. It is fixed
            in advance and never above that divergence (you must ensure this). None, the default, gives nothing back.

    Raises:
        ArgumentError: if the partition has no cells, prices are negative or not finite, a function of prices has no
            supremum, the supremum is below a price, or `used` has no divergence. Also if `ordinary` has another pure
            epsilon or failure, or is not a `Guarantee` (`PromiseError`).
        AdjacencyError: if `adjacency` is unknown, or that of `ordinary` differs.
        TypeError: if `cell` or `used` is not callable, `epsilons` is neither a mapping nor a function, or a number is
            not.

    >>> g = OutputGuarantee(cell=lambda output: output is None, epsilons={True: 0.1, False: 1.0})
    >>> g.worst().epsilon(delta=0), g.observed(None).epsilon(delta=0)
    (1.0, 0.1)
    """

    cell: Callable[[Any], Hashable]
    epsilons: Mapping[Hashable, float] | Callable[[Hashable], float]
    delta: float = 0.0
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE
    supremum: float | None = None
    interactive: bool = False
    ordinary: Guarantee | None = field(default=None, compare=False)
    used: Callable[[Hashable, NDArray[np.float64]], NDArray[np.float64]] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.cell):
            raise TypeError("cell must be a callable from outputs to cells")
        if self.supremum is not None:
            object.__setattr__(self, "supremum", number("supremum", self.supremum, at_least=0.0, rounding="up"))
        object.__setattr__(self, "delta", number("delta", self.delta, at_least=0.0, below=1.0, rounding="up"))
        object.__setattr__(self, "adjacency", parse_adjacency(self.adjacency))
        if callable(self.epsilons):
            if self.supremum is None:
                raise ArgumentError("supremum must be given: prices by a function have no largest one to reserve")
        else:
            self._read_table(self.epsilons)
        if self.ordinary is not None:
            if not isinstance(self.ordinary, Guarantee):
                given = "a realised price" if isinstance(self.ordinary, RealisedPrice) else type(self.ordinary).__name__
                raise PromiseError(f"ordinary must be a Guarantee, got {given}")
            common_adjacency((self.adjacency, self.ordinary.adjacency))
            if (self.ordinary.pure_epsilon, self.ordinary.failure) != (self.worst_epsilon, self.delta):
                raise ArgumentError("ordinary must have the largest price as its pure epsilon, and the same delta")

        if self.used is not None:
            if not callable(self.used):
                raise TypeError("used must be a callable from a cell and orders to divergences")
            if self.ordinary is None or self.ordinary.renyi_curve is None:
                raise ArgumentError("used needs an ordinary guarantee with a Renyi divergence, of which it is a part")

    def _read_table(self, epsilons: Mapping[Hashable, float]) -> None:
        expect("epsilons", epsilons, Mapping)
        if not epsilons:
            raise ArgumentError("epsilons must have at least one cell")
        parsed = {cell: number("epsilons", value, at_least=0.0, rounding="up") for cell, value in epsilons.items()}
        object.__setattr__(self, "epsilons", MappingProxyType(parsed))
        if self.supremum is not None and self.supremum < max(parsed.values()):
            raise ArgumentError(f"supremum must be at least every price, got {self.supremum!r}")

    def __reduce__(self) -> tuple[Any, ...]:  # copies: a value with a function that is found again by its name
        # a mapping proxy can be neither pickled nor copied
        prices = self.epsilons if callable(self.epsilons) else dict(self.epsilons)
        made = field_values(self) | {"epsilons": prices}
        return partial(OutputGuarantee, **made), ()

    @property
    def table(self) -> Mapping[Hashable, float] | None:
        """The price of every cell, or None where prices are given by a function."""
        return None if callable(self.epsilons) else self.epsilons

    @property
    def worst_epsilon(self) -> float:
        """The supremum of the prices."""
        if self.supremum is not None:
            return self.supremum
        table = self.table
        return max(table.values()) if table is not None else float("inf")

    def price(self, cell: Hashable) -> float:
        """The epsilon of a cell. Raises `ArgumentError`, without quoting the cell, when it has none."""
        if callable(self.epsilons):
            priced = number("epsilons", self.epsilons(cell), at_least=0.0, rounding="up")
            if priced > self.worst_epsilon:
                raise ArgumentError("epsilons: the price of this cell is above the declared supremum")
            return priced
        if cell not in self.epsilons:
            raise ArgumentError("cell: the output falls in a cell that epsilons does not price")
        return self.epsilons[cell]

    def worst(self) -> Guarantee:
        """The ordinary guarantee: `ordinary`, or the largest epsilon of all cells.

        Source: Hartmann et al. 2022, Lemma 4.
        """
        ordinary = self.ordinary or approximate_dp(
            epsilon=self.worst_epsilon, delta=self.delta, adjacency=self.adjacency
        )
        return replace(ordinary, interactive=self.interactive)

    def observed(self, output: Any) -> RealisedPrice:
        """The price of an output that occurred. Delta is never refunded.

        It counts in a budget that reserved the worst case before, and adds up there. It is no `Guarantee`. Raises
        `ArgumentError`, without quoting the output, when its cell is not in the partition. Source: Hartmann et al.
        2022, Theorem 7.
        """
        cell = self.cell(output)
        return RealisedPrice(
            price=self.price(cell), delta=self.delta, adjacency=parse_adjacency(self.adjacency), cell=cell
        )

    def _repr_html_(self) -> str:
        cells = [(f"epsilon of {cell!r}", bound(price)) for cell, price in list((self.table or {}).items())[:20]]
        more = len(self.table or ()) > len(cells)
        rows = [
            ("adjacency", str(self.adjacency)),
            ("delta", self.delta),
            ("largest epsilon", bound(self.worst_epsilon)),
        ]
        return card("Output guarantee", [*rows, *cells], note="and more cells" if more else "")
