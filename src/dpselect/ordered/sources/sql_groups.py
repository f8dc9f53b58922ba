"""The rows of a table split by another column of it: each part is the same table with a condition.

One statement reads the different cells of the groups' column, and `Categories` says which of them name a group. A part
has the rows whose cell is one of these, compared byte by byte. So a row's part depends on its own cell alone. The cells
travel as one parameter, because their number depends on the rows and an engine limits the number of parameters.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dpselect.errors import ArgumentError
from dpselect.ordered.domains import Categories
from dpselect.ordered.sources.sql_counts import Query, ask, quoted
from dpselect.tables.kinds.each_cell import text_of

__all__ = ["SqlGroups", "among", "as_parameter", "travels"]

_AMONG: Final = {
    "sqlite": "({cell}) IN (SELECT value FROM json_each({given}))",
    "postgresql": "({cell}) = ANY(CAST({given} AS TEXT[]))",
    "duckdb": "list_contains(CAST({given} AS BLOB[]), {cell})",
}
"""A condition that the cell is one of the given ones."""


def among(engine: str, cell: str, given: str) -> str:
    """A condition that a cell is one of those that the parameter `given` holds (`as_parameter`)."""
    return _AMONG[engine].format(cell=cell, given=given)


def as_parameter(engine: str, cells: list[Any]) -> Any:
    """Cells as one parameter, since their number may depend on the rows, and an engine limits that of parameters."""
    if engine == "sqlite":
        return json.dumps(cells)
    return [str(each) for each in cells] if engine == "postgresql" else cells


def travels(engine: str, cell: Any) -> bool:
    """Whether a cell can be such a parameter: no null, and in SQLite no blob, fraction or text with a zero."""
    if engine == "duckdb":
        return isinstance(cell, bytes)
    return isinstance(cell, int) or (isinstance(cell, str) and "\0" not in cell)


@dataclass(frozen=True, repr=False)
class SqlGroups:
    """The column of the groups. `cell` is an SQL expression for its text, byte by byte, or for its integer.

    Raises `ArgumentError` if the column has no such expression.
    """

    engine: str
    query: Query
    table: str
    column: str
    cell: str | None
    _known: dict[Categories, list[Any]] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if self.cell is None:
            raise ArgumentError(f"by: column {self.column!r} holds neither text nor integers, so it names no groups")

    def part(self, named: Categories, group: int) -> tuple[str, Query]:
        """The rows of a group, for the FROM of a statement, and a query that takes such statements."""
        rows = self._rows("'the group'")

        def query(statement: str, parameters: Sequence[Any]) -> Sequence[Sequence[Any]]:
            # no quoted name holds the text of the rows, as its quotes would be doubled
            asked = statement.replace(rows, self._rows(f":p{len(parameters)}"))
            return self.query(asked, [*parameters, self._cells(named)[group]])

        return rows, query

    def _rows(self, given: str) -> str:
        condition = among(self.engine, self._expression(), given)
        return f"(SELECT * FROM {quoted(self.table)} WHERE {condition}) AS part"

    def _expression(self) -> str:
        return str(self.cell).replace("{0}", quoted(self.column))

    def _cells(self, named: Categories) -> list[Any]:
        """For each group the cells that name it, as one parameter. Read once, with the first statement."""
        if named not in self._known:
            cell = self._expression()
            kind = f", typeof({quoted(self.column)})" if self.engine == "sqlite" else ""
            found = ask(self.query, f"SELECT DISTINCT {cell}{kind} FROM {quoted(self.table)}", ())
            cells = [row[0] for row in found if travels(self.engine, row[0])]
            places = named.places([text_of(each) for each in cells]).tolist()
            parts = [[each for each, place in zip(cells, places, strict=True) if place == g] for g in range(named.size)]
            self._known[named] = [as_parameter(self.engine, part) for part in parts]
        return self._known[named]
