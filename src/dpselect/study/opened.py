"""Step 3 of a study, the first to read rows: the private ones, those that validate where public, those that test."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import StudyError
from dpselect.study.cells import positions
from dpselect.study.data import Rows, load
from dpselect.study.model_file import load_model
from dpselect.study.priced import Priced
from dpselect.study.settled import Settled
from dpselect.study.sources import without_password

__all__ = ["Opened", "PublicTest", "open_rows"]

# what is logged is public: never a count of rows or trials, a score, a key, or the path of one
_LOG = logging.getLogger("dpselect.study")


@dataclass(frozen=True, repr=False)
class PublicTest:
    """Public rows as they stand in their source, and the place of each label among the classes, -1 for another one."""

    source: str
    columns: Mapping[str, Any]
    labels: NDArray[np.int64]

    def of(self, model: Path) -> dict[str, Any]:
        """What release.json says of the model in this file, which is loaded as by anybody: free, as both are public."""
        loaded = load_model(model)
        right = positions(loaded.predict(self.columns), loaded.classes) == self.labels
        return {"source": self.source, "rows": len(self.labels), "accuracy": float(np.mean(right))}


@dataclass(frozen=True, repr=False)
class Opened:
    """The rows of a priced study. `validation` and `test` are public rows, None where the study names none."""

    priced: Priced
    rows: Rows
    validation: Rows | None
    test: PublicTest | None


def open_rows(priced: Priced) -> Opened:
    """Read and encode all rows that the study names. Raises `ContentError` for rows that no model could read."""
    settled = priced.settled
    study, facts = settled.study, settled.columns
    _LOG.info("reading the rows of study %r", study.name)
    rows = load(study.data, settled.table, facts)
    if study.privacy.nominal_rows is None and study.privacy.delta >= 1.0 / len(rows.labels):
        raise StudyError("privacy.delta must be below one over the number of rows, which is public under replace_one")
    public = None if settled.public_table is None else load(study.data, settled.public_table, facts)
    return Opened(priced, rows, public, _public_test(settled))


def _public_test(settled: Settled) -> PublicTest | None:
    study, table = settled.study, settled.test_table
    if study.test is None or table is None:
        return None
    rows = load(study.data, table, settled.columns)
    return PublicTest(without_password(study.test.source), table.read(list(settled.columns)), rows.labels)
