"""CSV: exports of Weights & Biases and MLflow, trials of Optuna, `cv_results_`, or a table written by hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from dpselect.decoding.limits import SWEEP
from dpselect.errors import ContentError
from dpselect.integrations.sweeps.rows import sweep_of_rows
from dpselect.integrations.sweeps.sweep import RecordedSweep, refuse_part, sweep_format
from dpselect.tables.csv_text import CsvForm, csv_header, csv_rows

__all__ = ["read_csv_table"]

_DELIMITERS = (",", ";", "\t")


def _matches(source: str) -> bool:
    path = Path(source)
    return path.suffix.lower() in (".csv", ".tsv") and path.is_file()


@sweep_format("csv", matches=_matches)
def read_csv_table(source: str, part: str | None) -> RecordedSweep:
    """A row for each run, with commas, semicolons or tabs between the cells."""
    refuse_part(part, "a CSV file")
    path = Path(source)
    forms = [CsvForm(delimiter=delimiter) for delimiter in _DELIMITERS]
    headers = [csv_header(path, form, limits=SWEEP) for form in forms]
    header, form = max(zip(headers, forms, strict=True), key=lambda each: len(each[0]))
    twice = [name for name, times in Counter(header).items() if times > 1 and name]
    if twice:
        raise ContentError(f"{path.name} has more than one column {twice[0]!r}: give each its own name")
    rows = []
    for row in csv_rows(path, form, limits=SWEEP):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            raise ContentError(f"{path.name} has a row of {len(row)} cells below a header of {len(header)}")
        rows.append({name: cell.strip() or None for name, cell in zip(header, row, strict=True) if name})
    return sweep_of_rows("csv", path.name, rows)
