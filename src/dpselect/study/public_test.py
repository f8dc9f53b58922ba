"""The accuracy of a released model on rows that are public: free, because it is made from the release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.study.cells import positions
from dpselect.study.data import Table, load
from dpselect.study.model_file import load_model
from dpselect.study.schema import Column, Study

__all__ = ["PublicTest", "public_test"]


@dataclass(frozen=True, repr=False)
class PublicTest:
    """Public rows as they stand in their source, and the place of each label among the classes, -1 for another one."""

    source: str
    columns: Mapping[str, Any]
    labels: NDArray[np.int64]

    def of(self, model: Path) -> dict[str, Any]:
        """What release.json says of the model in this file, which is loaded as by anybody."""
        loaded = load_model(model)
        right = positions(loaded.predict(self.columns), loaded.classes) == self.labels
        return {"source": self.source, "rows": len(self.labels), "accuracy": float(np.mean(right))}


def public_test(study: Study, table: Table | None, facts: Mapping[str, Column]) -> PublicTest | None:
    """Read the study's public test rows, if it has some. Raises `ContentError` for rows that no model could read."""
    if study.test is None or table is None:
        return None
    rows = load(study.data, table, facts)
    columns = table.read()
    return PublicTest(study.test.source, {name: columns[name] for name in facts}, rows.labels)
