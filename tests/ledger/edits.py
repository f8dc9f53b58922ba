"""Changes of a ledger's file outside dpselect, and a spend from it."""

from __future__ import annotations

import sqlite3

from dpselect.ledger import Ledger
from dpselect.privacy import pure_dp

LAST = "(SELECT max(sequence) FROM ledger_entry)"


def edited(path, *statements):
    """Change the file outside dpselect; the triggers are dropped first, as an intruder would."""
    connection = sqlite3.connect(path)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    for _, sql in triggers:
        connection.execute(sql)
    connection.commit()
    connection.close()


def spend(path, epsilon=1, **options):
    with Ledger.open(path, **options) as ledger:
        return ledger.budget("b").reserve(pure_dp(epsilon=epsilon), label="s")
