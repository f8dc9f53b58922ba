"""The rows that a database makes: those of NumPy to the last bit, in every scale, and never beyond the unit ball."""

import sqlite3

import numpy as np
import pytest

from dpselect.learners.fixed_point import STEP
from dpselect.learners.rows import targets_of, unit_rows
from dpselect.study.columns.column import Column
from dpselect.study.in_database import statement as module
from dpselect.study.in_database.dialect import DIALECTS
from dpselect.study.in_database.fields import NumberField
from dpselect.study.in_database.statement import RowStatement
from dpselect.tables.statements import with_parameters

COLUMNS = {
    "a": Column(bounds=(-1.5, 7)),
    "b": Column(bounds=(0, 3), missing="indicator"),
    "c": Column(bounds=(-1, 1), scale="bins:3", missing=0.9),
    "d": Column(bounds=(1e-3, 1e9), missing=5),
}
LABEL = NumberField('"y"', (-2.0, 11.0), 0.0)


@pytest.fixture
def table():
    random = np.random.default_rng(3)
    cells = random.normal(0, 3, (80, 5))
    cells[:8, 1:4] = np.nan
    cells[8:12] = [[1e308] * 5, [-np.inf] * 5, [5e-324] * 5, [-0.0] * 5]
    cells[:, 0] = np.nan_to_num(cells[:, 0])
    return cells


def base_of(cells):
    base = sqlite3.connect(":memory:")
    for name, function in DIALECTS["sqlite"].functions(None).items():
        base.create_function(name, 1, function)
    base.execute("CREATE TABLE t (a REAL, b REAL, c REAL, d REAL, y REAL)")
    base.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", cells.tolist())
    return base


def asked(row_norm):
    fields = [
        NumberField(f'"{name}"', each.limits, each.fill, each.bins, each.missing == "indicator")
        for name, each in COLUMNS.items()
    ]
    return RowStatement("sqlite", "t", fields, LABEL, row_norm, None)


@pytest.mark.parametrize("row_norm", [1.0, 0.3, 2.5])
def test_sums_are_those_of_unit_rows(table, row_norm):
    statement = asked(row_norm)
    text = statement.sums([*(f"z{place} * z{place}" for place in range(7)), "z0 * z1", "z3", "z0 * y", "y"])
    base = base_of(table)
    ((_, rows, *found),) = base.execute(with_parameters(text, lambda at: f"?{at + 1}"), statement.parameters)
    features = np.column_stack([column.features(table[:, place]) for place, column in enumerate(COLUMNS.values())])
    z = (unit_rows(features, row_norm, intercept=0.0) / STEP).astype(np.int64)
    y = (targets_of(table[:, 4], len(table), LABEL.bounds) / STEP).astype(np.int64)
    wanted = [*(z * z).sum(axis=0), z[:, 0] @ z[:, 1], z[:, 3].sum(), z[:, 0] @ y, y.sum()]
    assert (rows, found) == (len(table), [int(each) for each in wanted])


def test_a_row_that_an_engine_makes_too_long_is_in_no_sum(table, monkeypatch):
    """Whatever an engine's arithmetic does, the guarantee needs integers within the unit ball alone."""
    monkeypatch.setattr(module, "_SHRUNK", 1.5)
    statement = asked(1.0)
    base = base_of(table)
    text = statement.sums(["z0"])
    found = base.execute(with_parameters(text, lambda at: f"?{at + 1}"), statement.parameters).fetchall()
    assert sum(rows for _, rows, *_ in found) < len(table)


def test_no_level_is_longer_than_its_columns_allow():
    """Statements grow with the number of columns, and not with its square, but for the sums."""

    def size(columns):
        fields = [NumberField(f'"x{place}"', (0.0, 1.0), 0.5) for place in range(columns)]
        return len(RowStatement("duckdb", "t", fields, LABEL, 1.0, None).sums(["z0"]))

    assert size(80) < 2.2 * size(40)
