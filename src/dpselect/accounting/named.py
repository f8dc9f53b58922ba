"""Laws and base mechanisms by name, as the command line and study files write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dpselect.errors import ArgumentError
from dpselect.privacy import Adjacency, Guarantee, approximate_dp, dp_sgd, gaussian, laplace, pure_dp, zcdp
from dpselect.repetitions import (
    BetaBinomial,
    Binomial,
    Fixed,
    Geometric,
    Harmonic,
    Logarithmic,
    Poisson,
    Repetitions,
    Tabulated,
    TruncatedNegativeBinomial,
    Uniform,
    ZeroTruncatedPoisson,
)

__all__ = ["LAW_NAMES", "base_named", "law_named", "parse_settings"]

GRID: Final = "grid"
"""A sweep over different candidates, once each. Not a repetition law: its price is composition."""


def _by_mean_or_gamma(law: Any) -> Callable[..., Repetitions]:
    def build(**settings: Any) -> Repetitions:
        if ("mean" in settings) == ("gamma" in settings):
            raise TypeError("give exactly one of mean and gamma")
        return law.with_mean(**settings) if "mean" in settings else law(**settings)

    return build


_LAWS: Final[Mapping[str, Callable[..., Repetitions]]] = {
    "negative-binomial": _by_mean_or_gamma(TruncatedNegativeBinomial),
    "geometric": _by_mean_or_gamma(Geometric),
    "logarithmic": _by_mean_or_gamma(Logarithmic),
    "poisson": Poisson,
    "zero-truncated-poisson": ZeroTruncatedPoisson,
    "binomial": Binomial,
    "beta-binomial": BetaBinomial,
    "harmonic": Harmonic,
    "uniform": Uniform,
    "fixed": Fixed,
    "tabulated": Tabulated,
}

LAW_NAMES: Final = tuple(_LAWS)
"""The names that `law_named` knows."""

_BASES: Final[Mapping[str, Callable[..., Guarantee]]] = {
    "pure": pure_dp,
    "approximate": approximate_dp,
    "zcdp": zcdp,
    "laplace": laplace,
    "gaussian": gaussian,
    "dp-sgd": dp_sgd,
}


def law_named(name: str, settings: Mapping[str, Any]) -> Repetitions:
    """The repetition law of this name; `at_most` among the settings conditions it on a hard limit.

    Raises `ArgumentError` for an unknown name or wrong settings.

    >>> law_named("harmonic", {"limit": 3}).limit
    3
    """
    if name == GRID:
        raise ArgumentError(
            "grid: different candidates once each are not independent draws of one law; their price is composition"
        )
    settings = dict(settings)
    limit = settings.pop("at_most", None)
    law = _build("repetitions", _LAWS, name, settings)
    return law if limit is None else law.at_most(limit)


def base_named(name: str, settings: Mapping[str, Any], *, adjacency: Adjacency | str) -> Guarantee:
    """The base mechanism of this name. Raises `ArgumentError` for an unknown name or wrong settings."""
    return _build("base", _BASES, name, {**settings, "adjacency": adjacency})


def _build(kind: str, known: Mapping[str, Callable[..., Any]], name: str, settings: Mapping[str, Any]) -> Any:
    if name not in known:
        raise ArgumentError(f"{kind}: unknown name {name!r}; one of {', '.join(known)}")
    try:
        return known[name](**settings)
    except TypeError as error:
        text = str(error)
        cleaned = text.split("() ", 1)[1] if "() " in text else text
        raise ArgumentError(f"{kind} {name!r}: {cleaned}") from None


def parse_settings(text: str) -> tuple[str, dict[str, float | int]]:
    """Split `name:key=value,key=value`; raises `ArgumentError`.

    >>> parse_settings("negative-binomial:eta=0,mean=10")
    ('negative-binomial', {'eta': 0, 'mean': 10})
    """
    name, _, rest = text.partition(":")
    settings: dict[str, float | int] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key or key in settings:
            raise ArgumentError(f"{text!r}: settings are key=value, each once, separated by commas")
        try:
            settings[key] = int(value)
        except ValueError:
            try:
                settings[key] = float(value)
            except ValueError:
                raise ArgumentError(f"{text!r}: {key} must be a number, got {value!r}") from None
    return name.strip(), settings
