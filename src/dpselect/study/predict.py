"""Predictions of a released model for the rows of a table: `dpselect predict`."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpselect.errors import ArgumentError, ContentError
from dpselect.study.data import cells_of, of_numbers, plain_numbers, refuse_other_separators
from dpselect.study.model_file import load_model
from dpselect.study.user_module import importable
from dpselect.tables import Written
from dpselect.tables.header import absent
from dpselect.tables.table import open_table

__all__ = ["predict_table"]


def predict_table(
    model: Path,
    source: str,
    *,
    form: Written,
    keep: Sequence[str] = (),
    probabilities: bool = False,
    module: str | None = None,
) -> str:
    """A table in CSV with a row for each of the source's, in their order.

    Its columns are those of the source that `keep` names, `prediction`, and with `probabilities` one for each class,
    `probability_CLASS`. `source` is a file, relative to the working directory, or a URL, as in a study. `module` names
    the function that made a network, in the working directory or on Python's search path.

    Raises `StudyError` for a model or a table that cannot be read. Raises `ContentError` for a column that is missing
    or cannot be read, or whose numbers are written with other separators. Neither shows a cell.
    """
    with importable(Path.cwd()):
        loaded = load_model(model, module=module)
    if probabilities and loaded.label_bounds is not None:
        raise ArgumentError("--probabilities: this model predicts a number, and has no classes")
    table = open_table(source, key="DATA", form=form)
    missing = [name for name in (*loaded.columns, *keep) if name not in table.columns]
    if missing:
        raise ContentError(f"DATA: {absent(missing, table.columns)}")
    table.check([*loaded.columns, *keep], "DATA")
    plain = plain_numbers(loaded.columns)
    columns = cells_of(table, list(loaded.columns), of_numbers(loaded.columns), doubles=plain)
    numbers = {name: loaded.columns[name].declared.read(columns[name]) for name in plain}
    refuse_other_separators(table, numbers, form.decimal, form.thousands, "form.")
    kept = table.read(keep) if keep else {}
    header = [*keep, "prediction"]
    results: list[Any] = [*(kept[name] for name in keep), loaded.predict(columns)]
    if probabilities:
        header += [f"probability_{label}" for label in loaded.classes]
        results += list(loaded.predict_proba(columns).T)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(zip(*results, strict=True))
    return text.getvalue()
