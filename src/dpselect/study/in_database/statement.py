"""The rows of a study as subselects: cells, features, rows of the unit ball in fixed point, and sums over them.

Each level is a fixed map of single rows. It does what `Column.features`, `Target.read` and `learners.rows.unit_rows`
do to an array, operation by operation, so that the sums are those of the array to the last bit. The guarantee does not
depend on that: the last level drops a row whose integers are not within the unit ball, and sums of integers are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dpselect.ordered.sources.sql_groups import among, as_parameter
from dpselect.study.in_database.dialect import DIALECTS, Dialect, Split
from dpselect.study.in_database.fields import CategoryField, NumberField

__all__ = ["RowStatement"]

_UNIT: Final = 2.0**16
"""Steps of the grid of a row in the unit ball."""
_SHRUNK: Final = 1.0 - 2.0**-40
"""As in `unit_rows`: for the rounding of the square root, the quotient and the product."""
_TINY: Final = 1e-200
"""Nearer to 0 a number counts as 0, which moves no feature: PostgreSQL fails for results below the least float64."""
Field = NumberField | CategoryField


@dataclass
class RowStatement:
    """Statements over the rows of one table, with the parameters that were bound so far.

    Attributes:
        engine: the engine's name.
        rows: the table's name in statements.
        fields: the features' columns in their order.
        label: the label's column.
        row_norm: rows are divided by it.
        split: which rows are held out. None if all rows train.
    """

    engine: str
    rows: str
    fields: Sequence[Field]
    label: Field
    row_norm: float
    split: Split | None
    parameters: list[Any] = field(default_factory=list)

    @property
    def _dialect(self) -> Dialect:
        return DIALECTS[self.engine]

    def bound(self, value: Any) -> str:
        """A parameter for this value."""
        self.parameters.append(value)
        return f":p{len(self.parameters) - 1}"

    def held_out(self) -> str:
        """The condition that a row is held out."""
        assert self.split is not None
        return self._dialect.held_out(_quoted(self.split.column), self.split, self.bound)

    def sums(self, of: Sequence[str]) -> str:
        """A statement that adds up these expressions of the columns z0, z1, ... and y, for each part and class."""
        groups = "h, y" if isinstance(self.label, CategoryField) else "h"
        inside = f"{_squares(len(self._features), 'z')} <= {self.bound(int(_UNIT) ** 2)}"
        known = " AND y >= 0" if isinstance(self.label, CategoryField) else ""
        listed = ", ".join(f"sum({each})" for each in of)
        return f"SELECT {groups}, count(*), {listed} FROM {self._unit_rows()} WHERE {inside}{known} GROUP BY {groups}"

    @property
    def _features(self) -> list[str]:
        return [f"f{place}" for place in range(sum(each.width for each in self.fields))]

    def _level(self, columns: Mapping[str, str], inner: str, *kept: str) -> str:
        """A subselect of these expressions over another one, with the columns that are kept."""
        listed = [*kept, *(f"{expression} AS {name}" for name, expression in columns.items())]
        return f"(SELECT {', '.join(listed)} FROM {inner}{self._dialect.fence}) AS rows_{'_'.join([*columns][:1])}"

    def _unit_rows(self) -> str:
        """z0, z1, ...: the rows as integers of steps, with the part h and the target y."""
        numbers = {place: each for place, each in enumerate(self.fields) if isinstance(each, NumberField)}
        plain = [f"c{place}" for place, each in enumerate(self.fields) if place not in numbers]
        lost = [f"x{place}" for place in numbers]
        cells = self._level(self._cells(), self.rows)
        clipped = {f"v{place}": self._clipped(f"x{place}", each) for place, each in numbers.items()}
        level = self._level({**clipped, "y": self._target()}, cells, "h", *plain, *lost)
        shares = {f"s{place}": self._share(f"v{place}", each.bounds) for place, each in numbers.items()}
        level = self._level(shares, level, "h", "y", *plain, *lost) if shares else level
        names = self._features
        level = self._level(dict(zip(names, self._encoded(), strict=True)), level, "h", "y")
        largest = self._dialect.greatest([self.bound(0.0), *(f"abs({name})" for name in names)])
        level = self._level({"l": largest}, level, "h", "y", *names)
        divisor, unit = f"CASE WHEN l > 0 THEN l ELSE {self.bound(1.0)} END", self.bound(_UNIT)
        steps = {f"r{place}": self._whole(f"{name} / {divisor} * {unit}") for place, name in enumerate(names)}
        level = self._level(steps, level, "h", "y", "l")
        level = self._level({"n": _squares(len(names), "r")}, level, "h", "y", "l", *steps)
        level = self._level({"k": self._scale()}, level, "h", "y", *steps)
        integers = {f"z{place}": self._dialect.integer.format(f"({name} * k)") for place, name in enumerate(steps)}
        return self._level(integers, level, "h", "y")

    def _cells(self) -> dict[str, str]:
        part = "0" if self.split is None else f"CASE WHEN {self.held_out()} THEN 1 ELSE 0 END"
        found = {"h": part, "y": self._cell(self.label)}
        for place, each in enumerate(self.fields):
            found[f"{'x' if isinstance(each, NumberField) else 'c'}{place}"] = self._cell(each)
        return found

    def _cell(self, each: Field) -> str:
        if isinstance(each, NumberField):
            return each.number
        ways = [
            f"WHEN {among(self.engine, each.text, self.bound(as_parameter(self.engine, cells)))} THEN {place}"
            for place, cells in sorted(each.spellings.items())
        ]
        return f"CASE WHEN {each.text} IS NULL THEN {each.empty} {' '.join(ways)} ELSE {each.unlisted} END"

    def _clipped(self, name: str, each: NumberField) -> str:
        low, high = map(self.bound, each.bounds)
        fill, least, most = (self.bound(_no_tiny(end)) for end in (each.fill, *each.bounds))
        return (
            f"CASE WHEN {name} IS NULL THEN {fill} WHEN {name} < {low} THEN {least} "
            f"WHEN {name} > {high} THEN {most} WHEN abs({name}) < {self.bound(_TINY)} THEN {self.bound(0.0)} "
            f"ELSE {name} END"
        )

    def _share(self, name: str, bounds: tuple[float, float]) -> str:
        """The position between the bounds, from 0 to 1, as `scale._share` has it."""
        low, high = map(_no_tiny, bounds)
        share = f"(({name} / {self.bound(2.0)} - {self.bound(low / 2)}) / {self.bound(high / 2 - low / 2)})"
        return self._between(share, 0.0, 1.0)

    def _between(self, number: str, low: float, high: float) -> str:
        least, most = self.bound(low), self.bound(high)
        return f"CASE WHEN {number} < {least} THEN {least} WHEN {number} > {most} THEN {most} ELSE {number} END"

    def _target(self) -> str:
        """The place of the class, or the label's steps, as `targets_of` has them."""
        if isinstance(self.label, CategoryField):
            return "y"
        low, high = self.label.bounds
        centre, half = self.bound(low / 2.0 + high / 2.0), self.bound(high / 2.0 - low / 2.0)
        place = self._between(f"(({self._clipped('y', self.label)}) - {centre}) / {half}", -1.0, 1.0)
        return self._dialect.integer.format(f"(({place}) * {self.bound(_UNIT)})")

    def _encoded(self) -> Iterator[str]:
        """The features of each column, as `Column.encode` has them."""
        for place, each in enumerate(self.fields):
            if isinstance(each, CategoryField):
                yield from (self._flag(f"c{place} = {at}") for at in range(each.width))
                continue
            lost, share = f"x{place} IS NULL", f"s{place}"
            there = f"NOT ({lost}) AND " if each.indicated else ""
            if each.bins:
                index = self._whole(f"{share} * {self.bound(float(each.bins))}")
                last = each.bins - 1
                yield from (
                    self._flag(f"{there}{index} {'>=' if at == last else '='} {self.bound(float(at))}")
                    for at in range(each.bins)
                )
            else:
                linear = f"{self.bound(2.0)} * {share} - {self.bound(1.0)}"
                yield f"CASE WHEN {lost} THEN {self.bound(0.0)} ELSE {linear} END" if each.indicated else linear
            if each.indicated:
                yield self._flag(lost)

    def _scale(self) -> str:
        """The factor of a row, as in `unit_rows`, from its largest number l and the square n of its norm."""
        norm = f"CASE WHEN n > {self.bound(_UNIT * _UNIT)} THEN {self.bound(_UNIT)} / {self._dialect.root.format('n')}"
        norm = f"{norm} ELSE {self.bound(1.0)} END"
        plain = f"l / {self.bound(self.row_norm)}"
        return f"(CASE WHEN {plain} < {norm} THEN {plain} ELSE {norm} END) * {self.bound(_SHRUNK)}"

    def _flag(self, condition: str) -> str:
        return f"CASE WHEN {condition} THEN {self.bound(1.0)} ELSE {self.bound(0.0)} END"

    def _whole(self, number: str) -> str:
        """The integer part as a float64."""
        return f"CAST({self._dialect.integer.format(f'({number})')} AS DOUBLE PRECISION)"


def _no_tiny(number: float) -> float:
    return 0.0 if abs(number) < _TINY else number


def _squares(columns: int, name: str) -> str:
    """The sum of squares, in few levels of brackets."""
    terms = [f"{name}{place} * {name}{place}" for place in range(columns)]
    while len(terms) > 1:
        terms = [f"({' + '.join(terms[start : start + 8])})" for start in range(0, len(terms), 8)]
    return terms[0]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
