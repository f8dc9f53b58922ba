"""One run of an objective on synthetic or public rows, before anything is drawn or charged.

It shows mistakes that would make every run fail without an error: a name or a parameter that does not exist, an
exception, or a return value of another shape. It also shows a value that cannot be pickled or has no room.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dpselect.errors import ArgumentError
from dpselect.selection.rehearsal import Rehearsal, made_up, output_of, rehearsal_source, uncharged
from dpselect.selection.unresolved import missing_key
from dpselect.tuning.space import INTERVALS, Categorical, Space
from dpselect.tuning.trial import decode_value, encode_value

__all__ = ["ends", "rehearse_objective"]


def rehearse_objective(
    objective: Any,
    rehearse: Rehearsal,
    space: Space,
    *,
    payload_bytes: int,
    noise: float | None = None,
    scored: bool = True,
) -> None:
    """Try an objective on synthetic rows, with parameters at both ends of the space (see `Rehearsal`).

    Objectives that take a noise get `noise`. One that is not `scored` returns its value alone.

    Raises `ArgumentError` or `TypeError` for what would make runs fail, and what the objective raises.
    """
    trial = made_up("objective", objective, rehearse, ["params", "random", *(() if noise is None else ("noise",))])
    settings = list(ends(space))
    if rehearse is not False:
        _check_keys(objective, settings[0])
    if trial is None:
        return
    for place, params in enumerate(settings):
        with uncharged(f"a rehearsal with {params}"):
            told = () if noise is None else (noise,)
            found = trial(dict(params), rehearsal_source().spawn(place), *told)
            _check_value(output_of(found)[1] if scored else found, payload_bytes)


def _check_keys(objective: Any, params: dict[str, Any]) -> None:
    key = missing_key(objective, params)
    if key is not None:
        raise ArgumentError(
            f"objective takes the parameter {key!r}, which the space does not have (it has "
            f"{', '.join(map(repr, params)) or 'none'}), so that every run would fail silently at the full price; "
            "nothing was drawn or charged. Name it in the space, or pass rehearse=False if this is wrong"
        )


def _check_value(value: Any, payload_bytes: int) -> None:
    try:
        payload = encode_value(value)
        decode_value(payload)
    except Exception as error:
        raise ArgumentError(
            f"the value of a run must survive pickling, and {type(value).__name__} does not ({type(error).__name__})"
        ) from None
    if len(payload) > payload_bytes:
        raise ArgumentError(f"payload_bytes must be at least {len(payload)}, the size of a value; got {payload_bytes}")


def ends(space: Space) -> Iterator[dict[str, Any]]:
    """The setting with every parameter at its lower end or first choice, and the one at the others."""
    drawn = space.sample(rehearsal_source())
    for first in (True, False):
        yield {name: _end(each, drawn[name], first) for name, each in space.parameters.items()}


def _end(distribution: Any, drawn: Any, first: bool) -> Any:
    if isinstance(distribution, Categorical):
        return distribution.choices[0 if first else -1]
    if isinstance(distribution, INTERVALS):
        return distribution.low if first else distribution.high
    return drawn
