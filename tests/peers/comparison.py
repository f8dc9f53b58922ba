"""Comparisons with a peer: each is counted, and the test fails at the end with all that differ."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
NAME = "peer comparisons"
"""Of the property of a report that holds (project, live, count)."""
_SHOWN = 12


class Comparison:
    """Counts comparisons with one peer. All that differ are shown when the block ends."""

    def __init__(self, project: str, live: bool, properties: list[tuple[str, Any]]) -> None:
        self._project, self._live, self._properties = project, live, properties
        self._differences: list[str] = []
        self._count = 0

    def __enter__(self) -> Comparison:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._properties.append((NAME, [self._project, self._live, self._count]))
        if kind is None:
            shown = "\n".join(self._differences[:_SHOWN])
            assert not self._differences, f"{len(self._differences)} of {self._count} differ\n{shown}"
            assert self._count, "nothing was compared"

    def holds(self, truth: bool, *case: object) -> None:
        """Count a statement that must be true."""
        self._count += 1
        if not truth:
            self._differences.append(str(case))

    def close(self, ours: float, theirs: float, *case: object, relative: float = 0.0, absolute: float = 0.0) -> None:
        """Ours is theirs up to a tolerance. Infinite values must be equal."""
        near = ours == theirs or math.isclose(ours, theirs, rel_tol=relative, abs_tol=absolute)
        self.holds(near, ours, theirs, *case)

    def between(self, low: float, ours: float, high: float, *case: object) -> None:
        """Ours is in this closed interval."""
        self.holds(low <= ours <= high, low, ours, high, *case)

    def refuses(self, error: type[Exception], call: Callable[[], object], *case: object) -> None:
        """The call raises this error."""
        try:
            found = call()
        except error:
            self.holds(True)
        else:
            self.holds(False, f"no {error.__name__} but", found, *case)


def table(name: str) -> list[dict[str, float]]:
    """The rows of a CSV file of numbers in this folder."""
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return [{key: float(cell) for key, cell in row.items()} for row in csv.DictReader(file)]


def facts(name: str) -> dict[str, list[dict[str, Any]]]:
    """The tables of a JSON file in this folder: a row is a dictionary by column, infinite numbers are floats."""
    document = json.loads((FOLDER / name).read_text(encoding="utf-8"), parse_constant=float)
    return {key: [dict(zip(one["columns"], row, strict=True)) for row in one["rows"]] for key, one in document.items()}
