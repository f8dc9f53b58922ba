"""A million cells of a CSV file, and ten million rows of Parquet: ours beside pandas, polars, Arrow and NumPy.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.read_cells [--rows 1000000] [--parquet-rows 10000000]

Files are made (the same every time) in a temporary folder. Each line is a process of its own, and the least of three
readings in it after a first one that loads what it needs: seconds of processor time, and the largest memory that the
process held in MiB (of Linux), less what it held before.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

PEAK = "int(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0]) / 2**10"
TIMED = """
import time
from pathlib import Path
{imports}
peak = lambda: {peak}
before, seconds = peak(), []
for _ in range(4):
    start = time.process_time()
    {step}
    seconds.append(time.process_time() - start)
print(f"{{min(seconds[1:]):.3f}} s, {{peak() - before:.0f}} MiB")
"""
OURS = "from dpselect.ordered import median, open_column, quantiles\nfrom dpselect.tables import open_table"
NAMES = [f"x{k}" for k in range(20)]
STUDY = f"open_table(Path('wide.csv')).read({NAMES!r}, {NAMES!r})"
MEDIAN = "with open_column('{}', 'x', look=True) as source: median(source, lower=0, upper=10**6, epsilon=1)"
STEPS = {
    "a study: 20 columns of numbers": (OURS, STUDY),
    "  pandas.read_csv": ("import pandas", "pandas.read_csv('wide.csv')"),
    "  polars.read_csv": ("import polars", "polars.read_csv('wide.csv')"),
    "  pyarrow.csv.read_csv": ("from pyarrow import csv", "csv.read_csv('wide.csv')"),
    "  numpy.loadtxt": ("import numpy", "numpy.loadtxt('wide.csv', delimiter=',', skiprows=1)"),
    "the median of a column of CSV": (OURS, MEDIAN.format("long.csv")),
    "  pandas": ("import pandas", "pandas.read_csv('long.csv', usecols=['x'])['x'].median()"),
    "  polars": ("import polars", "polars.read_csv('long.csv', columns=['x'])['x'].median()"),
    "the median of a column of JSON lines": (OURS, MEDIAN.format("long.jsonl")),
    "  pandas.read_json": ("import pandas", "pandas.read_json('long.jsonl', lines=True)['x'].median()"),
    "the median of a column of Parquet": (OURS, MEDIAN.format("long.parquet")),
}


def make(folder: Path, rows: int, parquet_rows: int) -> None:
    """Write the files, in a process of their own."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv, parquet

    random = np.random.default_rng(1)
    table = pa.table({"id": np.arange(rows), "x": random.lognormal(10, 1, rows).round(2)})
    csv.write_csv(table, folder / "long.csv")
    with (folder / "long.jsonl").open("w") as file:
        file.writelines(f'{{"id": {name}, "x": {value!r}}}\n' for name, value in enumerate(table["x"].to_pylist()))
    wide = pa.table({name: random.normal(size=rows // len(NAMES)).round(6) for name in NAMES})
    csv.write_csv(wide, folder / "wide.csv", csv.WriteOptions(quoting_header="none"))
    schema = pa.schema([("x", pa.float64())])
    with parquet.ParquetWriter(folder / "long.parquet", schema) as writer:
        for start in range(0, parquet_rows, 10**6):
            values = random.lognormal(10, 1, min(10**6, parquet_rows - start))
            writer.write_table(pa.table({"x": values}, schema))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--parquet-rows", type=int, default=10**7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        make(Path(name), asked.rows, asked.parquet_rows)
        for what, (imports, step) in STEPS.items():
            code = TIMED.format(imports=imports, peak=PEAK, step=step)
            found = subprocess.run([sys.executable, "-c", code], cwd=name, capture_output=True, text=True, check=True)
            print(f"{what:<40} {found.stdout.strip()}", flush=True)
