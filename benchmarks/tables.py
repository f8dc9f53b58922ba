"""Reading tables of a study: processor time and memory, from a file to the parts that train and validate.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.tables [--quick] [--only NAME ...]

Each table is made (the same every time) in a temporary folder and read by a process of its own: `long` has numbers,
dates and categories with many rows, `wide` 500 columns of numbers. Memory is the largest that the process held, less
what it held before it opened the file; "matrix" is the size of the features alone. `--quick`: a hundredth of the rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLES = {
    "long, Parquet": ("long.parquet", 5_000_000, 8),
    "long, CSV": ("long.csv", 5_000_000, 8),
    "wide, Parquet": ("wide.parquet", 50_000, 500),
    "wide, CSV": ("wide.csv", 10_000, 500),
}
READER = """
import json, resource, sys, time
from pathlib import Path
from dpselect.study import parse_study
from dpselect.study.data import load, plan_columns
from dpselect.study.row_parts import validation_mask
from dpselect.tables.table import open_table
study = parse_study(json.loads(sys.argv[1]))
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
table = open_table(study.data.source, Path())
before, start = peak(), time.process_time()
rows = load(study.data, table, plan_columns(study.data, table))
read = time.process_time() - start
mask = validation_mask(rows.digests, fraction=0.2, adjacency=study.privacy.adjacency, salt="x")
parts = rows.features[mask], rows.features[~mask]
print(json.dumps([read, time.process_time() - start - read, peak() - before, rows.features.nbytes / 2**20]))
"""
"""In a process of its own: peaks never go down."""


def make(path: Path, rows: int, numbers: int) -> dict[str, Any]:
    """Write a table; returns the study's [data.columns]."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv, parquet

    random = np.random.default_rng(1)
    columns: dict[str, Any] = {f"x{i}": random.normal(size=rows).round(6) for i in range(numbers)}
    facts: dict[str, Any] = {name: {"bounds": [-3, 3]} for name in columns}
    if numbers < 100:
        columns["job"] = np.array(["nurse", "teacher", "clerk", "none"])[random.integers(0, 4, rows)]
        columns["joined"] = np.datetime64("2000-01-01", "s") + random.integers(0, 8 * 10**8, rows)
        facts["job"] = {"categories": ["nurse", "teacher", "clerk"], "other": True}
        facts["joined"] = {"kind": "date", "bounds": ["2000-01-01", "2026-01-01"]}
    columns["label"] = np.array(["no", "yes"])[(columns["x0"] > 0).astype(int)]
    made = pa.table(columns)
    parquet.write_table(made, path) if path.suffix == ".parquet" else csv.write_csv(made, path)
    return facts


def measured(name: str, quick: bool) -> list[float]:
    """Seconds of reading, of dealing rows to parts; MiB at most, MiB of the features."""
    source, rows, numbers = TABLES[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, source)
        facts = make(path, rows // 100 if quick else rows, numbers)
        study = {
            "data": {"source": str(path), "label": "label", "classes": ["no", "yes"], "columns": facts},
            "privacy": {"epsilon": 1.0, "delta": 1e-9, "nominal_rows": rows},
            "space": {"learning_rate": {"law": "uniform", "low": 0.1, "high": 1.0}},
            "repetitions": {"law": "fixed", "count": 1},
            "output": {"folder": "out"},
        }
        command = [sys.executable, "-c", READER, json.dumps(study)]
        found: list[float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        return found


def lines(names: list[str], quick: bool) -> Iterator[str]:
    """The table."""
    yield "| table | rows | columns | reading | dealing to parts | memory | matrix |"
    yield "|---|---|---|---|---|---|---|"
    for name in names:
        read, dealt, memory, matrix = measured(name, quick)
        _, rows, numbers = TABLES[name]
        rows, columns = rows // 100 if quick else rows, numbers + (3 if numbers < 100 else 1)
        yield f"| {name} | {rows:,} | {columns} | {read:.2f} s | {dealt:.2f} s | {memory:.0f} MiB | {matrix:.0f} MiB |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="*", choices=list(TABLES), default=list(TABLES))
    asked = parser.parse_args()
    for line in lines(asked.only, asked.quick):
        print(line, flush=True)
