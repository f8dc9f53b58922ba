"""Guarantees from dp-accounting's DpEvents."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from dpselect.errors import ArgumentError, integer
from dpselect.privacy.adjacency import Adjacency, parse_adjacency
from dpselect.privacy.composition import compose_counted
from dpselect.privacy.event_kinds import KINDS
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.mechanisms.fixed_batches import fixed_batches
from dpselect.privacy.mechanisms.poisson_samples import dp_sgd
from dpselect.privacy.mechanisms.pure import pure_dp

if TYPE_CHECKING:
    from dp_accounting import dp_event

__all__ = ["from_dp_event"]

_LATER: Final = {"RepeatAndSelectDpEvent": "dpselect.accounting.best_of_k.repeated_event"}
"""Kinds of event that a module of a later package registers, by the event's class."""

_TRAININGS: Final[dict[str, Callable[..., Guarantee]]] = {"dp-sgd": dp_sgd, "fixed-batches": fixed_batches}
"""Mechanisms of several steps, which are one guarantee."""

_PACKAGE: Final = "dp_accounting"
_MOST_RUNS: Final = 1 << 60


def from_dp_event(event: dp_event.DpEvent, *, adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE) -> Guarantee:
    """Return a guarantee from a DpEvent of dp-accounting, with every statement that its mechanism has.

    dpselect computes the cost of most kinds itself. The loss distributions of dp-accounting serve for truncated
    Poisson samples. A repeat-and-select is accounted by `best_of`. Noise multipliers are
    relative to the norm of one row, as dp-accounting documents. Under replace-one, where a row is taken out and
    another one put in, the noise is half as large relative to that.

    Args:
        event: the event, public.
        adjacency: the neighbours, an `Adjacency` or its text; add-or-remove-one unless given.

    Returns:
        A guarantee with that adjacency.

    Raises:
        ArgumentError: if the kind of event is unknown or has no guarantee under this adjacency, the event has no noise,
            or a number in it is out of range.
        AdjacencyError: if `adjacency` is unknown.
        TypeError: if `event` is not a DpEvent.

    >>> from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
    >>> round(from_dp_event(SelfComposedDpEvent(GaussianDpEvent(8.0), 4)).epsilon(delta=1e-6), 4)
    1.0607
    """
    if not is_dp_event(event):
        raise TypeError(f"event must be a dp_accounting.DpEvent, got {type(event).__name__}")
    event = _frozen(event)
    return replace(_read(event, parse_adjacency(adjacency)), terms={"mechanism": "dp-event", "event": repr(event)})


def _frozen(event: Any) -> Any:
    """A copy of an event, which no one can change later. Raises `ArgumentError` for one that cannot be read twice."""
    with suppress(Exception):
        return deepcopy(event)
    raise ArgumentError("event cannot be copied: it must be made of numbers, lists and other events")


def is_dp_event(thing: Any) -> bool:
    """Whether an object is an event of dp-accounting."""
    return any(cls.__name__ == "DpEvent" and _defined_there(cls) for cls in type(thing).__mro__)


def _defined_there(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == _PACKAGE


def _read(event: Any, adjacency: Adjacency) -> Guarantee:
    """The guarantee of an event: its mechanisms, each with how often it runs, composed."""
    parts = [_part(each, count, adjacency) for each, count in _mechanisms(event)]
    return compose_counted(parts) if parts else pure_dp(epsilon=0, adjacency=adjacency)


def _part(event: Any, count: int, adjacency: Adjacency) -> tuple[Guarantee, int]:
    """The guarantee of one mechanism and how often it runs. The steps of DP-SGD are one guarantee."""
    kind = _kind(event)
    if kind not in KINDS and kind in _LATER:
        import_module(_LATER[kind])
    if kind not in KINDS:
        raise ArgumentError(f"event: cannot account {kind}. The known kinds are {', '.join(sorted([*KINDS, *_LATER]))}")
    one = KINDS[kind](event, adjacency, _read)
    make = _TRAININGS.get(one.terms.get("mechanism", ""))
    if count == 1 or make is None:
        return one, count
    settings = {name: value for name, value in one.terms.items() if name not in ("mechanism", "steps")}
    return make(**settings, steps=count * one.terms["steps"], adjacency=adjacency), 1


def _kind(event: Any) -> str:
    """The name of the class, in dp-accounting, that an event is of."""
    return next(cls.__name__ for cls in type(event).__mro__ if _defined_there(cls))


def _mechanisms(event: Any, count: int = 1) -> list[tuple[Any, int]]:
    """The mechanisms that an event composes, each with how often it runs. A sampled mechanism counts as one.

    Equal ones in a row are one. Their counts are checked, as a negative one would give budget back.
    """
    if not is_dp_event(event):
        raise ArgumentError(f"event holds something that is not a DpEvent: {type(event).__name__}")
    if _kind(event) == "SelfComposedDpEvent":
        return _mechanisms(event.event, count * integer("count", event.count, at_least=1, at_most=_MOST_RUNS))
    if _kind(event) != "ComposedDpEvent":
        return [(event, count)]
    if not isinstance(event.events, (list, tuple)):
        raise ArgumentError("event: the events of a ComposedDpEvent must be a list, which can be read twice")
    found: list[tuple[Any, int]] = []
    for part in event.events:
        for each, times in _mechanisms(part, count):
            if found and type(found[-1][0]) is type(each) and found[-1][0] == each:
                found[-1] = each, found[-1][1] + times
            else:
                found.append((each, times))
    return found
