"""Check the function that runs call, before anything is drawn or charged.

Afterwards nobody could report it, because a failed run is part of the private output. A function that always fails
would cost the full price and find nothing, without an error. Two checks run here, neither with the data. Its code is
searched for names that are defined nowhere. It is also tried on synthetic or public rows if there are such.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Final, Protocol, runtime_checkable

from dpselect.cures import write_text
from dpselect.errors import ArgumentError
from dpselect.randomness import RandomSource, keyed_source
from dpselect.selection.unresolved import missing_name

__all__ = ["Rehearsal", "check_function", "made_up", "output_of", "rehearse_candidate", "uncharged"]

Rehearsal = bool | Callable[..., Any]
"""`rehearse=`: True; False, which looks at nothing; or the same function bound to made-up or public rows.

True searches the function's code for names that are defined nowhere, and runs what its method `rehearsal()` returns
if it has one: the same function on synthetic rows. Given a function, that is searched and run instead of the method.
The function itself, which holds the data, is never run for this: what it raised or how long it took would be a leak.
"""

_OFF: Final = "or pass rehearse=False if this is wrong"


@runtime_checkable
class _Rehearsable(Protocol):
    def rehearsal(self) -> Callable[..., Any] | None: ...


def check_function(name: str, function: object, arguments: Sequence[str]) -> None:
    """Raise for what cannot be called with these arguments, or asks for a name that is defined nowhere.

    `TypeError` for what is not callable, `ArgumentError` for the rest. Nothing is run.

    >>> check_function("candidate", lambda random: (misspelt, None), ["random"])
    Traceback (most recent call last):
    dpselect.errors.ArgumentError: candidate asks for the name 'misspelt' (line 1 of ...), which is defined nowhere...
    """
    if not callable(function):
        raise TypeError(f"{name} must be callable: {name}({', '.join(arguments)}){write_text(name)}")
    _check_arguments(name, function, arguments)
    missing = missing_name(function)
    if missing is not None:
        raise ArgumentError(
            f"{name} asks for the name {missing}, which is defined nowhere, so that runs would fail silently at the "
            f"full price; nothing was drawn or charged. Define or import it, {_OFF}"
        )


def _check_arguments(name: str, function: Callable[..., Any], arguments: Sequence[str]) -> None:
    code = function.__code__ if type(function) is FunctionType else None
    if code is not None and code.co_argcount == len(arguments) and not code.co_kwonlyargcount:
        return  # told sooner than by the signature
    if getattr(function, "__signature__", None) is not None:  # no matter what set it may be wrong
        return
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):  # compiled, without a signature
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        taken = ", ".join(signature.parameters) or "no arguments"
        raise ArgumentError(
            f"{name} cannot be called as {name}({', '.join(arguments)}): it takes {taken}. Every run would fail at "
            f"the full price; nothing was drawn or charged. Write def {name}({', '.join(arguments)}), {_OFF}"
        ) from None


def made_up(name: str, function: Any, rehearse: Rehearsal, arguments: Sequence[str]) -> Callable[..., Any] | None:
    """The function to try in place of `function`, or None if there are no synthetic rows.

    Raises what `check_function` raises for both, unless `rehearse` is False. Raises `TypeError` if it is of another
    kind.
    """
    if not (isinstance(rehearse, bool) or callable(rehearse)):
        raise TypeError(f"rehearse must be True, False or a function, got {type(rehearse).__name__}")
    if rehearse is False:
        if not callable(function):
            raise TypeError(f"{name} must be callable: {name}({', '.join(arguments)}){write_text(name)}")
        return None
    check_function(name, function, arguments)
    if rehearse is not True:
        check_function("rehearse", rehearse, arguments)
        return rehearse
    if not isinstance(function, _Rehearsable):
        return None
    with uncharged(f"{name}.rehearsal()"):
        return function.rehearsal()


@contextmanager
def uncharged(what: str) -> Iterator[None]:
    """Add to each exception in this block that it was no run on the data."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in {what}, on made-up or public rows; nothing was drawn or charged")
        raise


def output_of(returned: Any) -> tuple[float, Any]:
    """The score and the value of one rehearsed run.

    Raises `ArgumentError` for what would count as a failed run.
    """
    try:
        score, value = returned
    except (TypeError, ValueError):
        raise ArgumentError(
            f"a run must return a pair, (score, value), and returned {type(returned).__name__}"
        ) from None
    try:
        if isinstance(score, (str, bytes, bytearray)):
            raise TypeError
        return float(score), value
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"the score of a run must be a number, and is {type(score).__name__}") from None


def rehearse_candidate(name: str, candidate: Any, rehearse: Rehearsal) -> None:
    """Look for mistakes that would make every run of a candidate fail. See `Rehearsal`."""
    trial = made_up(name, candidate, rehearse, ["random"])
    if trial is not None:
        with uncharged("a rehearsal"):
            output_of(trial(rehearsal_source()))


def rehearsal_source() -> RandomSource:
    """A public source: nothing that a rehearsal draws is secret."""
    return keyed_source("rehearsal")
