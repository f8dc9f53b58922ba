"""Columns of ordinary cells with one odd cell among them."""

from __future__ import annotations

import numpy as np

from tests.ordered.sources import column_laws as laws

ROWS = laws.ORDINARY
DAYS = np.datetime64("2024-06-01", "us") + np.arange(ROWS) * np.timedelta64(3, "h")


def ordinary(kind):
    return {
        "i": lambda: (np.arange(ROWS) % 100).tolist(),
        "f": lambda: ((np.arange(ROWS) % 100) + 0.25).tolist(),
        "M": DAYS.tolist,
        "T": lambda: (["low", "middle", "high", "other"] * ROWS)[:ROWS],
    }[kind]()
