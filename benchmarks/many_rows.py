"""Three quartiles of many rows of Parquet by the command line: seconds of processor time and the most memory held.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.many_rows [--rows 100000000]

The file (4 bytes a row, one row group for each million rows) is made in a temporary folder and deleted afterwards.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

GROUP = 10**6


def make(path: Path, rows: int) -> None:
    """Write a column x of int32 without compression."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    random, schema = np.random.default_rng(1), pa.schema([("x", pa.int32())])
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, rows, GROUP):
            values = random.lognormal(10, 1, min(GROUP, rows - start)).astype(np.int32)
            writer.write_table(pa.table({"x": values}, schema))


def measure(path: Path) -> tuple[float, float]:
    """Run the command in a process of its own; its processor seconds, and the largest memory that it held in MiB."""
    bounds = ["--lower", "0", "--upper", "10000000", "--epsilon", "1"]
    quartiles = ["--q", "0.25", "--q", "0.5", "--q", "0.75"]
    process = subprocess.Popen(["dpselect", "quantile", str(path), "--column", "x", *bounds, *quartiles])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit("the command failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 2**10


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**8)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "many.parquet"
        make(file, rows)
        size = file.stat().st_size
        seconds, mebibytes = measure(file)
        print(f"{rows} rows, {size / 1e6:.0f} MB of Parquet: {seconds:.1f} s of processor time, {mebibytes:.0f} MiB")
