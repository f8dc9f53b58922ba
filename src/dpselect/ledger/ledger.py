"""The ledger: one record of what was spent, by many people and programs, from budgets that are not overdrawn."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from fractions import Fraction
from typing import Unpack

from dpselect.cures import write_one_of
from dpselect.decoding.json_text import json_of
from dpselect.decoding.limits import ENTRY
from dpselect.errors import ArgumentError, BoundUnavailableError, public_text
from dpselect.ledger.accounting import AccountingKeys, Amounts, Options, read_options
from dpselect.ledger.budget import ACCOUNTINGS, Budget
from dpselect.ledger.entries import Body, ChainHead
from dpselect.ledger.fold import WHOLE, Account, MemoryBooks
from dpselect.ledger.locations import WitnessPlace
from dpselect.ledger.refusals import MAKES_IT, StaleRecordError
from dpselect.ledger.store import Store
from dpselect.ledger.transaction import Transaction
from dpselect.ledger.verification import folded, verify_record
from dpselect.privacy import Adjacency
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.notebook import grid
from dpselect.privacy.output.amounts import Exact
from dpselect.privacy.release import Receipt
from dpselect.public_api import options_of

__all__ = ["Ledger"]

_LARGEST = 10**6


class Ledger:
    """A durable record of budgets and charges, in a SQLite file or a PostgreSQL database.

    Open one with `Ledger.open`.

    Args:
        store: the open store of the ledger.
        dates: whether the reservations of a ledger that is made hold their date. By default there is no time in it.

    >>> import tempfile
    >>> from dpselect.privacy import OutputGuarantee
    >>> answer = OutputGuarantee(cell=lambda x: x is not None, epsilons={True: 1.0, False: 0.1})
    >>> with tempfile.TemporaryDirectory() as folder, Ledger.open(folder + "/budget.db") as ledger:
    ...     budget = ledger.create_budget("census", epsilon=3, delta=1e-6)
    ...     with budget.reserve(answer, label="a gated model") as charge:
    ...         output = None                      # run the mechanism here
    ...         receipt = charge.settle(output)
    ...     print(float(budget.remaining().epsilon), ledger.verify())
    2.9 True
    """

    def __init__(self, store: Store, *, dates: bool = False) -> None:
        self._store = store
        self._dates = dates

    @classmethod
    def open(
        cls,
        where: str | os.PathLike[str],
        *,
        create: bool = True,
        dates: bool = False,
        timeout: float = 30.0,
        witness: WitnessPlace = True,
    ) -> Ledger:
        """Open a ledger: a path (or sqlite:/// URL), or a postgresql:// URL for many machines.

        Opening makes nothing. If there is no ledger, `create_budget` makes it together with its first budget, and
        everything else raises `LedgerMissingError`. Opening does so at once when `create` is False. With `dates` the
        reservations of a ledger that is made hold their date, which is then all the time there is in it. `timeout`
        (seconds) is how long to wait for other writers.

        `witness` keeps the ledger's latest head outside of it, so that an older copy that is put back is refused:
        a file, a folder, or a postgresql:// URL. True is the place that $DPSELECT_LEDGER_WITNESS names. Without it the
        per-user state folder for a file, and none for a server. False is none, for reading a backup.

        Raises `LedgerUnavailableError` when it cannot be reached or written, or is on a network file system.
        `LedgerDamagedError` is for a file that is empty or no database, `LedgerError` for a database of something else.
        `SchemaVersionError` is for another version's ledger, `StaleRecordError` for an older copy.
        """
        store = Store(where, timeout=timeout, witness=witness)
        if not create:
            try:
                store.origin  # noqa: B018 - raises when there is no ledger
            except BaseException:
                store.close()
                raise
        return cls(store, dates=bool(dates))

    @property
    def id(self) -> str:
        """Drawn when the ledger was made. Copies share it."""
        return str(self._store.origin["id"])

    @options_of(read_options)
    def create_budget(
        self,
        name: str,
        *,
        epsilon: Exact,
        delta: Exact = 0,
        accounting: str = "output",
        adjacency: Adjacency | str | None = None,
        parent: str | None = None,
        part: str | None = None,
        partition: str | None = None,
        **how: Unpack[AccountingKeys],
    ) -> Budget:
        """A new budget, and the ledger if there is none yet. Durable on return.

        - `epsilon`, `delta`: what all of its mechanisms together may cost. Floats stand for their shortest decimals.
        - `accounting`: "output" adds up realised prices, with refunds. "renyi" is a fully adaptive filter, and "pld"
          composes loss distributions of a sequence of guarantees.
        - `how`: keywords of one accounting. Of "renyi", `filter="renyi"` (at `orders`, fixed now), "zcdp" or
          "gaussian", and `failure`, the part of delta set aside for failure masses. Of "pld", the `sequence` of
          guarantees, fixed now. `delta_each` is the delta at which a guarantee without a finite epsilon of its own is
          priced. By default that is all of delta, which leaves room for one such.
        - `adjacency`: by default that of the parent, or add_or_remove_one.
        - `parent`: a budget above: a reservation must fit both. Limits below one parent may add up to more than it,
          charges never do. A "renyi" or "pld" budget below an "output" one is a block: it is charged there as a whole,
          now. `part`: which part of the parent's data this budget is about.
        - `partition`: the rule on a single row that says which part it is in, as public text. Needed for `part=`.
          Charges on different parts do not add up: the largest counts. Under replace_one a row may move: the two
          largest count, and a mechanism on a part must be private when its part gains or loses a row.

        Raises `ArgumentError`, `AdjacencyError`, and `InsufficientBudget` when a block does not fit its parent.
        """
        name = public_text("name", name)
        part = None if part is None else public_text("part", part)
        partition = None if partition is None else public_text("partition", partition, longest=2000)
        if accounting not in ACCOUNTINGS:
            raise BoundUnavailableError(
                f"accounting must be one of {', '.join(map(repr, ACCOUNTINGS))}, got {accounting!r}"
                + write_one_of("accounting", accounting, ACCOUNTINGS)
            )
        above = self._above(parent)
        how["orders"] = _orders(how.get("orders"), above)
        options = read_options(name, epsilon, delta, **how)
        _check(options, part, parent, partition)
        block = above is not None and above.terms["accounting"] == "output" and accounting != "output"
        fixed = ACCOUNTINGS[accounting].terms(options)
        body: Body = {
            "kind": "budget",
            "name": name,
            "parent": parent,
            "part": part or WHOLE,
            "partition": partition,
            "block": block,
            "accounting": accounting,
            "adjacency": _adjacency(adjacency, above).value,
            "epsilon": str(options.epsilon),
            "delta": str(options.delta),
            "delta_each": str(options.delta_each),
            "failure": str(options.failure),
            "sequence": None,
            **fixed,
        }
        if not (self._store.missing and self._store.create(lambda new: self._begin(new, body))):
            with self._store.write() as transaction:
                transaction.append(body)
        return Budget(self._store, self._store.origin, body)

    def _begin(self, transaction: Transaction, budget: Body) -> None:
        transaction.append({"kind": "ledger", "id": secrets.token_hex(16), "format": 2, "dates": self._dates})
        transaction.append(budget)

    def _above(self, parent: str | None) -> Account | None:
        if parent is None:
            return None
        parent = public_text("parent", parent)
        with self._store.read() as transaction:
            above = transaction.account(parent)
        if above is None:
            raise ArgumentError(f"parent: there is no budget {parent!r}{self._near(parent)}")
        return above

    def _near(self, name: str) -> str:
        """The end of an error for a name that no budget has: a similar one."""
        near = get_close_matches(name, [budget.name for budget in self.budgets()], n=1)
        return f". Did you mean {near[0]!r}?" if near else ""

    def budget(self, name: str) -> Budget:
        """An existing budget. Raises `ArgumentError` when there is none of this name."""
        name = public_text("name", name)
        with self._store.read() as transaction:
            account = transaction.account(name)
        if account is None:
            raise ArgumentError(f"there is no budget {name!r} in {self._store.name}: {MAKES_IT}{self._near(name)}")
        return Budget(self._store, self._store.origin, account.terms)

    def budgets(self) -> list[Budget]:
        """All budgets, by name."""
        with self._store.read() as transaction:
            names = transaction.account_names()
        return [self.budget(name) for name in names]

    def head(self) -> ChainHead:
        """The last entry: keep it elsewhere, and a restored old copy is found."""
        with self._store.read() as transaction:
            return transaction.tip()

    def verify(self, receipt: Receipt | None = None) -> bool:
        """Fold the whole record again and compare: True, or an error that names the first bad entry.

        Checks the chain of hashes, every entry against the rules, and the kept sums against the record. With
        a `receipt`, checks that the record holds its entry. An unkeyed chain shows damage and restored copies. It does
        not show a record that someone with write access made again from the start: compare heads kept elsewhere.

        Raises `LedgerDamagedError` (with `.sequence`) and, for a receipt, `StaleRecordError`.
        """
        with self._store.read() as transaction:
            verify_record(transaction)
            if receipt is not None:
                if receipt.sequence is None or receipt.head is None:
                    raise ArgumentError("receipt: it names no entry of a ledger")
                if transaction.holds(receipt.head) != receipt.sequence:
                    raise StaleRecordError(f"the record lacks entry {receipt.sequence} of this receipt")
        return True

    def entries(self) -> Iterator[tuple[int, str, Body]]:
        """Number, head and body of every entry, in order. Readers of these count as receivers of the outputs.

        Up to the last one at the start. Read in pages, so that others can write meanwhile: entries never change.
        """
        last, end = 0, self.head().sequence
        while last < end:
            with self._store.read() as transaction:
                page = transaction.page(last)
            for sequence, head, body in page[: end - last]:
                yield sequence, head, json_of(body, ENTRY, "an entry")
            if not page:
                return
            last = page[-1][0]

    def history(self, name: str) -> list[tuple[int, Amounts, Fraction]]:
        """After every entry that moved a budget: its number, what was spent, and the epsilon refunded so far."""
        kind = ACCOUNTINGS[self.budget(name).accounting]
        books, readings, last = MemoryBooks(), [], None
        with self._store.read() as transaction:
            for head, _ in folded(transaction.entries(), books):
                account = books.account(name)
                if account is not None and account.buckets != last:
                    last = {part: dict(bucket) for part, bucket in account.buckets.items()}
                    readings.append((head.sequence, kind.reading(account), account.refunded))
        return readings

    def close(self) -> None:
        """Close the connections. Nothing is lost without it."""
        self._store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        if self._store.missing:
            return grid(f"Ledger {self._store.name}", (), [], note="there is no ledger yet: creating a budget makes it")
        rows = [
            (b.name, b.parent, b.accounting, float(b.epsilon), float(b.spent().epsilon), float(b.remaining().epsilon))
            for b in self.budgets()
        ]
        head = ("budget", "within", "counts", "epsilon", "spent", "left")
        return grid(f"Ledger {self._store.name}", head, rows, note=f"entry {self.head().sequence}")

    def __repr__(self) -> str:
        return f"Ledger({self._store.name!r})"


def _check(options: Options, part: str | None, parent: str | None, partition: str | None) -> None:
    if not 0 < options.epsilon <= _LARGEST:
        raise ArgumentError(f"epsilon must be above 0 and at most {_LARGEST}")
    if options.delta >= 1 or options.delta_each > options.delta or options.failure > options.delta:
        raise ArgumentError("delta must be below 1, delta_each and failure at most delta. Write delta=1e-6")
    if part is not None and parent is None:
        raise ArgumentError("part: a budget without a parent is about all of the data")
    if options.sequence is not None and partition is not None:
        raise ArgumentError("partition: a sequence fixed in advance has no parts")


def _adjacency(given: Adjacency | str | None, above: Account | None) -> Adjacency:
    if given is None:
        return Adjacency(above.terms["adjacency"]) if above is not None else Adjacency.ADD_OR_REMOVE_ONE
    return parse_adjacency(given)


def _orders(given: Sequence[float] | None, above: Account | None) -> Sequence[float] | None:
    """Below a filter its orders are taken over, so that both count in the same units."""
    if given is not None or above is None or above.terms.get("filter") != "renyi":
        return given
    return [float(unit.removeprefix("order ")) for unit in above.terms["limits"] if unit != "failure"]
