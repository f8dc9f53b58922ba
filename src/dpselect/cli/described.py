"""Base mechanisms and laws as the command line writes them: name:key=value,key=value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from dpselect.cli.options import number_in
from dpselect.cures import EXAMPLES
from dpselect.errors import AdjacencyError, ArgumentError, StudyError
from dpselect.foreign_names import meant
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
    "poisson:mean=, uniform:limit=, zero-truncated-poisson:mean= (independent draws with replacement), grid:count= "
    "(different candidates, once each). Add at_most= for a hard limit."
)
"""Written down, as their modules take longer to import than to run: a test holds them to what is registered."""


def base_of(base: str, *, adjacency: Adjacency | str, **settings: float) -> Guarantee:
    """The guarantee of the base mechanism that the text describes, some settings replaced. Raises `ArgumentError`."""
    name, given = _parsed(base, BASE_HELP)
    try:
        return base_named(name, {**given, **settings}, adjacency=adjacency)
    except AdjacencyError:
        raise
    except ArgumentError as error:
        raise _named("base", name, given, error, BASE_HELP) from None


def law_of(repetitions: str) -> Repetitions:
    """The law that `name:key=value,...` describes, or `ArgumentError`."""
    name, given = _parsed(repetitions, LAW_HELP)
    try:
        return law_named(name, given)
    except ArgumentError as error:
        raise _named("repetitions", name, given, error, LAW_HELP) from None


def _parsed(text: str, listed: str) -> tuple[str, dict[str, float | int]]:
    """The name and the settings in a text. An error says how the thing of this name is written."""
    name = re.split("[:=]", text)[0].strip()
    try:
        if "=" in text.partition(":")[0]:
            raise ArgumentError(f"{text!r}: settings follow a colon")
        return parse_settings(text)
    except ArgumentError as error:
        raise ArgumentError(f"{error}{_usage(name, listed)}") from None


def _named(flag: str, name: str, given: Mapping[str, float], error: ArgumentError, listed: str) -> StudyError:
    """The error for a thing on the command line. Its settings keep their names, which other flags may have too."""
    said, wrong, _ = str(error).partition(". Write ")
    cure = _usage(name, listed, given) if " takes '" in said or not wrong else ""
    return StudyError(f"--{flag}: {said if cure else error}{cure}")


def _usage(name: str, listed: str, given: Mapping[str, float] = MappingProxyType({})) -> str:
    """How a base or a distribution of this name is written, as the help lists it, or nothing for another name."""
    found = re.search(rf"(?<![\w-]){re.escape(name)}:([\w=,|]+)", listed)
    if found is None:
        return ""
    settings = [each.partition("|")[0].rstrip("=") for each in found[1].split(",") if each]
    values = {meant(each, settings) or each: value for each, value in given.items()} | dict(given)
    return f". Write {name}:{','.join(f'{each}={values.get(each, EXAMPLES.get(each, 1))}' for each in settings)}"


def _written(name: str) -> str:
    """The end of an error: the base or distribution of this name with settings that do, if its help has it."""
    shown = re.search(rf"(?<![a-z-]){re.escape(name)}:([a-z_=,|]+=)", f"{BASE_HELP} {LAW_HELP}")
    keys = [part.partition("|")[0].rstrip("=") for part in shown[1].split(",")] if shown else []
    if not keys or any(key not in EXAMPLES for key in keys):
        return ""
    return f". Write {name}:{','.join(f'{key}={EXAMPLES[key]}' for key in keys)}"


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
            raise ArgumentError(f"{text!r}: settings are key=value, each once, separated by commas{_written(name)}")
        try:
            settings[key] = number_in(value)
        except ValueError:
            raise ArgumentError(f"{text!r}: {key} must be a number, got {value!r}") from None
    return name.strip(), settings
