"""How budgets count: adding up (`output`), adaptive filters (`renyi`), or a sequence fixed in advance (`pld`).

Each way is an object with three functions: `terms` (what is fixed when the budget is created), `price` (what a
guarantee is charged) and `reading` (what the charges so far mean as epsilon and delta). Nothing here is durable.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypedDict

from dpselect.errors import ArgumentError, BudgetError
from dpselect.ledger.entries import amounts_to_text, canonical, cell_text, exact
from dpselect.ledger.fold import Account
from dpselect.ledger.refusals import InsufficientBudget
from dpselect.privacy import Guarantee, OutputGuarantee, compose
from dpselect.privacy.output.amounts import Exact, charged_amount, granted_amount
from dpselect.privacy.promises import promise_or_output, refusal

__all__ = [
    "Accounting",
    "AccountingKeys",
    "Amounts",
    "Options",
    "OutputAccounting",
    "ReservedPrice",
    "SequenceAccounting",
    "digest",
    "read_options",
    "worst",
]

Budgeted = Guarantee | OutputGuarantee


@dataclass(frozen=True)
class Amounts:
    """An exact epsilon and delta, with the amounts in the units that the budget counts in.

    Args:
        epsilon: the epsilon, as an exact `Fraction`.
        delta: the delta, as an exact `Fraction`.
        units: the exact amount of each unit of the budget, by its name. Empty by default.
    """

    epsilon: Fraction
    delta: Fraction
    units: Mapping[str, Fraction] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class ReservedPrice:
    """The charge of a reservation, by unit. `cells` has the price of every cell that may be settled at.

    `cells` is None where nothing can come back, and empty where prices are given by a function.
    """

    charge: Mapping[str, Fraction]
    cells: Mapping[str, Fraction] | None = None
    mechanism: str | None = None


@dataclass(frozen=True, kw_only=True)
class Options:
    """The parsed arguments of `create_budget`."""

    name: str
    epsilon: Fraction
    delta: Fraction
    delta_each: Fraction
    filter: str = "renyi"
    orders: Sequence[float] | None = None
    failure: Fraction = Fraction(0)
    sequence: Sequence[Budgeted] | None = None


class AccountingKeys(TypedDict, total=False):
    """The keywords of `read_options`, which go with one accounting each."""

    delta_each: Exact | None
    filter: str
    orders: Sequence[float] | None
    failure: Exact
    sequence: Sequence[Budgeted] | None


def read_options(
    name: str,
    epsilon: Exact,
    delta: Exact,
    *,
    delta_each: Exact | None = None,
    filter: str = "renyi",
    orders: Sequence[float] | None = None,
    failure: Exact = 0,
    sequence: Sequence[Budgeted] | None = None,
) -> Options:
    """Parse the arguments of `create_budget`."""
    total = granted_amount("delta", delta)
    return Options(
        name=name,
        epsilon=granted_amount("epsilon", epsilon),
        delta=total,
        delta_each=total if delta_each is None else granted_amount("delta_each", delta_each),
        filter=filter,
        orders=orders,
        failure=granted_amount("failure", failure),
        sequence=sequence,
    )


class Accounting(ABC):
    """One way of counting."""

    @abstractmethod
    def terms(self, options: Options) -> dict[str, Any]:
        """The limits by unit, and what else is fixed. JSON-able."""

    @abstractmethod
    def price(self, terms: Mapping[str, Any], guarantee: Budgeted, delta: Fraction | None) -> ReservedPrice:
        """The cost of a guarantee in the units of the budget."""

    def settled(self, terms: Mapping[str, Any], guarantee: OutputGuarantee, cell: Hashable) -> dict[str, Any]:  # noqa: ARG002
        """The price in the entry that settles at a cell, JSON-able. Nothing if there are no cells."""
        return {}

    @abstractmethod
    def reading(self, account: Account) -> Amounts:
        """The charges as epsilon and delta."""


def worst(guarantee: Budgeted) -> Guarantee:
    """The ordinary guarantee, or the worst case of an output guarantee. Raises `PromiseError` for a realised price."""
    parsed = promise_or_output("guarantee", guarantee)
    return parsed.worst() if isinstance(parsed, OutputGuarantee) else parsed


def below(value: Fraction) -> float:
    """The nearest double, or the one below: nothing is priced at a larger delta than is booked."""
    nearest = float(value)
    while Fraction(nearest) > value and charged_amount("delta", nearest) > value:
        nearest = math.nextafter(nearest, 0.0)
    return nearest


class OutputAccounting(Accounting):
    """Realised epsilons and deltas add up: the only valid use of refunds. Source: Hartmann et al. 2022, Theorem 7."""

    def terms(self, options: Options) -> dict[str, Any]:
        """Epsilon and delta themselves."""
        return {"limits": amounts_to_text({"epsilon": options.epsilon, "delta": options.delta})}

    def price(self, terms: Mapping[str, Any], guarantee: Budgeted, delta: Fraction | None) -> ReservedPrice:
        """An output guarantee at its supremum, with the price of each cell. Any other at one delta.

        A guarantee with a finite epsilon outside its failure mass is charged these two, unless a delta is asked for.
        Others are charged at that delta, or at the budget's `delta_each`.
        """
        if isinstance(guarantee, OutputGuarantee):
            if delta is not None and delta != charged_amount("delta", guarantee.delta):
                raise ArgumentError("delta: an output guarantee has its own")
            charge = {
                "epsilon": charged_amount("epsilon", guarantee.worst_epsilon),
                "delta": charged_amount("delta", guarantee.delta),
            }
            table: Mapping[Hashable, float] = guarantee.table or {}
            return ReservedPrice(charge, {cell_text(c): charged_amount("epsilon", e) for c, e in table.items()})
        if delta is None and math.isfinite(guarantee.pure_epsilon):
            charge = {
                "epsilon": charged_amount("epsilon", guarantee.pure_epsilon),
                "delta": charged_amount("delta", guarantee.failure),
            }
            return ReservedPrice(charge)
        at = exact(terms["delta_each"]) if delta is None else delta
        epsilon = guarantee.epsilon(below(at))
        if not math.isfinite(epsilon):
            raise BudgetError(f"no finite epsilon is proved at delta {float(at):g}: give delta=, or delta_each= above")
        return ReservedPrice({"epsilon": charged_amount("epsilon", epsilon), "delta": at})

    def settled(self, terms: Mapping[str, Any], guarantee: OutputGuarantee, cell: Hashable) -> dict[str, Any]:  # noqa: ARG002
        """The price of the cell."""
        return {"epsilon": str(charged_amount("epsilon", guarantee.price(cell)))}

    def reading(self, account: Account) -> Amounts:
        """The totals themselves."""
        totals = account.totals()
        return Amounts(totals["epsilon"], totals["delta"], MappingProxyType(totals))


class SequenceAccounting(Accounting):
    """Loss distributions of a sequence of mechanisms fixed in advance, paid for as a whole when it is declared.

    The composition of privacy-loss distributions is tight, but it is no filter: choosing a later guarantee, or where
    to stop, after seeing outputs breaks it. So what is spent is the whole sequence from the start, and a reservation
    that is not the next one of the sequence is refused.
    """

    def terms(self, options: Options) -> dict[str, Any]:
        """The sequence by digest, and its composition's epsilon at the budget's delta."""
        if not options.sequence:
            raise ArgumentError(
                "sequence must list the guarantees: accounting='pld' is for a sequence fixed in advance"
            )
        if not isinstance(options.sequence, Iterable):
            raise refusal("sequence", options.sequence, "a sequence of guarantees")
        whole = [worst(guarantee) for guarantee in options.sequence]
        epsilon = compose(*whole).epsilon(below(options.delta))
        asked = charged_amount("epsilon", epsilon) if math.isfinite(epsilon) else Fraction(10**9)  # above every limit
        if asked > options.epsilon:
            raise InsufficientBudget(options.name, {"epsilon": asked}, {"epsilon": options.epsilon})
        return {
            "limits": {"position": str(len(whole))},
            "sequence": [digest(guarantee) for guarantee in whole],
            "composed": str(asked),
        }

    def price(self, terms: Mapping[str, Any], guarantee: Budgeted, delta: Fraction | None) -> ReservedPrice:  # noqa: ARG002
        """One step of the sequence. The write checks that it is the next one."""
        if delta is not None:
            raise ArgumentError("delta: a sequence is priced as a whole, at the budget's delta")
        return ReservedPrice({"position": Fraction(1)}, mechanism=digest(worst(guarantee)))

    def reading(self, account: Account) -> Amounts:
        """The whole sequence, whether or not it has run."""
        totals = MappingProxyType(account.totals())
        return Amounts(exact(account.terms["composed"]), exact(account.terms["delta"]), totals)


def digest(guarantee: Guarantee) -> str:
    """A guarantee by its description: adjacency, theorem and terms, which determine it (its maker must ensure it)."""
    described = {
        "adjacency": guarantee.adjacency.value,
        "theorem": guarantee.theorem,
        "terms": guarantee.describe(delta=1.0)["terms"],
    }
    return hashlib.sha256(canonical(described).encode("ascii")).hexdigest()
