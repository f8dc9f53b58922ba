"""One budget of a ledger: what is left, reserve, settle. A charge is in the hands of anyone who runs the mechanism."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any

from dpselect.errors import ArgumentError, ClaimError, public_text
from dpselect.ledger.accounting import Accounting, Amounts, Budgeted, OutputAccounting, SequenceAccounting, worst
from dpselect.ledger.entries import Body, ChainHead, amounts_from_text, amounts_to_text, cell_text, exact, without_books
from dpselect.ledger.filters import RenyiAccounting
from dpselect.ledger.fold import WHOLE, Account, Reservation
from dpselect.ledger.refusals import AlreadySettledError, LedgerDamagedError, LedgerError, StaleRecordError
from dpselect.ledger.store import Store
from dpselect.ledger.transaction import Transaction
from dpselect.numerics.digits import rounded_down
from dpselect.privacy import Adjacency, OutputGuarantee
from dpselect.privacy.notebook import grid
from dpselect.privacy.output.amounts import Exact, charged_amount
from dpselect.privacy.promises import promise_or_output
from dpselect.privacy.release import Receipt
from dpselect.records.claims import claim_refusal

__all__ = ["ACCOUNTINGS", "Budget", "Charge", "PricedBudget"]

ACCOUNTINGS: Mapping[str, Accounting] = MappingProxyType(
    {"output": OutputAccounting(), "renyi": RenyiAccounting(), "pld": SequenceAccounting()}
)
"""The ways of counting by name."""


@dataclass(frozen=True)
class Charge(Receipt):
    """The receipt of a reservation, with the way to settle it.

    Used as a context it does nothing at the end: what was not settled stays charged in full, no matter what happened.
    """

    _settle: Callable[[Any], Receipt] | None = field(default=None, repr=False, compare=False)
    """Takes the output, or `OutputGuarantee` in place of one: None is an output too."""

    def settle(self, output: Any = OutputGuarantee) -> Receipt:
        """Close the reservation at the cell of the output that was released, or in full without an output.

        Only the epsilon of an output guarantee in an `output` budget comes back, and the unused part of the divergences
        in a filter on them. Delta never does. Durable on return.
        Raises `ArgumentError` when the output is in no cell of the partition and `AlreadySettledError` the second time.
        The reservation then stands as it was.
        """
        if self._settle is None:
            raise LedgerError("this receipt has left its process: settle through the budget, by its identifier")
        return self._settle(output)

    def __enter__(self) -> Charge:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __reduce__(self) -> tuple[Any, ...]:  # copies: a charge pickles as a receipt, which settles nothing
        return Receipt, (self.account, self.identifier, self.charged, self.sequence, self.head)


class Budget:
    """A budget of a `Ledger`, made by `Ledger.create_budget` and `Ledger.budget`, never directly.

    It is a `Spender`: mechanisms and `tune(ledger=budget)` reserve and settle through it.

    Args:
        store: the open store of the ledger.
        origin: the first record of the ledger, which identifies it.
        terms: the record that made the budget, with its name, limits, accounting and adjacency. All public.
    """

    def __init__(self, store: Store, origin: Mapping[str, Any], terms: Body) -> None:
        self._store = store
        self._origin = origin
        self._terms = terms
        self._accounting = ACCOUNTINGS[terms["accounting"]]

    @property
    def name(self) -> str:
        """Its name."""
        return str(self._terms["name"])

    @property
    def accounting(self) -> str:
        """How it counts: "output", "renyi" or "pld"."""
        return str(self._terms["accounting"])

    @property
    def adjacency(self) -> Adjacency:
        """The neighbouring relation of every guarantee in it."""
        return Adjacency(self._terms["adjacency"])

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of the whole budget, exact."""
        return exact(self._terms["epsilon"])

    @property
    def delta(self) -> Fraction:
        """The delta of the whole budget, exact."""
        return exact(self._terms["delta"])

    @property
    def parent(self) -> str | None:
        """The budget above."""
        parent: str | None = self._terms["parent"]
        return parent

    def __repr__(self) -> str:
        return (
            f"Budget({self.name!r}, epsilon={rounded_down(float(self.epsilon))}, "
            f"delta={rounded_down(float(self.delta))}, accounting={self.accounting!r})"
        )

    def _repr_html_(self) -> str:
        spent, left = self.spent(), self.remaining()
        rows = [
            ("epsilon", *map(float, (self.epsilon, spent.epsilon, left.epsilon))),
            ("delta", *map(float, (self.delta, spent.delta, left.delta))),
        ]
        title = f"Budget {self.name}"
        return grid(title, ("", "whole", "spent", "left"), rows, note=f"{self.accounting}; {self.adjacency.value}")

    def spent(self) -> Amounts:
        """The charges so far, as epsilon and delta. Open reservations count in full.

        `output`: the sums. `renyi`: the odometer, an epsilon that holds whenever one stops. `pld`: the whole sequence.
        """
        return self._accounting.reading(self._account())

    def remaining(self) -> Amounts:
        """The amounts that a reservation may still ask for, here and in every budget above, never negative.

        For filters `units` is what decides. Epsilon is the budget's less the odometer's.
        """
        with self._store.read() as transaction:
            chain = list(_chain(transaction, self.name))
        account = chain[0]
        reading = self._accounting.reading(account)
        units = account.remaining()
        for above in chain[1:]:
            units = {unit: min(left, above.remaining()[unit]) for unit, left in units.items()}
        if "epsilon" in units:
            return Amounts(max(units["epsilon"], Fraction(0)), max(units["delta"], Fraction(0)), units)
        left = max(self.epsilon - reading.epsilon, Fraction(0))
        return Amounts(left, max(self.delta - reading.delta, Fraction(0)), units)

    def refunded(self) -> Fraction:
        """The epsilon that came back because outcomes cost less than the worst case."""
        return self._account().refunded

    def at(self, *, delta: Exact) -> PricedBudget:
        """This budget as a `Spender` that prices every guarantee at this delta."""
        return PricedBudget(self, charged_amount("delta", delta))

    def asked_at(self, *, delta: Exact) -> Budget | PricedBudget:
        """This budget with a delta in the place of `delta_each`, for a search whose caller has asked for that delta.

        A guarantee with an epsilon of its own keeps it, and a filter or a sequence is priced as a whole.
        """
        if self.accounting != "output":
            return self
        return PricedBudget(self, charged_amount("delta", delta), own=True)

    def reserve(  # noqa: PLR0913
        self,
        guarantee: Budgeted,
        *,
        label: str,
        identifier: str | None = None,
        delta: Exact | None = None,
        part: str | None = None,
        interactive: bool = False,
        after: Receipt | str | None = None,
        binding: str | None = None,
        claim: str | None = None,
    ) -> Charge:
        """Charge the worst case of a guarantee. On disk when this returns. Only then may the mechanism run.

        - `guarantee`: an output guarantee is charged at its supremum, any other at its own finite epsilon and failure
          mass. If it has none or `delta` is given, it is charged at `delta` (by default the budget's `delta_each`).
        - `label`: public text, like all names here 1 to 200 printable characters.
        - `identifier`: chosen by you (by default random), so that a repeat after a crash finds its reservation and
          charges nothing more. You must ensure that a repeat is the same run: one that gives the same output again, or
          that has released nothing. A settled identifier is not reserved again.
        - `part`: the part of the data that the mechanism sees, under the budget's `partition`. Parts do not add up.
        - `interactive`: the mechanism answers queries that may depend on other outputs (a sparse vector, a run with
          stopping points): until it is settled nothing else may run on the budget's tree, and nothing may be running.
          A guarantee that says so itself is locked no matter what is given here.
        - `after`: a receipt, or its head, that the record must hold. An older copy is refused.
        - `binding`, `claim`: texts that bind the reservation to one search, so that copies of it release once: see
          `ClaimSpender`. Reserving again with the same binding and another claim takes the reservation over.

        You must ensure that the mechanism is fixed when it is reserved, and uses no data before.

        Raises `InsufficientBudget` with both amounts, `AdjacencyError`, `InteractionOpenError`,
        `AdaptiveReservationError`, `StaleRecordError`, `AlreadySettledError`, `ClaimError` for another binding,
        `ArgumentError` for an identifier with other terms. Nothing is charged then. `LedgerUnavailableError` may leave
        a charge, never a run without one.
        """
        guarantee = promise_or_output("guarantee", guarantee)
        adjacency = worst(guarantee).adjacency
        asked = None if delta is None else charged_amount("delta", delta)
        price = self._accounting.price(self._terms, guarantee, asked)
        body: Body = {
            "kind": "reserve",
            "budget": self.name,
            "identifier": secrets.token_hex(16) if identifier is None else public_text("identifier", identifier),
            "label": public_text("label", label),
            "adjacency": adjacency.value,
            "charge": amounts_to_text(price.charge),
            "cells": None if price.cells is None else amounts_to_text(price.cells),
            "mechanism": price.mechanism,
            "part": WHOLE if part is None else public_text("part", part),
            "interactive": bool(interactive) or guarantee.interactive,
        }
        if binding is not None or claim is not None:
            body |= {"binding": public_text("binding", binding or ""), "claim": public_text("claim", claim or "")}
        with self._store.write() as transaction:
            transaction.prefetch(self.name, body["identifier"])
            _check_fresh(transaction, after)
            booked = transaction.reservation(self.name, body["identifier"])
            if booked is not None:
                head = _same(transaction, booked, body)
                if claim is not None:
                    self._take_over(transaction, booked, body["identifier"], claim)
            else:
                dated = {**body, "date": datetime.now(UTC).date().isoformat()} if self._origin["dates"] else body
                head = transaction.append(dated)
        receipt = self._receipt(body["identifier"], price.charge, head)
        return Charge(**vars(receipt), _settle=partial(self._settle_output, guarantee, receipt.identifier))

    def claim(self, identifier: str, *, binding: str, claim: str) -> str | None:
        """Take a bound reservation over, so that nothing that claimed it before can settle it. Durable on return.

        None: it is open, and `claim` holds it. Else it is settled, and this is the hash of the one release that it paid
        for, or "" where it was settled without one.

        Raises `ClaimError` for a reservation that is not there or is bound to another search.
        """
        identifier = public_text("identifier", identifier)
        with self._store.write() as transaction:
            transaction.prefetch(self.name, identifier)
            booked = transaction.reservation(self.name, identifier)
            if booked is None:
                raise ClaimError(
                    f"budget {self.name!r} has no reservation {identifier!r}, which this search made: the ledger is "
                    "another one. Resume it with its own ledger, or begin a new search with its own charge"
                )
            if transaction.body(booked.sequence).get("binding") != public_text("binding", binding):
                raise claim_refusal(f"reservation {identifier!r}", "bound otherwise")
            if booked.settled is not None:
                return str(transaction.body(booked.settled).get("release", ""))
            self._take_over(transaction, booked, identifier, public_text("claim", claim))
        return None

    def _take_over(self, transaction: Transaction, booked: Reservation, identifier: str, claim: str) -> None:
        if transaction.body(booked.holder)["claim"] != claim:
            transaction.append({"kind": "claim", "budget": self.name, "identifier": identifier, "claim": claim})

    def settle(
        self,
        identifier: str,
        *,
        cell: Hashable | None = None,
        claim: str | None = None,
        release: str | None = None,
    ) -> Receipt:
        """Close a reservation by its identifier: at a cell of its partition, or in full. Durable, idempotent.

        Also frees the lock of an interactive mechanism whose process died. A guarantee whose prices are a function is
        not in the record: reserve it again under the same identifier, which charges nothing, and settle that.

        `claim`, `release`: of a bound reservation, the claim that holds it, and the hash of what is released. Without
        them it is closed for good, and nothing of that search can be released any more.

        Raises `ArgumentError` for an unknown identifier or cell, `ClaimError` for a claim that is not the latest, and
        `AlreadySettledError` when it was settled otherwise. The reservation then stands.
        """
        identifier = public_text("identifier", identifier)
        bound = {}
        if claim is not None or release is not None:
            bound = {"claim": public_text("claim", claim or ""), "release": public_text("release", release or "")}
        with self._store.write() as transaction:
            reserved, booked = self._reserved(transaction, identifier)
            named, price = None, None
            if cell is not None and reserved["cells"] is not None:
                named = cell_text(cell)
                if not reserved["cells"]:
                    raise ArgumentError(
                        "cell: the prices are a function, which the record does not hold; reserve again under this "
                        "identifier, which charges nothing, and settle that"
                    )
                if named not in reserved["cells"]:
                    raise ArgumentError("cell: the reservation does not price it")
                price = reserved["cells"][named]
            if booked.settled is not None:
                return self._settled(transaction, reserved, booked.settled, named, release)
            settlement = {**self._settlement(identifier, named, {"epsilon": price}), **bound}
            head = transaction.append(settlement)
        return self._receipt(identifier, _charged(reserved, settlement), head)

    def _settle_output(self, guarantee: Budgeted, identifier: str, output: Any) -> Receipt:
        named: str | None = None
        price: dict[str, Any] = {}
        if output is not OutputGuarantee and isinstance(guarantee, OutputGuarantee):
            cell = guarantee.cell(output)
            guarantee.price(cell)  # one that has no price is refused, however it is counted
            price = self._accounting.settled(self._terms, guarantee, cell)
            # as it was declared: an output may give an equal value of another type
            named = cell_text(next((known for known in guarantee.table or () if known == cell), cell))
        with self._store.write() as transaction:
            reserved, _ = self._reserved(transaction, identifier)
            if reserved["cells"] is None:  # nothing comes back, so nothing is told
                named, price = None, {}
            body = self._settlement(identifier, named, price)
            head = transaction.append(body)
        return self._receipt(identifier, _charged(reserved, body), head)

    def _settlement(self, identifier: str, named: str | None, price: Mapping[str, Any]) -> Body:
        body = {"kind": "settle", "budget": self.name, "identifier": identifier, "cell": named, "epsilon": None}
        return {**body, **price}

    def _settled(
        self, transaction: Transaction, reserved: Body, settled: int, named: str | None, release: str | None
    ) -> Receipt:
        head, body = transaction.entry(settled)
        if release is not None and body.get("release") not in (None, release):
            raise claim_refusal(f"reservation {reserved['identifier']!r}", "released")
        if body["cell"] != named or (release is not None and "release" not in body):
            raise AlreadySettledError(f"reservation {reserved['identifier']!r} is settled otherwise (entry {settled})")
        transaction.touch()
        return self._receipt(reserved["identifier"], _charged(reserved, body), ChainHead(settled, head))

    def _reserved(self, transaction: Transaction, identifier: str) -> tuple[Body, Reservation]:
        transaction.prefetch(self.name, identifier)
        booked = transaction.reservation(self.name, identifier)
        if booked is None:
            raise ArgumentError(f"identifier {identifier!r} has no reservation in budget {self.name!r}")
        reserved = transaction.body(booked.sequence)
        if (reserved.get("kind"), reserved.get("budget"), reserved.get("identifier")) != (
            "reserve",
            self.name,
            identifier,
        ):
            raise LedgerDamagedError(f"reservation {identifier!r} is not kept as recorded", booked.sequence)
        return reserved, booked

    def _account(self) -> Account:
        with self._store.read() as transaction:
            return next(_chain(transaction, self.name))

    def _receipt(self, identifier: str, charge: Mapping[str, Fraction], head: ChainHead) -> Receipt:
        charged: dict[str, float | str] = {unit: float(amount) for unit, amount in charge.items()}
        return Receipt(f"{self._origin['id']}/{self.name}", identifier, charged, head.sequence, head.head)


class PricedBudget:
    """A budget as a `Spender`, with the delta at which guarantees are priced (with `own`, those that have none).

    `claim` and `settle` are those of the budget.
    """

    def __init__(self, budget: Budget, delta: Fraction, *, own: bool = False) -> None:
        self._budget = budget
        self.claim, self.settle = budget.claim, budget.settle
        self._delta, self._own = delta, own

    def reserve(
        self,
        guarantee: Budgeted,
        *,
        label: str,
        identifier: str,
        interactive: bool = False,
        binding: str | None = None,
        claim: str | None = None,
    ) -> Charge:
        """`Budget.reserve` at this delta. An output guarantee keeps its own."""
        guarantee = promise_or_output("guarantee", guarantee)
        has_one = isinstance(guarantee, OutputGuarantee) or (self._own and math.isfinite(guarantee.pure_epsilon))
        return self._budget.reserve(  # payments: a budget with a delta hands on to the budget
            guarantee,
            label=label,
            identifier=identifier,
            delta=None if has_one else self._delta,
            interactive=interactive,
            binding=binding,
            claim=claim,
        )


def _chain(transaction: Transaction, name: str) -> Iterator[Account]:
    """A budget and those above that it spends from: a block has been paid for as a whole."""
    asked: str | None = name
    while asked is not None:
        account = transaction.account(asked)
        if account is None:
            raise LedgerDamagedError(f"budget {asked!r} is missing")
        yield account
        asked = None if account.terms["block"] else account.terms["parent"]


def _check_fresh(transaction: Transaction, after: Receipt | str | None) -> None:
    if after is None:
        return
    head = after.head if isinstance(after, Receipt) else after
    if head is None:
        raise ArgumentError("after: this receipt names no head of a ledger")
    sequence = transaction.holds(public_text("after", head))
    expected = after.sequence if isinstance(after, Receipt) else sequence
    if sequence is None or sequence != expected:
        raise StaleRecordError("the record lacks the head that you name: it is an older copy, or another ledger")


def _same(transaction: Transaction, booked: Reservation, body: Body) -> ChainHead:
    """The entry of an equal reservation that is open. Raises if the identifier stands for something else."""
    head, found = transaction.entry(booked.sequence)
    if found.get("binding") != body.get("binding"):
        raise claim_refusal(f"reservation {body['identifier']!r}", "bound otherwise")
    if _terms_of(found) != _terms_of(body):
        raise ArgumentError(f"identifier {body['identifier']!r} is already reserved with other terms")
    if booked.settled is not None and "binding" in body:
        raise claim_refusal(f"reservation {body['identifier']!r}", "released")
    if booked.settled is not None:
        raise AlreadySettledError(
            f"reservation {body['identifier']!r} is settled already (entry {booked.settled}): it pays for no other run"
        )
    transaction.touch()
    return ChainHead(booked.sequence, head)


def _terms_of(body: Body) -> Body:
    """The terms that make two reservations the same."""
    return {key: value for key, value in without_books(body).items() if key not in ("date", "claim")}


def _charged(reserved: Body, settled: Body) -> dict[str, Fraction]:
    charge = amounts_from_text(settled.get("charge") or reserved["charge"])
    return charge if settled["epsilon"] is None else {**charge, "epsilon": exact(settled["epsilon"])}
