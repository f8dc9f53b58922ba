"""A sweep as a tool recorded it, and the registry of the readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dpselect.errors import ArgumentError, ContentError
from dpselect.registry import Registry

__all__ = [
    "SWEEP_FORMATS",
    "RecordedRun",
    "RecordedSweep",
    "SweepReader",
    "chosen_part",
    "flat_values",
    "others_remark",
    "refuse_part",
    "sweep_format",
]

Scalar = str | int | float | bool | None
SweepReader = Callable[[str, str | None], "RecordedSweep"]
"""A function of the source and of the part that is meant (a study, an experiment), if it is named."""

_LONGEST: Final = 200
"""Characters of a value. A longer text is no setting of a mechanism."""


@dataclass(frozen=True)
class RecordedRun:
    """One run of a sweep.

    Args:
        name: what the tool calls it.
        values: the settings of the run by the name of their column.
        status: "finished", "failed", "pruned", "running", "waiting" or "unknown". Each of them counts.
        times: how often the run began. A retry begins it again.
        rewritten: the columns that had more than one value in this run.
        groups: whether other runs name it as their parent. Without noise it is taken to have trained nothing.
    """

    name: str
    values: Mapping[str, Scalar]
    status: str = "unknown"
    times: int = 1
    rewritten: frozenset[str] = frozenset()
    groups: bool = False


@dataclass(frozen=True)
class RecordedSweep:
    """All runs of one sweep.

    Args:
        tool: the name of its format.
        name: what the tool calls the sweep, or its file.
        runs: the runs. One that never began is not among them.
        rests_on: what the record does not show and the price needs, a line each.
        independent: how the record shows that no setting depended on an earlier result. None if it does not.
    """

    tool: str
    name: str
    runs: tuple[RecordedRun, ...]
    rests_on: tuple[str, ...] = ()
    independent: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of all runs, in the order of their appearance."""
        return tuple(dict.fromkeys(name for run in self.runs for name in run.values))


SWEEP_FORMATS: Final = Registry[SweepReader]("sweep format", room="dpselect.integrations.sweeps.formats")


def sweep_format(name: str, *, matches: Callable[[str], bool]) -> Callable[[SweepReader], SweepReader]:
    """Return a decorator that registers a reader of sweeps.

    Args:
        name: the name of the format, as `--sweep-format` takes it.
        matches: a function that says whether a source looks like one. It raises nothing for a source that it can read.

    Returns:
        The decorator. It raises `ArgumentError` if another reader has this name.
    """
    return SWEEP_FORMATS.register(name, matches=matches)


def flat_values(value: Mapping[str, Any]) -> Iterator[tuple[str, Scalar]]:
    """The scalars of nested maps, each with the path to it. Lists and long texts are left out.

    A map of `value` and its description is its value, as Weights & Biases writes it.

    >>> dict(flat_values({"dp": {"noise": 1.0}, "steps": {"value": 10, "desc": None}, "layers": [1, 2]}))
    {'dp.noise': 1.0, 'steps': 10}
    """
    for name, inner in value.items():
        if isinstance(inner, Mapping) and "value" in inner and set(inner) <= {"value", "desc"}:
            inner = inner["value"]
        if isinstance(inner, Mapping):
            yield from ((f"{name}.{path}", found) for path, found in flat_values(inner))
        elif (
            inner is None
            or isinstance(inner, bool | int | float)
            or (isinstance(inner, str) and len(inner) <= _LONGEST)
        ):
            yield str(name), inner


def chosen_part(parts: Mapping[str, str], name: str | None) -> str:
    """The key of the part that is meant, among the names of all parts. Raises `ArgumentError`.

    >>> chosen_part({"1": "digits"}, None)
    '1'
    """
    meant = [key for key, known in parts.items() if name in (None, known)]
    if len(meant) == 1:
        return meant[0]
    listed = ", ".join(map(repr, parts.values())) or "none"
    if not parts:
        raise ContentError("the source holds no run")
    if name is None:
        raise ArgumentError(f"study_name: the source holds {len(parts)} sweeps. Give one of {listed}")
    raise ArgumentError(f"study_name: no sweep {name!r} in this source, which holds {listed}")


def others_remark(count: int, what: str) -> tuple[str, ...]:
    """The condition for parts of the source that are not priced. Nothing if there are none.

    >>> others_remark(0, "experiments")
    ()
    """
    if not count:
        return ()
    return (f"must hold: {count} other {what} in this source saw other data, or are priced on top",)


def refuse_part(part: str | None, what: str) -> None:
    """Raise `ArgumentError` if a part is named of a source that has none.

    >>> refuse_part(None, "a CSV file")
    """
    if part is not None:
        raise ArgumentError(f"study_name: {what} holds one sweep: leave study_name out")
