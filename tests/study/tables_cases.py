"""Cells of every type, and columns that encode them."""

from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np

from dpselect.study.columns.column import Column
from dpselect.study.data import load
from dpselect.study.schema_data import Data
from dpselect.tables.table import open_table


def cells(*values):
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found


def encoded(facts, *values):
    return Column(**facts).encode("c", cells(*values)).tolist()


FACTS = {
    "zeit": {"kind": "date", "bounds": ("2000-01-01", "2001-01-01"), "missing": "indicator"},
    "alter": {"bounds": (0, 100), "missing": 40},
    "dauer": {"kind": "duration", "bounds": (0, 7200), "missing": "indicator"},
    "beruf": {"categories": ("arzt", "koch"), "other": True, "missing": "indicator"},
    "betrag": {"bounds": (0, 1000), "scale": "log", "missing": "indicator"},
    "aktiv": {"bounds": (0, 1), "missing": "indicator"},
}
ROWS = [  # zeit, alter, dauer, beruf, betrag, aktiv, label
    (datetime(2000, 7, 1, 12), 30, timedelta(hours=1), "koch", Decimal("12.50"), True, "ja"),
    (None, None, None, None, None, None, "nein"),
    (datetime(1999, 1, 1), 101, timedelta(seconds=5), "pilot\nim Flug", Decimal("999.99"), False, "ja"),
    (datetime(2000, 1, 2), 0, timedelta(0), "arzt", Decimal("0.00"), True, "vielleicht"),
]
NAMES = (*FACTS, "label")


def facts(source, **form):
    return Data.model_validate(
        {"source": source, "label": "label", "classes": ("ja", "nein"), "columns": FACTS, **form}
    )


def text_of(rows, separator=",", comma=False):
    def shown(cell):
        text = "" if cell is None else str(cell)
        text = text.replace(".", ",") if comma and isinstance(cell, Decimal) else text
        return f'"{text}"' if "\n" in text or separator in text else text

    return (
        "\n".join(separator.join(map(shown, row)) for row in [("unbenutzt", *NAMES), *((1, *r) for r in rows)]) + "\n"
    )


def rows_of(tmp_path, source, **form):
    data = facts(source, **form)
    return load(data, open_table(source, tmp_path, form=data.form))
