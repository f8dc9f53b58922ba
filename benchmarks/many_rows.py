"""Three quartiles of many rows: seconds of processor time and the most memory held, by the engine that has the rows.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.many_rows [--rows 100000000] [--engines parquet duckdb]

"parquet" is the command line on the file. The others are tables of DuckDB, and lazy frames of polars, Dask and Spark on
the same file; "duckdb alone" is DuckDB's own exact `quantile_disc`, without privacy. The file (4 bytes a row, one row
group for each million rows) and the database are made in a temporary folder and deleted afterwards. The Java process of
Spark is not counted.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

GROUP = 10**6
QS = (0.25, 0.5, 0.75)
BOUNDS = {"lower": 0, "upper": 10_000_000, "epsilon": 1.0}


def make(path: Path, rows: int) -> None:
    """Write a column x of int32 without compression, and the same rows as doubles in a table of DuckDB."""
    import duckdb
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    random, schema = np.random.default_rng(1), pa.schema([("x", pa.int32())])
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, rows, GROUP):
            values = random.lognormal(10, 1, min(GROUP, rows - start)).astype(np.int32)
            writer.write_table(pa.table({"x": values}, schema))
    with duckdb.connect(str(path.with_suffix(".duckdb"))) as base:
        base.execute(f"CREATE TABLE t AS SELECT x::DOUBLE AS x FROM '{path}'")


def _released(values: Any) -> Any:
    from dpselect.ordered import quantiles

    return quantiles(values, qs=QS, **BOUNDS).value  # type: ignore[arg-type]


def of_parquet(path: Path) -> Any:
    from dpselect.cli import main

    given = [f"--{name}={value}" for name, value in BOUNDS.items()]
    sys.argv = ["dpselect", "quantile", str(path), "--column", "x", *given, *(f"--q={q}" for q in QS)]
    return main()


def of_duckdb(path: Path) -> Any:
    from dpselect.ordered import open_column

    with open_column(f"duckdb:///{path.with_suffix('.duckdb')}", "x", table="t") as column:
        return _released(column)


def of_duckdb_alone(path: Path) -> Any:
    import duckdb

    with duckdb.connect(str(path.with_suffix(".duckdb")), read_only=True) as base:
        return base.execute(f"SELECT quantile_disc(x, {list(QS)}) FROM t").fetchall()[0][0]


def of_ibis(path: Path) -> Any:
    import ibis

    return _released(ibis.duckdb.connect(path.with_suffix(".duckdb"), read_only=True).table("t").x)


def of_polars(path: Path) -> Any:
    import polars as pl

    return _released(pl.scan_parquet(path))


def of_dask(path: Path) -> Any:
    import dask
    import dask.dataframe as dd

    with dask.config.set(scheduler="threads", num_workers=2):
        return _released(dd.read_parquet(path))


def of_spark(path: Path) -> Any:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    return _released(session.read.parquet(str(path)))


ENGINES: dict[str, Callable[[Path], Any]] = {
    "parquet": of_parquet,
    "duckdb": of_duckdb,
    "duckdb alone": of_duckdb_alone,
    "ibis": of_ibis,
    "polars": of_polars,
    "dask": of_dask,
    "spark": of_spark,
}


def measure(engine: str, path: Path) -> tuple[float, float]:
    """Run one engine in a process of its own; its processor seconds, and the largest memory that it held in MiB."""
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.many_rows", "--one", engine, str(path)])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{engine} failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 2**10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=10**8)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=["parquet", "duckdb", "duckdb alone"])
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(given.one[0], ENGINES[given.one[0]](Path(given.one[1])), flush=True)
        return
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "many.parquet"
        maker = multiprocessing.get_context("spawn").Process(target=make, args=(file, given.rows))
        maker.start()  # apart, as the memory that a process ever held is counted for its children too
        maker.join()
        for engine in given.engines:
            seconds, mebibytes = measure(engine, file)
            print(f"{engine}, {given.rows} rows: {seconds:.1f} s of processor time, {mebibytes:.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
