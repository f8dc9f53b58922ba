"""Laws of K by name, as descriptions, study files and the command line write them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, Final, Protocol, runtime_checkable

from dpselect.errors import ArgumentError
from dpselect.foreign_names import wrong_settings
from dpselect.repetitions.distribution import LAWS, Family, Repetitions

__all__ = ["GRID", "expect_law", "families", "from_description", "law_named", "law_names", "law_usage"]


GRID: Final = "grid"
"""A sweep over different candidates, once each. Not a law of K: its price is composition."""


@runtime_checkable
class _BuiltByMean(Protocol):
    """A class of distributions with `gamma` among its parameters, which can be built from the mean in its place."""

    @property
    def with_mean(self) -> Callable[..., Repetitions]:
        """The class method."""


def law_named(name: str, settings: Mapping[str, Any]) -> Repetitions:
    """The law of this name. `at_most` among the settings conditions it on a hard limit.

    Laws that are built from gamma take `mean` in its place. Raises `ArgumentError` for an unknown name or for settings
    that the law does not take.

    >>> law_named("geometric", {"mean": 10}).mean, law_named("harmonic", {"limit": 30, "at_most": 3}).limit
    (10.0, 3)
    """
    if name == GRID:
        raise ArgumentError(
            "grid: different candidates once each are not independent draws. The cost of a grid is their composition"
        )
    if name not in LAWS:
        known = sorted([*law_usage(), GRID])
        near = [f"; did you mean {meant!r}?" for meant in get_close_matches(name, known, n=1)]
        fixed = [f"; for a fixed number of runs write fixed:count={name}"] if name.isdecimal() else near
        raise ArgumentError(f"unknown distribution {name!r}; one of {', '.join(known)}{''.join(fixed)}")
    law = LAWS[name]
    given = dict(settings)
    limit = given.pop("at_most", None)
    if "base_law" in given:
        given["law"] = from_description(given.pop("base_law"))
    build: Callable[..., Repetitions] = law
    expected = law.parameters()
    if "mean" in given and isinstance(law, _BuiltByMean):
        build = law.with_mean
        expected = tuple(inspect.signature(build).parameters)
    if set(given) != set(expected):
        takes = _parameters_in_words(law) or "no settings"
        raise ArgumentError(wrong_settings(f"distribution {name!r}", takes, expected, given))
    built = build(**given)
    return built if limit is None else built.at_most(limit)


def from_description(description: Mapping[str, Any]) -> Repetitions:
    """The law that `describe` described. Raises `ArgumentError` for a law or a parameter that does not exist.

    >>> from dpselect.repetitions import Geometric
    >>> from dpselect.repetitions.by_name import from_description
    >>> from_description(Geometric(gamma=0.25).describe())
    Geometric(gamma=0.25)
    """
    settings = dict(description)
    return law_named(str(settings.pop("law", None)), settings)


def expect_law(repetitions: object) -> None:
    """Raise `TypeError` for anything but a distribution of the number of runs, and say how to write a plain number.

    >>> from dpselect.repetitions import Harmonic
    >>> expect_law(Harmonic(limit=30))
    """
    if not isinstance(repetitions, Repetitions):
        count = repetitions if type(repetitions) is int and 0 < repetitions < 1000 else 10
        raise TypeError(
            "repetitions must be a distribution of the number of runs, e.g. Harmonic(limit=30), got "
            f"{type(repetitions).__name__}; a fixed number is Fixed(count={count}) and costs more"
        )


def law_names() -> tuple[str, ...]:
    """The names of all laws but those that are made from another one."""
    return tuple(name for name in LAWS if "law" not in LAWS[name].parameters())


def law_usage() -> dict[str, str]:
    """The parameters of the laws that a few numbers describe, by name.

    >>> law_usage()["negative-binomial"]
    'eta=,mean=|gamma='
    """
    return {
        name: _parameters_in_words(LAWS[name])
        for name in law_names()
        if all(field.type in ("int", "float") for field in fields(LAWS[name]))
    }


def families() -> tuple[Family, ...]:
    """The families of laws that a plan weighs unless told otherwise: those that the laws name."""
    return tuple(family for name in LAWS for family in LAWS[name].families())


def _parameters_in_words(law: Any) -> str:
    either = "mean=|gamma=" if isinstance(law, _BuiltByMean) else "gamma="
    return ",".join(either if name == "gamma" else f"{name}=" for name in law.parameters())
