"""The search space: one fixed, data-independent distribution. Every trial draws its parameters from it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Protocol, runtime_checkable

from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError, expect, integer, number
from dpselect.foreign_names import meant, misuse
from dpselect.randomness import RandomSource, resolve

__all__ = [
    "GRID_REFUSAL",
    "INTERVALS",
    "LAW_NAMES",
    "Categorical",
    "Distribution",
    "IntegerUniform",
    "LogUniform",
    "Space",
    "Uniform",
    "parse_space",
    "with_law",
]

GRID_REFUSAL: Final = (
    "A grid runs different candidates once each. The best of K is priced for K independent draws from one "
    "distribution, with replacement, and a grid by composing the guarantees of all its candidates"
)

Scalar = str | int | float | bool | None


@runtime_checkable
class Distribution(Protocol):
    """The distribution of one parameter: how it is drawn, and a JSON description that settles it completely."""

    def sample(self, random: RandomSource) -> Scalar:
        """One draw."""
        ...

    def describe(self) -> dict[str, Any]:
        """A JSON-able description, which `parse_space` reads back."""
        ...


@dataclass(frozen=True)
class Categorical:
    """A distribution with equally likely choices.

    Args:
        choices: a list or tuple of at least one choice: strings, finite numbers, booleans or None. Public.

    Raises:
        TypeError: if `choices` is not a list or tuple.
        ArgumentError: if it is empty, or a choice is something else.

    >>> Categorical(["sgd", "adam"]).describe()
    {'law': 'categorical', 'choices': ['sgd', 'adam']}
    """

    choices: Sequence[Scalar]

    def __post_init__(self) -> None:
        if isinstance(self.choices, (str, bytes)) or not isinstance(self.choices, Sequence):
            cure = f". Write Categorical([{self.choices!r}])" if isinstance(self.choices, (str, int, float)) else ""
            raise TypeError(f"choices must be a list or tuple, got {type(self.choices).__name__}{cure}")
        if not self.choices:
            raise ArgumentError("choices must hold at least one choice. Write Categorical([0.1, 1.0]) with yours")
        for choice in self.choices:
            plain = choice is None or isinstance(choice, (str, bool, int, float))
            if not plain or (isinstance(choice, float) and not math.isfinite(choice)):
                raise ArgumentError(f"choices must be strings, finite numbers, booleans or None, got {choice!r}")
        object.__setattr__(self, "choices", tuple(self.choices))

    def sample(self, random: RandomSource | None = None) -> Scalar:
        """One choice, exactly uniform."""
        return self.choices[resolve(random).below(len(self.choices))]

    def describe(self) -> dict[str, Any]:
        """A JSON-able description."""
        return {"law": "categorical", "choices": list(self.choices)}


@dataclass(frozen=True)
class Uniform:
    """The uniform distribution on [low, high], drawn by inversion.

    Args:
        low: the lower end, a finite public number.
        high: the upper end, a finite public number of at least `low`.

    Raises:
        ArgumentError: for an end that is not finite, or for `high` below `low`.
        TypeError: for an end that is not a number.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _parse_ends(self)

    def sample(self, random: RandomSource | None = None) -> float:
        """One double in [low, high]."""
        return _between(self.low, self.high, random)

    def describe(self) -> dict[str, Any]:
        """A JSON-able description."""
        return {"law": "uniform", "low": self.low, "high": self.high}


@dataclass(frozen=True)
class LogUniform:
    """The distribution on [low, high] that is uniform in the logarithm, drawn by inversion.

    Args:
        low: the lower end, a public number above 0.
        high: the upper end, a finite public number of at least `low`.

    Raises:
        ArgumentError: for an end that is not finite, for `low` not above 0, or for `high` below `low`.
        TypeError: for an end that is not a number.

    >>> from dpselect.randomness import keyed_source
    >>> 1e-4 <= LogUniform(1e-4, 1e-1).sample(keyed_source(1)) <= 1e-1
    True
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _parse_ends(self)
        if not self.low > 0.0:
            cure = f". Write LogUniform({self.high / 1000:g}, {self.high:g})" if self.high > 0.0 else ""
            raise ArgumentError(f"low must be above 0, got {self.low:g}{cure}")

    def sample(self, random: RandomSource | None = None) -> float:
        """One double in [low, high]."""
        drawn = math.exp(_between(math.log(self.low), math.log(self.high), random))
        return min(max(drawn, self.low), self.high)

    def describe(self) -> dict[str, Any]:
        """A JSON-able description."""
        return {"law": "log_uniform", "low": self.low, "high": self.high}


@dataclass(frozen=True)
class IntegerUniform:
    """A distribution on the integers low..high, both ends included.

    Args:
        low: the smallest integer, public, and at least 1 with `log=True`.
        high: the largest integer, public, at least `low`.
        log: whether the logarithm is uniform. By default every integer is equally likely.

    Raises:
        ArgumentError: for `low` below 1 with `log=True`, or for `high` below `low`.
        TypeError: for an end that is not an integer.
    """

    low: int
    high: int
    log: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", integer("low", self.low, at_least=1 if self.log else None))
        object.__setattr__(self, "high", integer("high", self.high, at_least=self.low))

    def sample(self, random: RandomSource | None = None) -> int:
        """One integer."""
        if not self.log:
            return self.low + resolve(random).below(self.high - self.low + 1)
        drawn = math.floor(math.exp(_between(math.log(self.low), math.log(self.high + 1), random)))
        return min(max(drawn, self.low), self.high)

    def describe(self) -> dict[str, Any]:
        """A JSON-able description."""
        return {"law": "integer_uniform", "low": self.low, "high": self.high, "log": self.log}


INTERVALS: Final = (Uniform, LogUniform, IntegerUniform)
"""The distributions of numbers between two ends, `low` and `high`."""


@dataclass(frozen=True)
class Space:
    """A search space of independent parameters, each with its own distribution.

    You must fix it before the data are seen. Every trial draws again, so the same parameters can come twice and are
    then run twice. A cache or a draw without replacement would break the independence that the privacy cost of the
    search depends on.

    Args:
        parameters: the distribution of each parameter, by its name: `Categorical`, `Uniform`, `LogUniform`,
            `IntegerUniform`, or your `Distribution`. Public.

    Raises:
        ArgumentError: for a grid (a list of settings, or a bare list as a parameter's values).
        TypeError: for a name that is empty or not a string.

    >>> from dpselect.randomness import keyed_source
    >>> space = Space({"rate": LogUniform(1e-3, 1.0), "layers": IntegerUniform(1, 3)})
    >>> sorted(space.sample(keyed_source(1)))
    ['layers', 'rate']
    """

    parameters: Mapping[str, Distribution]

    def __post_init__(self) -> None:
        if not isinstance(self.parameters, Mapping):
            raise ArgumentError(
                "space must map names to distributions. Write "
                f'space={{"learning_rate": LogUniform(0.01, 1.0)}} with yours. {GRID_REFUSAL}'
            )
        for name, law in self.parameters.items():
            if not isinstance(name, str) or not name:
                raise TypeError(f"space must name its parameters with strings, got {name!r}")
            if not isinstance(law, Distribution):
                raise ArgumentError(f"space parameter {name!r} needs a distribution{_cure(law)}. {GRID_REFUSAL}")
        object.__setattr__(self, "parameters", dict(self.parameters))

    def __iter__(self) -> Iterator[str]:
        return iter(self.parameters)

    def sample(self, random: RandomSource | None = None) -> dict[str, Scalar]:
        """One setting, drawn in the order in which the parameters were declared."""
        source = resolve(random)
        return {name: law.sample(source) for name, law in self.parameters.items()}

    def describe(self) -> dict[str, Any]:
        """A JSON-able description, in order. It is part of a study's fingerprint."""
        return {name: law.describe() for name, law in self.parameters.items()}


DISTRIBUTIONS: Final[Mapping[str, type[Any]]] = {
    "categorical": Categorical,
    "uniform": Uniform,
    "log_uniform": LogUniform,
    "integer_uniform": IntegerUniform,
}
LAW_NAMES: Final = tuple(DISTRIBUTIONS)
"""The names that `parse_space` knows."""


def with_law(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of a distribution with its name under the key `law`, as descriptions and fingerprints have it.

    People write `distribution`. Raises `ArgumentError` for both.

    >>> with_law({"distribution": "uniform", "low": 0})
    {'law': 'uniform', 'low': 0}
    """
    if "distribution" not in settings:
        return settings
    if "law" in settings:
        raise ArgumentError("law is the old name of distribution: give distribution alone")
    return {"law" if key == "distribution" else key: value for key, value in settings.items()}


def parse_space(description: Mapping[str, Mapping[str, Any]]) -> Space:
    """The space that `Space.describe` describes.

    Raises `ArgumentError` for an unknown distribution, missing or unknown settings, or a grid. `distribution` may stand
    for `law`, as in a study.

    >>> parse_space({"rate": {"law": "uniform", "low": 0, "high": 1}}).describe()
    {'rate': {'law': 'uniform', 'low': 0.0, 'high': 1.0}}
    """
    expect("description", description, Mapping)
    parameters: dict[str, Distribution] = {}
    for name, settings in description.items():
        if not isinstance(settings, Mapping) or "grid" in (settings.get("law"), settings.get("distribution")):
            raise ArgumentError(f"space parameter {name!r} needs a distribution{_row(settings)}. {GRID_REFUSAL}")
        settings = with_law(settings)
        law = str(settings.get("law"))
        if law not in DISTRIBUTIONS:
            asked = settings.get("law", settings.get("type"))
            said = f"space parameter {name!r}: distribution must be one of {', '.join(DISTRIBUTIONS)}, got {asked!r}"
            raise ArgumentError(said + write_one_of("distribution", asked, DISTRIBUTIONS))
        given = {key: settings[key] for key in settings if key != "law"}
        wrong = misuse(DISTRIBUTIONS[law], law, (), given)
        if wrong is not None:
            raise ArgumentError(f"space parameter {name!r}: {wrong.partition(': write ')[0]}{_line(law, given)}")
        try:
            parameters[name] = DISTRIBUTIONS[law](**given)
        except (TypeError, ValueError) as error:
            said = str(error).partition(". Write ")[0]
            raise ArgumentError(f"space parameter {name!r}: {said}{_line(law, given)}") from None
    return Space(parameters)


def _cure(value: object) -> str:
    """The cure for a parameter that has no distribution. A space is public."""
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(end, (int, float)) for end in value):
        return f". Write Uniform({value[0]!r}, {value[1]!r})"
    choices = list(value) if isinstance(value, (list, tuple)) and len(value) < 10 else [value]
    plain = all(isinstance(choice, (str, bool, int, float)) for choice in choices)
    return f". Write Categorical({choices!r})" if plain else ". Write Categorical([...])"


def _line(law: str, given: Mapping[str, Any]) -> str:
    """The cure for a parameter with wrong settings, in the words of a study: those that were meant, in order."""
    ours = [each.name for each in fields(DISTRIBUTIONS[law])]
    values = {meant(each, ours) or each: value for each, value in given.items()}
    low, high = values.get("low", 0.1), values.get("high", 1.0)
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low > high:
        low, high = high, low
    shown = f"low = {low}, high = {high}" if "low" in ours else f"choices = {json.dumps(values.get('choices', [1, 2]))}"
    return f'. Write {{ distribution = "{law}", {shown} }}'


def _row(value: object) -> str:
    """The same in the words of a study."""
    choices = value if isinstance(value, list) and len(value) < 10 else [value]
    if not choices or not all(isinstance(choice, (str, int, float)) for choice in choices):
        return ""
    return f'. Write {{ distribution = "categorical", choices = {json.dumps(choices)} }}'


def _parse_ends(law: Any) -> None:
    low, high = number("low", law.low), number("high", law.high)
    if high < low:
        kind = type(law).__name__
        raise ArgumentError(f"low must be at most high, got {low:g} and {high:g}. Write {kind}({high:g}, {low:g})")
    object.__setattr__(law, "low", low)
    object.__setattr__(law, "high", high)


def _between(low: float, high: float, random: RandomSource | None) -> float:
    # the value of `uniform(1)`, by the same bytes, without an array
    drawn = ((resolve(random).bits(64) >> 12) + 0.5) * 2.0**-52
    # A weighted mean, not low + (high - low) * drawn, whose difference can overflow.
    return min(max((1.0 - drawn) * low + drawn * high, low), high)
