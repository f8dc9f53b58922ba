"""Pairs, named parameters and curves of points, in Python's own types."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dpselect.errors import ArgumentError, number
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.foreign.opacus import read_state
from dpselect.privacy.foreign_kinds import ON_THE_CALLERS_WORD, foreign_reader, is_plain_number, own_adjacency
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.mechanisms.gaussian import gaussian
from dpselect.privacy.mechanisms.known_curves import from_profile, zcdp
from dpselect.privacy.mechanisms.pure import approximate_dp, pure_dp

__all__ = ["gaussian_dp", "named_parameters", "read_numbers"]

_TAKES: Final = (
    'a pair (epsilon, delta), a list of such pairs, {"epsilon": ..., "delta": ...}, {"rho": ...} or {"mu": ...}'
)


def gaussian_dp(mu: Any, adjacency: Adjacency) -> Guarantee:
    """The guarantee of mu-Gaussian differential privacy.

    >>> round(gaussian_dp(0.25, Adjacency.ADD_OR_REMOVE_ONE).epsilon(delta=1e-6), 4)
    1.0607
    """
    mu = number("mu", mu, at_least=0.0, rounding="up")
    if mu == 0.0:
        return pure_dp(epsilon=0, adjacency=adjacency)
    return gaussian(noise_multiplier=math.nextafter(1.0 / mu, 0.0), adjacency=adjacency)


def _pair(epsilon: Any, delta: Any, adjacency: Adjacency) -> Guarantee:
    """(epsilon, delta)-privacy, which is pure if delta is 0."""
    if number("delta", delta, at_least=0.0, below=1.0, rounding="up") == 0.0:
        return pure_dp(epsilon=epsilon, adjacency=adjacency)
    return approximate_dp(epsilon=epsilon, delta=delta, adjacency=adjacency)


_NAMED: Final[Mapping[frozenset[str], Callable[..., Guarantee]]] = {
    frozenset({"epsilon"}): lambda adjacency, epsilon: pure_dp(epsilon=epsilon, adjacency=adjacency),
    frozenset({"epsilon", "delta"}): lambda adjacency, epsilon, delta: _pair(epsilon, delta, adjacency),
    frozenset({"rho"}): lambda adjacency, rho: zcdp(rho=rho, adjacency=adjacency),
    frozenset({"mu"}): lambda adjacency, mu: gaussian_dp(mu, adjacency),
}


def named_parameters(given: Mapping[Any, Any], adjacency: Adjacency) -> Guarantee | None:
    """The guarantee of parameters by name, or None if the names are others."""
    make = _NAMED.get(frozenset(given))
    return None if make is None else make(adjacency, **given)


@foreign_reader("builtins", takes=_TAKES)
def read_numbers(thing: Any, adjacency: Adjacency | None) -> Guarantee | None:
    """Read a pair, parameters by name, or a curve of pairs. None for other objects of Python's own types."""
    found = _read(thing, adjacency)
    return found if found is None else replace(found, terms={"rests": ON_THE_CALLERS_WORD, **found.terms})


def _read(thing: Any, adjacency: Adjacency | None) -> Guarantee | None:
    relation = own_adjacency("this", None, adjacency)
    if isinstance(thing, Mapping):
        return named_parameters(thing, relation) or read_state(thing, adjacency)
    if isinstance(thing, tuple) and len(thing) == 2 and all(is_plain_number(each) for each in thing):
        return _pair(*thing, relation)
    if isinstance(thing, Sequence) and not isinstance(thing, str) and thing and all(_is_pair(each) for each in thing):
        return _curve(thing, relation)
    return None


def _is_pair(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 2 and all(is_plain_number(each) for each in value)


def _curve(points: Sequence[Any], adjacency: Adjacency) -> Guarantee:
    """The guarantee of pairs in any order, all of one mechanism. Of equal epsilons the smallest delta counts."""
    epsilons = [number("epsilon", epsilon, at_least=0.0, rounding="up") for epsilon, _ in points]
    deltas = [number("delta", delta, at_least=0.0, at_most=1.0, rounding="up") for _, delta in points]
    smallest = dict(sorted(zip(epsilons, deltas, strict=True), reverse=True))
    if all(delta == 1.0 for delta in smallest.values()):
        raise ArgumentError("a curve whose deltas are all 1 says nothing")
    known = sorted(smallest)
    return from_profile(known, [smallest[epsilon] for epsilon in known], adjacency=adjacency)
