"""Base mechanisms and laws as the command line writes them: name:key=value,key=value."""

from __future__ import annotations

from typing import Final

from dpselect.cli.options import number_in
from dpselect.errors import ArgumentError
from dpselect.privacy import Adjacency, Guarantee
from dpselect.privacy.bases import base_named
from dpselect.repetitions import Repetitions
from dpselect.repetitions.by_name import law_named

__all__ = ["BASE_HELP", "LAW_HELP", "base_of", "law_of", "parse_settings"]

BASE_HELP: Final = (
    "One run: approximate:epsilon=,delta=, correlated-noise:noise_multiplier=,coefficients=,steps=,"
    "min_separation=,max_participations=,sampling_rate=, dp-sgd:noise_multiplier=,sampling_rate=,steps=, "
    "fixed-batches:noise_multiplier=,dataset_size=,batch_size=,steps=, gaussian:noise_multiplier=, laplace:scale=, "
    "pure:epsilon=, random-allocation:noise_multiplier=,steps_per_epoch=,epochs=, zcdp:rho="
)
LAW_HELP: Final = (
    "Number of runs: beta-binomial:trials=,shape=, binomial:trials=,probability=, fixed:count=, "
    "geometric:mean=|gamma=, harmonic:limit=, logarithmic:mean=|gamma=, negative-binomial:eta=,mean=|gamma=, "
    "poisson:mean=, uniform:limit=, zero-truncated-poisson:mean= (independent draws of one law), grid:count= "
    "(different candidates, once each). Add at_most= for a hard limit."
)
"""Written down, as their modules take longer to import than to run: a test holds them to what is registered."""


def base_of(base: str, *, adjacency: Adjacency | str, **settings: float) -> Guarantee:
    """The guarantee of the base mechanism that the text describes, some settings replaced. Raises `ArgumentError`."""
    name, given = parse_settings(base)
    return base_named(name, {**given, **settings}, adjacency=adjacency)


def law_of(repetitions: str) -> Repetitions:
    """The law that `name:key=value,...` describes, or `ArgumentError`."""
    try:
        return law_named(*parse_settings(repetitions))
    except ArgumentError as error:
        raise ArgumentError(f"repetitions: {error}") from None


def parse_settings(text: str) -> tuple[str, dict[str, float | int]]:
    """Split `name:key=value,key=value`. Raises `ArgumentError`.

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
            settings[key] = number_in(value)
        except ValueError:
            raise ArgumentError(f"{text!r}: {key} must be a number, got {value!r}") from None
    return name.strip(), settings
