"""Base mechanisms by name, as the command line writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dpselect.errors import ArgumentError
from dpselect.privacy import Adjacency, Guarantee, approximate_dp, dp_sgd, gaussian, laplace, pure_dp, zcdp

__all__ = ["base_named", "parse_settings"]

_BASES: Final[Mapping[str, Callable[..., Guarantee]]] = {
    "pure": pure_dp,
    "approximate": approximate_dp,
    "zcdp": zcdp,
    "laplace": laplace,
    "gaussian": gaussian,
    "dp-sgd": dp_sgd,
}


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
