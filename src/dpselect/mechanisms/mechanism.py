"""The base class of mechanisms: public parameters, their guarantee, and a call that runs it on data."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields
from functools import cache, lru_cache, partial
from typing import Any, TypeVar

from dpselect.errors import integer, number
from dpselect.privacy import Adjacency, Guarantee, OutputGuarantee, Release, Spender, paid
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.randomness import RandomSource, resolve

__all__ = ["Mechanism", "Parsed", "configured", "real", "released_value", "whole"]

_Mechanism = TypeVar("_Mechanism", bound="Mechanism")


def real(**limits: Any) -> dict[str, Any]:
    """The metadata of a field that `number` parses, within these limits."""
    return {"parse": partial(number, **limits)}


def whole(**limits: Any) -> dict[str, Any]:
    """The metadata of a field that `integer` parses, within these limits."""
    return {"parse": partial(integer, **limits)}


class Parsed:
    """A frozen dataclass whose fields are parsed as their metadata say, and its adjacency."""

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, parse in _parsers(kind):
            given = getattr(self, name)
            parsed = parse(name, given)
            if parsed is not given:
                object.__setattr__(self, name, parsed)

    def _parsed(self, **values: Any) -> None:
        """Replace the arguments by their parsed values, for a `__post_init__`."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


@cache
def _parsers(kind: Any) -> list[tuple[str, Callable[[str, Any], Any]]]:
    """The fields of a class that are parsed, and by what."""
    named = [(field.name, field.metadata.get("parse")) for field in fields(kind)]
    named = [(name, _adjacency if name == "adjacency" else parse) for name, parse in named]
    return [(name, parse) for name, parse in named if parse is not None]


def _adjacency(_name: str, given: Adjacency | str) -> Adjacency:
    return given if type(given) is Adjacency else parse_adjacency(given)


class Mechanism(Parsed, ABC):
    """Configured without data, `guarantee` says what it promises, and a call runs it and gives a `Release`.

    A subclass says in `prepared` what it takes and what it gives.

    >>> from dpselect.mechanisms import PermuteAndFlip
    >>> from dpselect.randomness import keyed_source
    >>> mechanism = PermuteAndFlip(sensitivity=1.0, epsilon=1.0)
    >>> mechanism.guarantee.epsilon(delta=0), mechanism([0.0, 90.0, 3.0], random=keyed_source(1)).value
    (1.0, 1)
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "settled" in vars(cls):  # its name before 0.3
            warnings.warn(f"{cls.__name__}.settled is called bind now", DeprecationWarning, stacklevel=2)
            cls.bind = vars(cls)["settled"]  # type: ignore[method-assign]

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee | OutputGuarantee:
        """The guarantee of one run, from public parameters alone."""

    @abstractmethod
    def prepared(self, *data: Any, **public: Any) -> Callable[[RandomSource], Any]:
        """One run on this data, to be called once: arguments are checked now, and the data are looked at then."""

    def bind(self, *data: Any) -> tuple[Mechanism, tuple[Any, ...]]:
        """The mechanism and the data, once the public facts about them are known: their type, a declared size.

        A mechanism whose guarantee is wanted before there are data leaves these facts open, or states them.
        """
        return self, data

    def form(self, *data: Any) -> Callable[..., Release]:  # noqa: ARG002
        """The class or function that makes the release of a run on this data, from the keywords of `Release`."""
        return Release

    def draw(self, *data: Any, random: RandomSource | None = None, **public: Any) -> Any:
        """Return the output of one run, unpaid: for a part of something that is priced and paid as a whole."""
        mechanism, data = self.bind(*data)
        return mechanism.prepared(*data, **public)(resolve(random))

    def __call__(
        self,
        *data: Any,
        spender: Spender | None = None,
        label: str | None = None,
        random: RandomSource | None = None,
        **public: Any,
    ) -> Release:
        """Run it on the data, paid by `spender` before they are read. See `dpselect.privacy.paid`.

        `label` is its name in the record, by default that of the mechanism.
        """
        mechanism, data = self.bind(*data)
        run, source = mechanism.prepared(*data, **public), resolve(random)
        name = type(self).__name__ if label is None else label
        public = {"spender": spender, "label": name, "replayable": source.replayable}
        return paid(lambda: run(source), mechanism.guarantee, form=mechanism.form(*data), **public)


@lru_cache(maxsize=256, typed=True)
def _kept(kind: type[Any], **parameters: Any) -> Any:
    return kind(**parameters)


def configured(kind: type[_Mechanism], **parameters: Any) -> _Mechanism:
    """Return `kind(**parameters)`, for a function form: the same one again for the same parameters.

    >>> from dpselect.mechanisms import NoisyCount
    >>> configured(NoisyCount, epsilon=0.5) is configured(NoisyCount, epsilon=0.5)
    True
    """
    try:
        kept: _Mechanism = _kept(kind, **parameters)
    except TypeError:  # one that cannot be kept, such as an array without dimensions, or one that is refused again
        return kind(**parameters)
    return kept


def released_value(
    mechanism: Mechanism, data: Any, *, spender: Spender | None, label: str, random: RandomSource | None
) -> Any:
    """The released value alone, as the function forms give it: without a spender, no guarantee is computed."""
    if spender is None:
        return mechanism.draw(data, random=random)
    return mechanism(data, spender=spender, label=label, random=random).value
