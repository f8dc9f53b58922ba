"""The bounds on the best of K runs, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from dpselect.privacy import Guarantee
from dpselect.registry import Registry
from dpselect.repetitions import Repetitions

__all__ = ["BOUNDS", "Builder", "default_bounds", "search_bound"]

Builder = Callable[[Guarantee, Repetitions], Guarantee | None]
"""From the guarantee of one run and the law of K to the guarantee of the best of K runs; None where it says nothing."""

Some = TypeVar("Some", bound=Callable[..., Guarantee | None])

BOUNDS: Final = Registry[Builder]("bound", room="dpselect.accounting.best_of_k.bounds")


def search_bound(name: str, *, by_default: bool = False) -> Callable[[Some], Some]:
    """Return a decorator that registers a bound for `best_of(..., bound=name)`.

    The bound may stand in its own file in `bounds/`, or come from outside. The decorated function takes the base's
    guarantee and the distribution of K. It returns a guarantee, or None if the bound does not exist for them.

    Args:
        name: the name of the bound, public.
        by_default: whether the bound is among those whose smallest is the default. Such a bound has the failure mass of
            Lemma 20 of Papernot and Steinke (2022) if it has any: `theorems.lemma_20` gives it. False unless given.

    Returns:
        The decorator. It returns the function unchanged, and raises `ArgumentError` if another bound has this name.
    """

    def named(build: Some) -> Some:
        BOUNDS.register(name, by_default=by_default)(build)
        return build

    return named


def default_bounds() -> list[str]:
    """The names of the bounds whose smallest is the default."""
    return [name for name in BOUNDS if BOUNDS.facts(name)["by_default"]]
