"""Step 3 of a study, the first to read rows: the private ones, those that validate where public, those that test."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpselect.errors import StudyError
from dpselect.privacy import Adjacency
from dpselect.study.data import Rows, cells_of, load, of_numbers
from dpselect.study.in_database.reasons import reason_to_read, rows_note
from dpselect.study.price import Priced
from dpselect.study.render import PublicTest
from dpselect.tables.table import source_name

if TYPE_CHECKING:
    from dpselect.study.in_database.rows import SummedRows

__all__ = ["Opened", "open_rows"]

# what is logged is public: never a count of rows or trials, a score, a key, or the path of one
_LOG = logging.getLogger("dpselect.study")


@dataclass(frozen=True, repr=False)
class Opened:
    """The rows of a priced study. `validation` and `test` are public rows, None where the study names none."""

    priced: Priced
    rows: Rows | SummedRows
    validation: Rows | None
    test: PublicTest | None


def open_rows(priced: Priced) -> Opened:
    """Read and encode all rows that the study names. Raises `ContentError` for rows that no model could read."""
    settled, purchase = priced.settled, priced.price.purchase
    data, privacy, facts = settled.study.data, settled.study.privacy, settled.columns
    _LOG.info("reading the rows of study %r", settled.study.name)
    rows = _private_rows(priced)
    if privacy.nominal_rows is None and privacy.delta >= 1.0 / len(rows):
        raise StudyError("privacy.delta must be below one over the number of rows, which is public under replace_one")
    public = None if settled.public_table is None else load(data, settled.public_table, facts)
    test = None
    if settled.study.test is not None and settled.test_table is not None:
        labels = load(data, settled.test_table, facts).labels
        cells = cells_of(settled.test_table, list(facts), of_numbers(facts))
        test = PublicTest(source_name(settled.study.test.source, data.table), cells, labels, data.target)
    # the number of rows is a declared figure, or public by the adjacency; nothing was drawn or charged
    known = len(rows) if privacy.adjacency is Adjacency.REPLACE_ONE else privacy.nominal_rows
    said = None if purchase is None else purchase.too_few_rows_warning(known)
    if said is not None:
        _LOG.warning("warning: %s", said)
    return Opened(priced, rows, public, test)


def _private_rows(priced: Priced) -> Rows | SummedRows:
    settled, counted = priced.settled, priced.price.cells is not None
    study = settled.study
    if (note := rows_note(priced)) is not None:
        _LOG.info("study %r: %s", study.name, note)
    if reason_to_read(priced) is None:
        from dpselect.study.in_database.rows import sum_rows  # which other studies need not load

        return sum_rows(priced, counted=counted)
    most = study.privacy.rows_per_person
    return load(study.data, settled.table, settled.columns, counted=counted, most=most, salt=study.name)
