"""A mechanism of this library as an audit sees it: on one bad pair of neighbours, with the price it states itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any
from unittest import mock

from numpy.typing import NDArray

from dpselect.audit import Subject
from dpselect.audit.callables import collected
from dpselect.privacy import Guarantee, approximate_dp, pure_dp
from dpselect.randomness import RandomSource, keyed_source
from dpselect.testing.audit_contract import cheaper

__all__ = ["ENTRIES", "Shipped", "audited", "label", "looped", "number_or_nan", "priced_once", "pure_part", "released"]


@dataclass(frozen=True, kw_only=True)
class Shipped:
    """An entry of the registry in `tests.audits.shipped_mechanisms`.

    Attributes:
        name: unique in the registry: that of the function, with what it was given.
        make: the subject; `dpselect audit MODULE:NAME` of it works, where the function takes no arguments.
        covers: the public callables that its draws go through, as "room.name".
        draws: six times as many of each data set as a test in a hurry takes.
        many: as many as a test with time takes.
        heavy: for tests that have time only.
        planted: the claim is also refused, on `many` draws, at this fraction of its epsilon; None where the pair is
            too mild for that, and the entry shows no more than that nothing grossly wrong leaks.
        of_delta: it is the claim's delta of which `planted` is a fraction, at the whole epsilon.
    """

    name: str
    make: Callable[[], Subject]
    covers: tuple[str, ...]
    draws: int
    many: int = 20_000
    heavy: bool = False
    planted: float | None = None
    of_delta: bool = False

    def sample(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """`many` draws of each data set, the same at every call."""
        subject, source = self.make(), keyed_source(f"shipped {self.name}")
        data, neighbour = (subject.draw(side, self.many, source.spawn(int(side))) for side in (False, True))
        return data, neighbour

    def planted_claim(self, claim: Guarantee) -> Guarantee:
        """The false claim. Raises `ValueError` where there is none."""
        if self.planted is None:
            raise ValueError(f"{self.name} has no planted claim")
        if self.of_delta:
            delta = self.planted * claim.failure
            return approximate_dp(epsilon=claim.pure_epsilon, delta=delta, adjacency=claim.adjacency)
        return cheaper(claim, self.planted, delta=claim.failure if math.isfinite(claim.pure_epsilon) else 1e-3)


Make = Callable[..., Subject]


ENTRIES: list[Shipped] = []
"""Every entry, as soon as its file is imported."""


def audited(*covers: str, of: tuple[str, ...] = (), **settings: Any) -> Callable[[Make], Make]:
    """Enter the subject that the function makes of `of` among `ENTRIES`, with the settings of `Shipped`.

    A function stands once for each of what it is given.
    """

    def enter(make: Make) -> Make:
        name = "_".join((make.__name__, *of)).replace("-", "_").replace(" ", "_")
        ENTRIES.append(Shipped(name=name, make=partial(make, *of), covers=covers, **settings))
        return make

    return enter


def number_or_nan(value: float | None) -> float:
    """A number, NaN standing for none: one more output to an audit."""
    return float("nan") if value is None else float(value)


def looped(
    name: str,
    run: Callable[..., Any],
    pair: tuple[Any, Any],
    claim: Guarantee,
    output: Callable[[Any], Any] = lambda found: found,
    *,
    priced_by: Iterable[str] = (),
) -> Subject:
    """A subject whose draws are the `output` of one call of `run(data, random=...)` each.

    `pair` is the data and its neighbour. `priced_by`: see `priced_once`.
    """

    def draw(neighbour: bool, count: int, random: RandomSource) -> NDArray[Any]:
        data = pair[neighbour]
        with priced_once(priced_by):
            return collected([output(run(data, random=random)) for _ in range(count)])

    return Subject(name=name, draw=draw, claim=claim)


def released(
    name: str,
    run: Callable[..., Any],
    pair: tuple[Any, Any],
    output: Callable[[Any], Any] = number_or_nan,
    *,
    priced_by: Iterable[str] = (),
) -> Subject:
    """The same of a function that gives a `Release`: the claim is what the release says, which no data can change."""
    claim = run(pair[0], random=keyed_source(0)).guarantee
    return looped(name, run, pair, claim, lambda found: output(found.value), priced_by=priced_by)


@contextmanager
def priced_once(functions: Iterable[str]) -> Iterator[None]:
    """Meanwhile the functions named ("module.name") compute what they return at their first call only.

    For prices and laws of K: functions of public arguments that are the same in every draw, which take a thousand times
    as long as the draw. In one thread.
    """

    def first_of(kept: list[Any], function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if not kept:
            kept.append(function(*args, **options))
        return kept[0]

    with ExitStack() as stack:
        for name in functions:
            module, _, attribute = name.rpartition(".")
            original = getattr(import_module(module), attribute)
            stack.enter_context(mock.patch(name, partial(first_of, [], original)))
        yield


def label(values: Iterable[Any]) -> str:
    """One name for an output of several parts.

    >>> label([True, False, 3])
    '1 0 3'
    """
    return " ".join(f"{value:.6g}" for value in values)


def pure_part(subject: Subject) -> Subject:
    """The same with the claim's pure epsilon alone, where it has one: a curve may take seconds to evaluate."""
    if not math.isfinite(subject.claim.pure_epsilon) or subject.claim.failure > 0.0:
        return subject
    return replace(subject, claim=pure_dp(epsilon=subject.claim.pure_epsilon, adjacency=subject.claim.adjacency))
