"""Base mechanisms by name, as the command line writes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache, wraps
from typing import Any, Final, TypeVar, cast

import numpy as np

from dpselect.errors import ArgumentError
from dpselect.foreign_names import wrong_settings
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.guarantee import Guarantee
from dpselect.registry import Registry

__all__ = ["BASES", "base_mechanism", "base_named", "base_usage", "noise_of", "with_noise"]

Make = TypeVar("Make", bound=Callable[..., Guarantee])

BASES: Final = Registry[Callable[..., Guarantee]]("base", room="dpselect.privacy.mechanisms")
"""Functions of public numbers and of `adjacency`, by keyword."""
_REMEMBERED: Final = 64
_PLAIN: Final = frozenset({int, float, str, Fraction, np.float64, Adjacency})


def base_mechanism(name: str, *, noise: str | None = None) -> Callable[[Make], Make]:
    """Return a decorator that registers a function from public numbers to the guarantee of one run.

    The function takes the numbers and `adjacency` by name. It is then a base of `dpselect account`, `plan` and `audit`.
    It may stand in its own file in this room, or come from outside. Equal numbers give the same object, so a curve
    computed once serves anyone who asks again.

    Args:
        name: the name of the base mechanism, public.
        noise: the parameter that a planner may choose. The larger it is, the smaller is every epsilon (you must ensure
            this). None, the default, means that there is none.

    Returns:
        The decorator. It raises `ArgumentError` if another base has this name.
    """
    register = BASES.register(name, noise=noise)
    return cast("Callable[[Make], Make]", lambda make: register(_remembered(make)))


def _remembered(make: Callable[..., Guarantee]) -> Callable[..., Guarantee]:
    found = lru_cache(maxsize=_REMEMBERED, typed=True)(make)

    @wraps(make)
    def remembered(*refused: Any, **settings: Any) -> Guarantee:
        # an object of another kind may be hashed by what it is, and be another number the next time
        plain = not refused and all(type(each) in _PLAIN for each in settings.values())
        return found(**settings) if plain else make(*refused, **settings)

    return remembered


def base_named(name: str, settings: Mapping[str, Any], *, adjacency: Adjacency | str) -> Guarantee:
    """The guarantee of the base mechanism of this name.

    Raises `ArgumentError` for an unknown name or for settings that it does not take.

    >>> base_named("laplace", {"scale": 2}, adjacency="replace_one").epsilon(delta=0)
    0.5
    """
    make = BASES[name]
    parameters = {key: it for key, it in inspect.signature(make).parameters.items() if key != "adjacency"}
    needed = {key for key, it in parameters.items() if it.default is it.empty}
    if not needed <= set(settings) <= set(parameters):
        takes = base_usage()[name] or "no settings"
        raise ArgumentError(wrong_settings(f"base {name!r}", takes, parameters, settings))
    return make(**settings, adjacency=adjacency)


def base_usage() -> dict[str, str]:
    """Return the settings of each base mechanism, by name.

    >>> base_usage()["approximate"]
    'epsilon=,delta='
    """
    return {
        name: ",".join(f"{key}=" for key in inspect.signature(BASES[name]).parameters if key != "adjacency")
        for name in BASES
    }


def noise_of(name: str) -> str | None:
    """Return the parameter that a planner may choose; None if the base has none or does not exist."""
    noise: str | None = BASES.facts(name).get("noise")
    return noise


def with_noise() -> dict[str, str]:
    """The bases whose noise can be planned, each with the parameter."""
    return {name: noise for name in BASES if (noise := noise_of(name)) is not None}
