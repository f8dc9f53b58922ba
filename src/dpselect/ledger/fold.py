"""The rules of the record as a fold over its entries, without input or output.

The same functions run when an entry is written, on the accounts it touches, and when the whole record is verified.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.ledger.entries import Body, amounts_from_text, amounts_to_text, canonical, exact
from dpselect.ledger.refusals import (
    AdaptiveReservationError,
    AlreadySettledError,
    InsufficientBudget,
    InteractionOpenError,
    LedgerDamagedError,
)
from dpselect.privacy import Adjacency
from dpselect.records.claims import claim_refusal

__all__ = [
    "ALTERNATIVE",
    "WHOLE",
    "Account",
    "Books",
    "MemoryBooks",
    "Reservation",
    "account_digest",
    "apply",
    "books_digest",
]

WHOLE = ""
"""The bucket of what runs on all of the data. Other buckets are parts."""

ALTERNATIVE = "order "
"""Units that start so are filters beside each other, each with its own share of delta: one that fits is enough."""

Amounts = dict[str, Fraction]


@dataclass
class Account:
    """A budget as the entries so far have left it. `terms` is the body of the entry that created it."""

    terms: Body
    buckets: dict[str, Amounts] = field(default_factory=dict)
    refunded: Fraction = Fraction(0)  # by how much settling has lowered the totals
    outstanding: int = 0  # of a root: reservations in its tree that are not settled
    locked_by: int | None = None  # of a root: the open interactive reservation

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.terms["name"])

    @property
    def limits(self) -> Amounts:
        """The amounts that may be spent, by unit."""
        return amounts_from_text(self.terms["limits"])

    def totals(self) -> Amounts:
        """The amounts that one row may have paid, by unit: all of the whole-data charges, and those of its part.

        Under add-or-remove-one a row is in one part: the largest counts. A replaced row may leave one part and enter
        another: the two largest count.
        """
        moves = 2 if self.terms["adjacency"] == Adjacency.REPLACE_ONE.value else 1
        result = {}
        for unit in self.terms["limits"]:
            parts = sorted(
                (b.get(unit, Fraction(0)) for part, b in self.buckets.items() if part != WHOLE), reverse=True
            )
            whole = self.buckets.get(WHOLE, {}).get(unit, Fraction(0))
            result[unit] = whole + sum(parts[:moves], Fraction(0))
        return result

    def remaining(self) -> Amounts:
        """Limits less totals, by unit. Negative for a filter that no longer counts."""
        totals = self.totals()
        return {unit: limit - totals[unit] for unit, limit in self.limits.items()}

    def overdrawn(self) -> bool:
        """Whether the totals are above the limits: any unit, or all of the alternatives."""
        fits = {unit: left >= 0 for unit, left in self.remaining().items()}
        alternatives = [fit for unit, fit in fits.items() if unit.startswith(ALTERNATIVE)]
        others = all(fit for unit, fit in fits.items() if not unit.startswith(ALTERNATIVE))
        return not others or (bool(alternatives) and not any(alternatives))

    def state(self) -> dict[str, Any]:
        """The part that changes, JSON-able."""
        return {
            "buckets": {part: amounts_to_text(bucket) for part, bucket in self.buckets.items()},
            "locked_by": self.locked_by,
            "outstanding": self.outstanding,
            "refunded": str(self.refunded),
        }

    @classmethod
    def restored(cls, terms: Body, state: Mapping[str, Any]) -> Account:
        """The account with a saved state."""
        return cls(
            terms=terms,
            buckets={part: amounts_from_text(bucket) for part, bucket in state["buckets"].items()},
            refunded=exact(state["refunded"]),
            outstanding=int(state["outstanding"]),
            locked_by=state["locked_by"],
        )


def account_digest(terms: str, state: str) -> str:
    """The hash of one account, from the canonical texts of its terms and of its state."""
    return hashlib.sha256(f"{terms}\n{state}".encode("ascii")).hexdigest()


def books_digest(digests: Mapping[str, str]) -> str:
    """The hash of all accounts, given each one's by name: what every entry says about the sums after it."""
    return hashlib.sha256("".join(digests[name] for name in sorted(digests)).encode("ascii")).hexdigest()


@dataclass(frozen=True)
class Reservation:
    """The entries of a reservation: its own, that which settled it, and the last that claimed it again."""

    sequence: int
    settled: int | None = None
    claimed: int | None = None

    @property
    def holder(self) -> int:
        """The entry with the latest claim, if the reservation is bound."""
        return self.sequence if self.claimed is None else self.claimed


class Books(Protocol):
    """The accounts and reservations between entries."""

    def account(self, name: str) -> Account | None: ...
    def save(self, account: Account) -> None: ...
    def reservation(self, budget: str, identifier: str) -> Reservation | None: ...
    def book(self, budget: str, identifier: str, reservation: Reservation) -> None: ...
    def body(self, sequence: int) -> Body: ...


class MemoryBooks:
    """Books in memory. Of settled reservations the bodies are dropped."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.reservations: dict[tuple[str, str], Reservation] = {}
        self.bodies: dict[int, Body] = {}
        self.seen = 0  # entries
        self._digests: dict[str, str] = {}
        self._changed: set[str] = set()

    def account(self, name: str) -> Account | None:
        return self.accounts.get(name)

    def save(self, account: Account) -> None:
        self.accounts[account.name] = account
        self._changed.add(account.name)

    def digest(self) -> str:
        """The hash of all accounts as they are now."""
        for name in self._changed:
            account = self.accounts[name]
            self._digests[name] = account_digest(canonical(account.terms), canonical(account.state()))
        self._changed.clear()
        return books_digest(self._digests)

    def reservation(self, budget: str, identifier: str) -> Reservation | None:
        return self.reservations.get((budget, identifier))

    def book(self, budget: str, identifier: str, reservation: Reservation) -> None:
        self.reservations[budget, identifier] = reservation
        if reservation.settled is not None:
            self.bodies.pop(reservation.sequence, None)
            self.bodies.pop(reservation.holder, None)

    def body(self, sequence: int) -> Body:
        return self.bodies[sequence]

    def apply(self, sequence: int, body: Body) -> None:
        """Fold one more entry in."""
        if body.get("kind") in ("reserve", "claim"):
            self.bodies[sequence] = body
        apply(self, sequence, body)
        self.seen += 1


def apply(books: Books, sequence: int, body: Body) -> None:
    """Fold an entry into the books, or raise what it violates (the books are then to be thrown away)."""
    rule = _RULES.get(str(body.get("kind")))
    if rule is None:
        raise ArgumentError("the entry is of no known kind")
    rule(books, sequence, body)


def _account(books: Books, name: str) -> Account:
    account = books.account(name)
    if account is None:
        raise ArgumentError(f"there is no budget {name!r}")
    return account


def _root(books: Books, account: Account) -> Account:
    while account.terms["parent"] is not None:
        account = _account(books, account.terms["parent"])
    return account


def _post(books: Books, name: str, part: str, change: Amounts, *, guard: bool) -> None:
    """Add to a bucket, and what that adds to the budget's totals to every budget above it."""
    asked: str | None = name
    while asked is not None:
        account = _account(books, asked)
        before = account.totals()
        bucket = account.buckets.setdefault(part, {})
        for unit, amount in change.items():
            bucket[unit] = bucket.get(unit, Fraction(0)) + amount
        after = account.totals()
        if guard and account.overdrawn():
            left = {unit: limit - before[unit] for unit, limit in account.limits.items()}
            raise InsufficientBudget(account.name, change, left)
        if not guard and "epsilon" in before:
            account.refunded += before["epsilon"] - after["epsilon"]
        books.save(account)
        if account.terms["block"]:
            return  # the budget above has paid for all of it
        change = {unit: after[unit] - before[unit] for unit in change}
        asked, part = account.terms["parent"], account.terms["part"]


def _open_ledger(_books: Books, sequence: int, _body: Body) -> None:
    if sequence != 1:
        raise ArgumentError("a ledger begins once")


def _create_budget(books: Books, _sequence: int, body: Body) -> None:
    if books.account(body["name"]) is not None:
        name = body["name"]
        raise ArgumentError(f"there is a budget {name!r} already. To open it, write ledger.budget({name!r})")
    books.save(Account(body))
    if body["parent"] is None:
        return
    parent = _account(books, body["parent"])
    if parent.terms["adjacency"] != body["adjacency"]:
        raise AdjacencyError(f"budget {parent.name!r} is under {parent.terms['adjacency']}: so must be its parts")
    if parent.terms["sequence"] is not None:
        raise ArgumentError(f"budget {parent.name!r} is for a sequence fixed in advance: it has no budgets below")
    _check_part(parent, body["part"])
    _check_unlocked(books, _root(books, parent))
    if body["block"]:
        cost = {"epsilon": exact(body["epsilon"]), "delta": exact(body["delta"])}
        if set(cost) != set(parent.terms["limits"]):
            raise ArgumentError(f"budget {parent.name!r} does not add epsilons up: it holds no blocks")
        _post(books, parent.name, body["part"], cost, guard=True)
    elif parent.terms["accounting"] != body["accounting"] or set(parent.terms["limits"]) != set(body["limits"]):
        raise ArgumentError(f"a budget within {parent.name!r} must be counted in the same units")


def _check_part(account: Account, part: str) -> None:
    if part != WHOLE and account.terms["partition"] is None:
        raise ArgumentError(f"budget {account.name!r} has no partition: create it with the rule that assigns a row")


def _check_unlocked(books: Books, root: Account) -> None:
    if root.locked_by is not None:
        held = books.body(root.locked_by)
        raise InteractionOpenError(
            f"an interactive mechanism is open on budget {root.name!r}: settle it first. It is reservation "
            f"{held['identifier']!r} of budget {held['budget']!r} (entry {root.locked_by})"
        )


def _reserve(books: Books, sequence: int, body: Body) -> None:
    account = _account(books, body["budget"])
    terms = account.terms
    if body["adjacency"] != terms["adjacency"]:
        found, wanted = body["adjacency"], terms["adjacency"]
        raise AdjacencyError(
            f"{body['label']!r} is under {found}, budget {account.name!r} under {wanted}: make the guarantee with "
            f"adjacency={wanted!r}, or a budget with adjacency={found!r}"
        )
    _check_part(account, body["part"])
    if books.reservation(account.name, body["identifier"]) is not None:
        raise ArgumentError(f"identifier {body['identifier']!r} is taken in budget {account.name!r}")
    root = _root(books, account)
    _check_unlocked(books, root)
    if body["interactive"] and root.outstanding:
        raise InteractionOpenError(
            f"{root.outstanding} reservations on budget {root.name!r} are not settled: settle them before an "
            "interactive mechanism is opened"
        )
    charge = amounts_from_text(body["charge"])
    if set(charge) != set(terms["limits"]) or any(amount < 0 for amount in charge.values()):
        raise ArgumentError("the charge is not in the units of the budget")
    if body["cells"] and max(exact(price) for price in body["cells"].values()) > charge["epsilon"]:
        raise ArgumentError("a cell is more expensive than what is reserved")
    if terms["sequence"] is not None:
        _check_next(account, body["mechanism"])
    _check_claim(body, "binding", "claim")
    _post(books, account.name, body["part"], charge, guard=True)
    root = _root(books, account)
    root.outstanding += 1
    root.locked_by = sequence if body["interactive"] else None
    books.save(root)
    books.book(account.name, body["identifier"], Reservation(sequence))


def _check_next(account: Account, mechanism: str | None) -> None:
    position = int(account.totals()["position"])
    planned = account.terms["sequence"]
    if position < len(planned) and mechanism != planned[position]:
        raise AdaptiveReservationError(
            f"budget {account.name!r} is for a sequence fixed in advance: this is not its mechanism "
            f"number {position + 1}. Loss distributions are no filter; use accounting='renyi' for adaptive choices"
        )


def _check_claim(body: Body, *names: str) -> None:
    """All of these are there, each a text, or none is."""
    if any(name in body for name in names) and not all(isinstance(body.get(name), str) for name in names):
        raise ArgumentError(f"{' and '.join(names)} go together, and are texts")


def _open(books: Books, body: Body) -> tuple[Reservation, Body]:
    """The reservation that an entry is about, which must be open, and what was reserved."""
    booked = books.reservation(body["budget"], body["identifier"])
    if booked is None:
        raise ArgumentError(f"identifier {body['identifier']!r} has no reservation in budget {body['budget']!r}")
    if booked.settled is not None:
        raise AlreadySettledError(f"reservation {body['identifier']!r} is settled already (entry {booked.settled})")
    return booked, books.body(booked.sequence)


def _claim(books: Books, sequence: int, body: Body) -> None:
    booked, reserved = _open(books, body)
    if "binding" not in reserved or not isinstance(body["claim"], str):
        raise ArgumentError(f"reservation {body['identifier']!r} is not bound to a search: it is not claimed")
    books.book(body["budget"], body["identifier"], replace(booked, claimed=sequence))


def _settle(books: Books, sequence: int, body: Body) -> None:
    booked, reserved = _open(books, body)
    _check_claim(body, "claim", "release")
    if "claim" in body and ("binding" not in reserved or books.body(booked.holder)["claim"] != body["claim"]):
        raise claim_refusal(f"reservation {body['identifier']!r}", "superseded")
    if body["epsilon"] is not None:
        refund = _refund(reserved, body)
        _post(books, body["budget"], reserved["part"], {"epsilon": -refund}, guard=False)
    elif body.get("charge") is not None:
        filtered = _account(books, body["budget"]).terms["accounting"] == "renyi"
        _post(books, body["budget"], reserved["part"], _unused(reserved, body, filtered), guard=False)
    root = _root(books, _account(books, body["budget"]))
    if root.outstanding < 1:
        raise LedgerDamagedError(f"reservation {body['identifier']!r} is kept as open, but none is", booked.sequence)
    root.outstanding -= 1
    if root.locked_by == booked.sequence:
        root.locked_by = None
    books.save(root)
    books.book(body["budget"], body["identifier"], replace(booked, settled=sequence))


def _refund(reserved: Body, body: Body) -> Fraction:
    """The refund: only of a reservation with cells, only epsilon, and at the price the reservation named."""
    price = exact(body["epsilon"])
    if reserved["cells"] is None:
        raise ArgumentError("the reservation has no cells: nothing comes back")
    named = reserved["cells"].get(body["cell"])
    if reserved["cells"] and (named is None or exact(named) != price):
        raise ArgumentError("the cell is not in the reservation's partition, or has another price there")
    refund = exact(reserved["charge"]["epsilon"]) - price
    if refund < 0 or price < 0:
        raise ArgumentError("the cell is more expensive than what was reserved")
    return refund


def _unused(reserved: Body, body: Body, filtered: bool) -> Amounts:
    """The refund of unused divergences: in a filter, of a reservation with cells, at orders alone."""
    charged, used = amounts_from_text(reserved["charge"]), amounts_from_text(body["charge"])
    if not filtered or reserved["cells"] is None or reserved["cells"]:
        raise ArgumentError("the reservation is no filter's with cells: nothing comes back")
    if set(used) != set(charged) or any(not 0 <= used[unit] <= charged[unit] for unit in used):
        raise ArgumentError("what was used is not part of what was reserved")
    if any(used[unit] != charged[unit] for unit in used if not unit.startswith(ALTERNATIVE)):
        raise ArgumentError("only divergences come back")
    return {unit: used[unit] - charged[unit] for unit in used}


_RULES: dict[str, Callable[[Books, int, Body], None]] = {
    "ledger": _open_ledger,
    "budget": _create_budget,
    "reserve": _reserve,
    "claim": _claim,
    "settle": _settle,
}
