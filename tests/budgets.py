"""One budget of one ledger without a witness, for tests whose subject is what is paid."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from dpselect.ledger import Budget, Ledger, LedgerMissingError


def budget_at(path: Path | str, epsilon=10, delta=0) -> Budget:
    """The budget of the ledger at a path; the first call makes it."""
    ledger = Ledger.open(path, witness=False)
    try:
        return ledger.budget("b")
    except LedgerMissingError:
        return ledger.create_budget("b", epsilon=epsilon, delta=delta)


def charges(path: Path | str) -> list[bool]:
    """Whether each reservation in the ledger at a path is settled, in order; none where there is no ledger."""
    with closing(Ledger.open(path, witness=False)) as ledger:
        try:
            kinds = [(body["kind"], body.get("identifier")) for _, _, body in ledger.entries()]
        except LedgerMissingError:
            return []
    return [("settle", identifier) in kinds for kind, identifier in kinds if kind == "reserve"]
