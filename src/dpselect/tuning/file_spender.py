"""A small durable budget in one file, for a study without a ledger."""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from dpselect.errors import AdjacencyError, ArgumentError, BudgetError, StudyError, number, public_text
from dpselect.numerics import rounded_down, rounded_up
from dpselect.privacy import Guarantee, OutputGuarantee, Receipt
from dpselect.privacy.promises import promise_or_output
from dpselect.randomness.starting import refuse_while_starting
from dpselect.storage import durable

__all__ = ["FileSpender"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS reservation (
    identifier TEXT PRIMARY KEY,
    label TEXT NOT NULL,
    adjacency TEXT NOT NULL,
    epsilon TEXT NOT NULL,
    delta TEXT NOT NULL,
    settled INTEGER NOT NULL DEFAULT 0
) STRICT
"""

Exact = int | float | str | Decimal | Fraction


class FileSpender:
    """A budget (epsilon, delta) under basic composition: charges add up, in exact arithmetic, and never above it.

    Every reservation is charged at `delta_each` (by default all of delta, which leaves room for one; 0 for pure
    budgets), with the epsilon that its guarantee has there. A float is read as the larger of its exact value and the
    shortest decimal that stands for it, in a charge and in a budget: no charge is below its price, and a charge fits a
    budget of the same float. Text and fractions are exact. Every change is on disk when the call returns. The budget
    itself is the caller's and is not kept in the file.

    Raises `ArgumentError` for a budget that is out of range and `StudyError` for a file that cannot be used.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, epsilon: Exact, delta: Exact, delta_each: Exact | None = None
    ) -> None:
        self._path = Path(path)
        self._epsilon = _exact("epsilon", epsilon)
        self._delta = _exact("delta", delta)
        self._delta_each = self._delta if delta_each is None else _exact("delta_each", delta_each)
        if self._epsilon == 0:
            raise ArgumentError("epsilon must be above 0")
        if self._delta >= 1 or self._delta_each > self._delta:
            raise ArgumentError("delta must be below 1, and delta_each at most delta")

    def reserve(self, guarantee: Guarantee | OutputGuarantee, *, label: str, identifier: str) -> Receipt:
        """Charge a guarantee (an output guarantee at its worst); durable on return, idempotent in `identifier`.

        Raises `BudgetError` if the rest of the budget is too small, `AdjacencyError` if earlier charges have another
        adjacency, `ArgumentError` if the identifier is settled already or known with another price.
        """
        label, identifier = public_text("label", label), public_text("identifier", identifier)
        guarantee = promise_or_output("guarantee", guarantee)
        priced = guarantee.worst() if isinstance(guarantee, OutputGuarantee) else guarantee
        epsilon = priced.epsilon(_float_below(self._delta_each))
        if not epsilon < float("inf"):
            raise BudgetError(f"{label!r} has no finite epsilon at delta {rounded_down(float(self._delta_each))}")
        row = (label, priced.adjacency.value, str(_exact("epsilon", epsilon)), str(self._delta_each))
        with self._transaction() as connection:
            booked = connection.execute(
                "SELECT settled, label, adjacency, epsilon, delta FROM reservation WHERE identifier = ?", (identifier,)
            ).fetchone()
            if booked is None:
                self._check_room(connection, row)
                connection.execute("INSERT INTO reservation VALUES (?, ?, ?, ?, ?, 0)", (identifier, *row))
            elif booked[0]:
                raise ArgumentError(f"identifier {identifier!r} is settled already: it pays for no other run")
            elif booked[2:] != row[1:]:
                raise ArgumentError(f"identifier {identifier!r} is already reserved with another price")
        return self._receipt(identifier, row[2], row[3])

    def settle(self, identifier: str, *, cell: Hashable | None = None) -> Receipt:  # noqa: ARG002 - the protocol's
        """Close a reservation in full, whatever the cell; durable on return, idempotent.

        Raises `ArgumentError` for an unknown identifier.
        """
        identifier = public_text("identifier", identifier)
        with self._transaction() as connection:
            booked = connection.execute(
                "SELECT epsilon, delta FROM reservation WHERE identifier = ?", (identifier,)
            ).fetchone()
            if booked is None:
                raise ArgumentError(f"identifier {identifier!r} has no reservation in {self._path}")
            connection.execute("UPDATE reservation SET settled = 1 WHERE identifier = ?", (identifier,))
        return self._receipt(identifier, *booked)

    def spent(self) -> tuple[Fraction, Fraction]:
        """The sums of epsilon and of delta, settled or not."""
        with self._transaction() as connection:
            return _sums(connection)

    def _check_room(self, connection: sqlite3.Connection, row: tuple[str, str, str, str]) -> None:
        label, adjacency, epsilon, delta = row
        others = {found for (found,) in connection.execute("SELECT DISTINCT adjacency FROM reservation")} - {adjacency}
        if others:
            raise AdjacencyError(f"{label!r} is under {adjacency}, earlier charges are under {', '.join(others)}")
        spent_epsilon, spent_delta = _sums(connection)
        if spent_epsilon + Fraction(epsilon) > self._epsilon or spent_delta + Fraction(delta) > self._delta:
            raise BudgetError(
                f"{label!r} costs epsilon {rounded_up(float(Fraction(epsilon)))} at delta "
                f"{rounded_up(float(Fraction(delta)))}; of the budget, epsilon "
                f"{rounded_down(float(self._epsilon - spent_epsilon))} and delta "
                f"{rounded_down(float(self._delta - spent_delta))} are left"
            )

    def _receipt(self, identifier: str, epsilon: str, delta: str) -> Receipt:
        charged: dict[str, float | str] = {"epsilon": float(Fraction(epsilon)), "delta": float(Fraction(delta))}
        return Receipt(account=str(self._path), identifier=identifier, charged=charged)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        refuse_while_starting("a budget")  # before there is a file
        try:
            # Never opened when it is there: closing it would drop the locks that other threads hold on it.
            with suppress(FileExistsError):
                os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            connection = durable.connect(self._path, exclusive=False)
        except (OSError, sqlite3.DatabaseError):
            raise StudyError(f"the budget file {self._path} cannot be used") from None
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_SCHEMA)
            yield connection
            durable.commit(connection)
        except sqlite3.DatabaseError:
            raise StudyError(f"the budget file {self._path} cannot be used") from None
        finally:
            connection.close()  # rolls back what was not committed


def _sums(connection: sqlite3.Connection) -> tuple[Fraction, Fraction]:
    rows = connection.execute("SELECT epsilon, delta FROM reservation").fetchall()
    return sum((Fraction(row[0]) for row in rows), Fraction(0)), sum((Fraction(row[1]) for row in rows), Fraction(0))


def _exact(name: str, value: Exact) -> Fraction:
    try:
        exact = Fraction(value)
        parsed = max(exact, Fraction(repr(float(value)))) if isinstance(value, float) else exact
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise ArgumentError(f"{name} must be a finite number, got {value!r}") from None
    number(name, parsed, at_least=0.0)
    return parsed


def _float_below(value: Fraction) -> float:
    """The nearest float, or the one below: a charge is never priced at a larger delta than is booked.

    A delta that was given as a decimal is booked as that, and priced at the float that stands for it.
    """
    nearest = float(value)
    while Fraction(repr(nearest)) > value:
        nearest = math.nextafter(nearest, 0.0)
    return nearest
