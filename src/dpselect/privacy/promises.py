"""Guarantees at the boundary: one parser for every function that asks for what a mechanism promises.

Guarantees of other kinds, such as those of other libraries, become a `Guarantee` here (`privacy.foreign_kinds`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dpselect.errors import AdjacencyError, ArgumentError, PromiseError
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.foreign_kinds import foreign_guarantee, is_plain_number, taken
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.output.guarantee import OutputGuarantee, RealisedPrice

__all__ = [
    "hold_promises",
    "one_or_several",
    "output_promise",
    "output_promises",
    "promise",
    "promise_or_function",
    "promise_or_output",
    "promises",
    "refusal",
]


def promise(name: str, value: object, *, adjacency: Adjacency | str | None = None) -> Guarantee:
    """Parse a guarantee: what a mechanism promises before it runs. Other kinds are read by `as_guarantee`'s readers.

    Raises `PromiseError` (an `ArgumentError` and a `TypeError`) for anything else: the price of an output that came
    out above all, which would be answered with a part of what the mechanism costs.

    >>> from dpselect.privacy import pure_dp
    >>> promise("base", pure_dp(epsilon=1)).epsilon(delta=0)
    1.0
    """
    if isinstance(value, Guarantee):
        return value
    if isinstance(value, OutputGuarantee):
        raise PromiseError(f"{name} must be a Guarantee; an OutputGuarantee has one, its worst()")
    found = _foreign(name, value, adjacency)
    if found is None:
        raise refusal(name, value, "a Guarantee")
    return found


def _foreign(name: str, value: object, adjacency: Adjacency | str | None = None) -> Guarantee | None:
    """The guarantee of an object of another kind. Errors name the argument."""
    try:
        return foreign_guarantee(value, adjacency)
    except AdjacencyError as error:
        raise AdjacencyError(f"{name}: {error}") from None
    except (ArgumentError, TypeError) as error:
        raise ArgumentError(f"{name}: {error}") from None


def promises(name: str, values: object) -> tuple[Guarantee, ...]:
    """Parse a sequence of guarantees, each as by `promise`."""
    if not isinstance(values, Iterable):
        raise refusal(name, values, "a sequence of Guarantees")
    return tuple(promise(name, value) for value in values)


def one_or_several(name: str, values: object) -> tuple[Guarantee, ...]:
    """Parse a guarantee, or a sequence of them.

    A tuple of two numbers is one pair. A list or tuple of pairs is refused, since it may be a curve of one mechanism or
    the pairs of several ones.

    >>> [g.epsilon(delta=1e-6) for g in one_or_several("base", (1.0, 1e-6))]
    [1.0]
    """
    if not isinstance(values, Sequence) or (len(values) == 2 and all(is_plain_number(each) for each in values)):
        return (promise(name, values),)
    if not values or any(isinstance(each, (list, tuple)) for each in values):
        raise refusal(name, values, "a Guarantee or a sequence of them: call as_guarantee on each pair or curve")
    return promises(name, values)


def promise_or_function(name: str, value: object, makes: str) -> Guarantee | Callable[[Any], Any]:
    """Parse a guarantee as by `promise`, or hand a function back: `makes` says from what to what.

    An object that is read as a guarantee is not a function here, though it may be callable.
    """
    if isinstance(value, OutputGuarantee):
        return promise(name, value)
    found = value if isinstance(value, Guarantee) else _foreign(name, value)
    if found is not None:
        return found
    if not callable(value) or isinstance(value, type):
        raise refusal(name, value, f"a Guarantee, or a function {makes}")
    return value


def hold_promises(holder: object, *names: str) -> None:
    """Parse attributes of a frozen dataclass in its `__post_init__`, each as by `promise`, and keep what was parsed."""
    for name in names:
        value = holder.__dict__[name]
        if not isinstance(value, Guarantee):
            object.__setattr__(holder, name, promise(name, value))


def output_promise(name: str, value: object) -> OutputGuarantee:
    """Parse an output guarantee, and raise `PromiseError` for anything else."""
    if isinstance(value, OutputGuarantee):
        return value
    raise refusal(name, value, "an OutputGuarantee")


def output_promises(name: str, values: object) -> tuple[OutputGuarantee, ...]:
    """Parse a sequence of output guarantees, each as by `output_promise`."""
    if not isinstance(values, Iterable):
        raise refusal(name, values, "a sequence of OutputGuarantees")
    return tuple(output_promise(name, value) for value in values)


def promise_or_output(name: str, value: object) -> Guarantee | OutputGuarantee:
    """Parse what a budget reserves: an output guarantee, or a guarantee as by `promise`. Raises the same errors."""
    if isinstance(value, (Guarantee, OutputGuarantee)):
        return value
    found = _foreign(name, value)
    if found is None:
        raise refusal(name, value, "a Guarantee or an OutputGuarantee")
    return found


def refusal(name: str, value: object, wanted: str) -> PromiseError:
    """The error for a value of another kind. It names the price of an output as such."""
    if isinstance(value, RealisedPrice):
        return PromiseError(
            f"{name} must be {wanted}: a realised price, that of one output, settles a reservation in a ledger and is "
            "not composed, amplified or reserved. Use the worst() of its output guarantee"
        )
    number = type(value) in (int, float) and "Guarantee" in wanted
    cure = f"; for an epsilon of {value} write pure_dp(epsilon={value})" if number else ""
    if isinstance(value, (list, tuple)) and name == "guarantees":
        cure = ". Write compose(*guarantees) for a list"
    if name == "base" and hasattr(value, "expected_quantile"):
        return PromiseError(
            "base is a distribution of the number of runs: the guarantee of one run comes first. "
            "Write best_of(pure_dp(epsilon=1.0), Harmonic(limit=30)) with yours"
        )
    others = f". Also taken: {taken()}" if wanted.startswith("a Guarantee") and not number else ""
    return PromiseError(f"{name} must be {wanted}, got {type(value).__name__}{cure}{others}")
