"""Guarantees at the boundary: one parser for every function that asks for what a mechanism promises."""

from __future__ import annotations

from collections.abc import Iterable

from dpselect.errors import PromiseError
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.output.guarantee import OutputGuarantee, RealisedPrice

__all__ = ["output_promise", "output_promises", "promise", "promise_or_output", "promises", "refusal"]


def promise(name: str, value: object) -> Guarantee:
    """Parse a guarantee: what a mechanism promises before it runs.

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
    raise refusal(name, value, "a Guarantee")


def promises(name: str, values: object) -> tuple[Guarantee, ...]:
    """Parse a sequence of guarantees, each as by `promise`."""
    if not isinstance(values, Iterable):
        raise refusal(name, values, "a sequence of Guarantees")
    return tuple(promise(name, value) for value in values)


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
    """Parse what a budget reserves: a guarantee or an output guarantee. Raises `PromiseError` for anything else."""
    if isinstance(value, (Guarantee, OutputGuarantee)):
        return value
    raise refusal(name, value, "a Guarantee or an OutputGuarantee")


def refusal(name: str, value: object, wanted: str) -> PromiseError:
    """The error for a value of another kind. It names the price of an output as such."""
    if isinstance(value, RealisedPrice):
        return PromiseError(
            f"{name} must be {wanted}: a realised price, that of one output, settles a reservation in a ledger and is "
            "not composed, amplified or reserved. Use the worst() of its output guarantee"
        )
    number = type(value) in (int, float) and "Guarantee" in wanted
    cure = f"; for an epsilon of {value} write pure_dp(epsilon={value})" if number else ""
    return PromiseError(f"{name} must be {wanted}, got {type(value).__name__}{cure}")
