"""Accountants, their states and privacy engines of Opacus: the recorded steps are accounted again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from dpselect.errors import ArgumentError
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.foreign_kinds import ON_THE_CALLERS_WORD, foreign_reader, own_adjacency
from dpselect.privacy.guarantee import Guarantee

__all__ = ["read_history", "read_opacus", "read_state"]


@runtime_checkable
class _StepAccountant(Protocol):
    @property
    def history(self) -> Sequence[tuple[float, float, int]]: ...


@runtime_checkable
class _TrainingEngine(Protocol):
    @property
    def accountant(self) -> _StepAccountant: ...


def read_history(history: Any, adjacency: Adjacency | None) -> Guarantee:
    """The guarantee of recorded steps: (noise multiplier, sampling rate, steps) for each phase.

    Raises `AdjacencyError` for replace-one, and `ArgumentError` for a history that is empty or of another form.
    """
    own_adjacency("a training with Opacus", Adjacency.ADD_OR_REMOVE_ONE, adjacency)
    state = import_module("dpselect.integrations.opacus.state")
    try:
        phases = [(noise, rate, steps) for noise, rate, steps in history]
    except (TypeError, ValueError):
        raise ArgumentError("history must be a list of (noise multiplier, sampling rate, steps)") from None
    found: Guarantee = state.history_guarantee(phases)
    return replace(found, terms={**found.terms, "rests": f"{ON_THE_CALLERS_WORD}: {state.CALLER_ENSURES}"})


def read_state(state: Mapping[Any, Any], adjacency: Adjacency | None) -> Guarantee | None:
    """The guarantee of an accountant's `state_dict()`, or of a checkpoint that holds one. None for other mappings."""
    inner = state.get("privacy_accountant_state_dict", state)
    return read_history(inner["history"], adjacency) if isinstance(inner, Mapping) and "history" in inner else None


@foreign_reader("opacus", takes="an accountant of Opacus, its state_dict() or a PrivacyEngine after training")
def read_opacus(thing: Any, adjacency: Adjacency | None) -> Guarantee | None:
    """Read the history of an accountant, or of an engine's accountant."""
    if isinstance(thing, _TrainingEngine):
        thing = thing.accountant
    if isinstance(thing, _StepAccountant):
        return read_history(thing.history, adjacency)
    raise ArgumentError(
        f"an Opacus {type(thing).__name__} does not say how many steps it takes: use "
        "dpselect.integrations.opacus.engine_guarantee, or pass the accountant after training"
    )
