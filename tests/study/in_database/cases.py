"""Tables with missing cells, odd numbers and spellings of categories, in each engine; studies of ridge on them."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager

import numpy as np
import pytest

from dpselect.study import parse_study
from dpselect.study.price import check_budget, price
from dpselect.study.validate import StudyPaths, validate

POSTGRES = os.environ.get("DPSELECT_TEST_POSTGRES")
ENGINES = [
    "sqlite",
    "duckdb",
    pytest.param("postgresql", marks=pytest.mark.skipif(POSTGRES is None, reason="needs a PostgreSQL server")),
]
TYPES = {
    "sqlite": ("INTEGER", "REAL", "REAL", "TEXT", "REAL", "TEXT"),
    "duckdb": ("BIGINT", "DOUBLE", "DOUBLE", "VARCHAR", "DOUBLE", "VARCHAR"),
    "postgresql": ("BIGINT", "DOUBLE PRECISION", "DOUBLE PRECISION", "TEXT", "DOUBLE PRECISION", "VARCHAR(20)"),
}
NAMES = ("key", "age", "income", "city", "spent", "bought")


def rows(count, seed=1):
    """Rows of these names. Numbers beyond bounds, infinite and tiny ones, empty cells, categories in several ways."""
    random = np.random.default_rng(seed)
    age = random.uniform(-10, 110, count)
    income = np.where(random.random(count) < 0.1, None, random.normal(3, 4, count))
    city = random.choice(["Rome", " Rome", "Oslo", "Paris", "", "caf\u00e9", "cafe\u0301", None], count)
    spent = age / 20 + random.normal(0, 1, count)
    bought = np.where(age + random.normal(0, 10, count) > 50, "yes", "no").astype(object)
    bought[:2] = ["maybe", None]
    income[:4] = [5e-324, float("inf"), 1e308, -0.0]
    return list(zip(range(count), age.tolist(), income.tolist(), city.tolist(), spent.tolist(), bought, strict=True))


@contextmanager
def database(engine, folder, rows, types=None):
    """The URL of a database whose table people has these rows."""
    columns = ", ".join(f'"{name}" {kind}' for name, kind in zip(NAMES, types or TYPES[engine], strict=True))
    create, marks = f"CREATE TABLE people ({columns})", ", ".join("?" * len(NAMES))
    if engine == "sqlite":
        with closing(sqlite3.connect(folder / "d.db")) as base, base:
            base.execute(create)
            base.executemany(f"INSERT INTO people VALUES ({marks})", rows)
        yield f"sqlite:///{folder / 'd.db'}"
    elif engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(str(folder / "d.duckdb")) as base:
            base.execute(create)
            for row in rows:
                base.execute(f"INSERT INTO people VALUES ({marks})", row)
        yield f"duckdb:///{folder / 'd.duckdb'}"
    else:
        psycopg = pytest.importorskip("psycopg")
        schema = f"process_{os.getpid()}"  # several processes test with one server
        url = f"{POSTGRES}{'&' if '?' in POSTGRES else '?'}options=-csearch_path%3D{schema}"
        with psycopg.connect(url, autocommit=True) as base:
            base.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            base.execute(f"CREATE SCHEMA {schema}")
            base.execute(create)
            base.cursor().executemany(f"INSERT INTO people VALUES ({marks.replace('?', '%s')})", rows)
            yield url
            base.execute(f"DROP SCHEMA {schema} CASCADE")


COLUMNS = {
    "age": {"bounds": [0, 100]},
    "income": {"bounds": [-2, 9], "missing": "indicator", "scale": "bins:4"},
    "city": {"categories": ["Rome", "Oslo", "caf\u00e9"], "other": True, "missing": "Oslo"},
}
CLASSES = {"label": "bought", "classes": ["no", "yes"]}
NUMBERS = {"label": "spent", "task": "regression", "label_bounds": [0, 5]}


def document(url, label=CLASSES, **changes):
    """A study of ridge with rows that are held out by their key."""
    found = {
        "name": "people",
        "data": {"source": url, "table": "people", "row_key": "key", "columns": COLUMNS, **label},
        "privacy": {"epsilon": 4.0, "delta": 1e-6, "nominal_rows": 600},
        "learner": {"name": "ridge"},
        "validation": {"data": "private", "fraction": 0.3},
        "runs": {"executor": "inline"},
        "output": {"folder": "out"},
    }
    for name, table in changes.items():
        found[name] = {**found.get(name, {}), **table}
    return found


def priced(document, folder):
    study = parse_study(document)
    return check_budget(price(validate(study, StudyPaths.of(study, folder, folder / "out"))))
