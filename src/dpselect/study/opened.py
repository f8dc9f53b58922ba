"""Step 3 of a study, the first to read rows: the private ones, those that validate where public, those that test."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dpselect.errors import StudyError
from dpselect.privacy import Adjacency
from dpselect.study.constant import Constant
from dpselect.study.data import Rows, load
from dpselect.study.metrics import metrics_for
from dpselect.study.model_file import load_model
from dpselect.study.priced import Priced
from dpselect.study.settled import Settled
from dpselect.study.sources import source_name
from dpselect.study.target import Target
from dpselect.study.task import DEFAULT_METRICS

__all__ = ["Opened", "PublicTest", "open_rows"]

# what is logged is public: never a count of rows or trials, a score, a key, or the path of one
_LOG = logging.getLogger("dpselect.study")


@dataclass(frozen=True, repr=False)
class PublicTest:
    """Public rows as they stand in their source, and their labels as `Target.read` gives them."""

    source: str
    columns: Mapping[str, Any]
    labels: NDArray[Any]
    target: Target

    def of(self, model: Path) -> dict[str, Any]:
        """What release.json says of the model in this file, which is loaded as by anybody: free, as both are public.

        All metrics that the label admits, and by itself the accuracy or the absolute error. `constant` is what one
        answer for all rows reaches, the commonest class of these rows or the mean of their labels.
        """
        loaded = load_model(model)
        found = self._metrics(loaded.estimator, loaded.encode(self.columns))
        constant = Constant.best(self.target, self.labels)
        usual = DEFAULT_METRICS[self.target.task]
        return {
            "source": self.source,
            "rows": len(self.labels),
            usual.replace("-", "_"): found[usual],
            "metrics": found,
            "constant": {"answer": constant.answer, "metrics": self._metrics(constant, self.labels)},
        }

    def _metrics(self, model: Any, features: Any) -> dict[str, float]:
        """The value of each metric that the label admits."""
        return {
            name: metric.estimate(metric.cells(model, features, self.labels), noise=None, failure=0.05).value
            for name, metric in metrics_for(self.target).items()
        }


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
    opened = Opened(priced, rows, public, _public_test(settled))
    _warn_of_bounds(opened)
    return opened


def _warn_of_bounds(opened: Opened) -> None:
    """Said before anything is drawn or charged. The number of rows is a declared figure, or public by the adjacency."""
    privacy, purchase = opened.priced.settled.study.privacy, opened.priced.price.purchase
    rows = len(opened.rows.labels) if privacy.adjacency is Adjacency.REPLACE_ONE else privacy.nominal_rows
    said = None if purchase is None else purchase.too_few(rows)
    if said is not None:
        _LOG.warning("warning: %s", said)


def _public_test(settled: Settled) -> PublicTest | None:
    study, table = settled.study, settled.test_table
    if study.test is None or table is None:
        return None
    rows = load(study.data, table, settled.columns)
    cells = table.read(list(settled.columns))
    return PublicTest(source_name(study.test.source, study.data.table), cells, rows.labels, study.data.target)
