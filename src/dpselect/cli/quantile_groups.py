"""`dpselect quantile --by`: the quantiles of each group, in one table and for one charge."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from dpselect.cli.cells import UNCOUNTED, described_cells
from dpselect.errors import ArgumentError
from dpselect.ordered import Column, GroupedQuantiles
from dpselect.ordered.order_statistics.cell_counts import CellCounts
from dpselect.privacy import Guarantee, compose
from dpselect.privacy.release import Receipt

__all__ = ["GroupAnswers", "answer_groups", "check_group_flags", "group_table"]


@dataclass(frozen=True)
class GroupAnswers:
    """The answers of all groups, JSON-able but for their values, and what they cost."""

    groups: list[dict[str, Any]]
    qs: tuple[float, ...]
    method: str
    guarantee: Guarantee
    receipt: Receipt | None
    possible: tuple[bool, ...]

    @property
    def withheld(self) -> list[Any]:
        """The names of the groups without an answer."""
        return [group["group"] for group in self.groups if group["withheld"]]


def check_group_flags(by: str | None, groups: list[str] | None, others: dict[str, Any]) -> None:
    """Refuse flags that do not go together. `others` are the flags that --by does not take."""
    if (by is None) != (not groups):
        raise ArgumentError("--by and --group: give both or neither, and --group once for each group")
    given = [flag for flag, value in others.items() if value is not None]
    if by is not None and given:
        raise ArgumentError(f"{given[0]}: not with --by. Give --lower and --upper, and plot each group by itself")


def answer_groups(
    asked: GroupedQuantiles,
    column: Column,
    counts: CellCounts | None,
    most_unreadable: float,
    pay: Callable[[Guarantee], AbstractContextManager[Receipt | None]],
) -> GroupAnswers:
    """Pay once, and draw the counts and the quantiles of each group, but those of one that cannot be read.

    All counts together cost what those of one column do. Source: docs/theory/groups.md, Theorem 3.
    """
    found, (columns,) = asked.bind(column)
    total = found.guarantee if counts is None else compose(counts.guarantee, found.guarantee)
    failure, groups = 0.05 / len(columns), []
    with pay(total) as receipt:
        for name, part in zip(found.names, columns, strict=True):
            cells = None if counts is None else counts.draw(part)
            lost = counts is not None and cells is not None and counts.mostly_lost(cells, most_unreadable)
            shown = None if counts is None or cells is None else described_cells(counts, cells)
            rows: list[dict[str, Any]] = []
            if not lost:
                release: Any = found.drawn(part)
                drawn = zip(release.qs, release.value, release.rank_errors(failure), strict=True)
                rows = [{"q": q, "value": value, "rank_error_95": error} for q, value, error in drawn]
            groups.append({"group": name, "quantiles": rows, "withheld": lost, "cells": shown})
    asked_for = tuple(map(float, found.quantiles.qs))
    return GroupAnswers(groups, asked_for, found.quantiles.chosen, total, receipt, column.possible)


def group_table(by: str, answers: GroupAnswers) -> list[str]:
    """One line for each group, and what the columns are."""
    cells = [group["cells"] for group in answers.groups]
    counted = cells[0] is not None
    kinds = ["inside", "below", "above", "missing", "unreadable"] if counted else []
    kinds = [kind for kind, can in zip(kinds, answers.possible, strict=False) if can]
    head = [by, *(f"q {q:g} (rank error)" for q in answers.qs), *kinds]
    table = [head]
    for group in answers.groups:
        found = [f"{row['value']} ({row['rank_error_95']:.0f})" for row in group["quantiles"]]
        counts = [str(group["cells"][kind]) for kind in kinds]
        table.append([str(group["group"]), *(found or ["withheld"] * len(answers.qs)), *counts])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in table]
    lines.append("rank errors: each rank is off by at most so many rows of its group, all 95 % sure")
    if counted:
        lines.append(f"cells: each count is off by at most {cells[0]['margin_95']}, 95 % sure")
    else:
        lines.append(f'"95 % sure" holds {UNCOUNTED}: --no-count has not counted the cells')
    return lines
