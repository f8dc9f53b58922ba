"""People with several rows: the rows of a search that take part, and the part that each person's rows share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.utils import _safe_indexing

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn.rows import Labels
from dpselect.integrations.sklearn.split import Part, contents, parts_by, rows_to_parts
from dpselect.integrations.sklearn.synthetic_rows import one_a_row
from dpselect.learners.rows import labels_of
from dpselect.tables.person_rows import rows_of_persons
from dpselect.tables.row_digests import Digests

__all__ = ["GroupedRows", "expect_groups", "grouped_rows"]


@dataclass(frozen=True, repr=False)
class GroupedRows:
    """The rows that take part, with all that goes with each. `persons` is None if each row is a person's only one."""

    X: Any
    y: Any
    labels: Labels
    beside: dict[str, Any]
    persons: Digests | None = None

    @property
    def joined(self) -> bytes:
        """The digests of the persons, one after another."""
        return b"" if self.persons is None else self.persons.joined


def expect_groups(groups: Any, rows_per_group: int | None) -> None:
    """Raise `ArgumentError` unless both are given, or neither is."""
    if groups is not None and rows_per_group is None:
        raise ArgumentError(
            "fit has groups=, the person of each row, so PrivateSearchCV needs rows_per_group=, the most rows of a "
            "person that take part, public: add rows_per_group=1, or 2, say. The guarantee is then for persons"
        )
    if groups is None and rows_per_group is not None:
        raise ArgumentError(
            f"rows_per_group={rows_per_group!r} is for persons, so fit must know the person of each row: add groups= "
            "to fit, one value for each row of X"
        )


def grouped_rows(rows: GroupedRows, groups: Any, *, most: int | None, salt: str) -> GroupedRows:
    """Keep at most `most` rows of each group, chosen by a hash of the group's own rows. None: all rows.

    Raises `ArgumentError` if `groups` does not hold one value a row. No value makes it fail.
    """
    if groups is None or most is None:
        return rows
    count = len(rows.labels.scored)
    try:
        persons = labels_of(groups, count).tolist()
    except (ArgumentError, TypeError, ValueError):
        raise ArgumentError("groups must hold one value for each row of X") from None
    chosen = rows_of_persons(persons, contents(rows.X, rows.labels.places), most=most, salt=salt)
    places = chosen.places
    beside = {
        name: _safe_indexing(value, places) if one_a_row(value, count) else value for name, value in rows.beside.items()
    }
    X, y = _safe_indexing(rows.X, places), _safe_indexing(rows.y, places)
    return GroupedRows(X, y, rows.labels.at(places), beside, chosen.persons)


def parts_of(rows: GroupedRows, **split: Any) -> list[Part]:
    """The rows that train and those that score: by person, or by the content of each row. `split` as in `parts_by`."""
    if rows.persons is not None:
        return parts_by(rows.persons, **split)
    # what goes with a row may tell it apart
    return rows_to_parts(rows.X, rows.labels.places, y=None if rows.beside else rows.y, **split)
