"""Mechanisms of autodp: their epsilon, Renyi curve and (epsilon, delta) curve, at fixed points."""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Callable
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.foreign_kinds import ON_THE_CALLERS_WORD, RENYI_ORDERS, foreign_reader, own_adjacency
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.mechanisms.known_curves import from_profile
from dpselect.privacy.renyi import TabulatedRenyi

__all__ = ["read_autodp"]

_DELTAS: Final = tuple(np.logspace(-12.0, -0.5, 116).tolist())
_SOLVED: Final = 1.0 + 2e-4
"""autodp finds epsilons by numerical solvers, whose tolerance this covers."""
_COMPUTED: Final = 1.0 + 1e-9
_DATA_DEPENDENT: Final = frozenset({"NoisyScreenMechanism"})


@runtime_checkable
class _AutodpMechanism(Protocol):
    eps_pureDP: float
    neighboring: str
    group_size: int
    local_flag: bool
    RenyiDP: Callable[[float], float]
    approxDP: Callable[[float], float]
    log_phi_p2q: Callable[[float], Any]


@runtime_checkable
class _ReplaceOne(Protocol):
    replace_one: bool


@foreign_reader("autodp", takes="a Mechanism of autodp")
def read_autodp(thing: Any, adjacency: Adjacency | None) -> Guarantee | None:
    """Read the curves of a mechanism. Those that autodp inverts numerically from characteristic functions are left."""
    if not isinstance(thing, _AutodpMechanism):
        return None
    if thing.group_size != 1 or thing.local_flag:
        raise ArgumentError("the autodp mechanism must be for one row of a central data set: group_size=1, not local")
    if type(thing).__name__ in _DATA_DEPENDENT:
        raise ArgumentError(f"{type(thing).__name__} of autodp has a curve that depends on the data, no guarantee")
    relation = own_adjacency("the mechanism", _own_relation(thing), adjacency)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):  # it prints what it cannot compute
        warnings.simplefilter("ignore")
        pure = _upper(thing.eps_pureDP)
        renyi = _finite(thing.RenyiDP, RENYI_ORDERS)
        exact = thing.log_phi_p2q(1.0) is None
        points = _finite(thing.approxDP, _DELTAS) if exact else []
    if math.isinf(pure) and not renyi and not points:
        raise ArgumentError("the autodp mechanism has no finite epsilon, Renyi curve or (epsilon, delta) curve")
    profile = _profile(points, relation)
    return Guarantee(
        adjacency=relation,
        theorem=f"curves of autodp, {ON_THE_CALLERS_WORD}",
        terms={"mechanism": "autodp", "name": type(thing).__name__, "rests": ON_THE_CALLERS_WORD},
        pure_epsilon=pure,
        renyi_curve=TabulatedRenyi(tuple(a for a, _ in renyi), tuple(e for _, e in renyi)) if renyi else None,
        profile=None if profile is None else profile.profile,
    )


def _own_relation(thing: _AutodpMechanism) -> Adjacency | None:
    """The relation that a mechanism states. autodp's default is also that of mechanisms that state none."""
    if isinstance(thing, _ReplaceOne) and bool(thing.replace_one):
        return Adjacency.REPLACE_ONE
    if thing.neighboring == "replace_one":
        return Adjacency.REPLACE_ONE
    if thing.neighboring != "add_remove":
        raise AdjacencyError(f"the autodp mechanism is for {thing.neighboring!r}, in one direction only")
    return None


def _upper(value: Any) -> float:
    """A number of autodp, rounded up. inf if it is none."""
    plain = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    found = float(value) if plain else math.inf
    # a negative number is no bound, but for its rounding
    return max(found, 0.0) * _COMPUTED if found >= -1e-12 else math.inf


def _finite(curve: Callable[[float], Any], places: tuple[float, ...]) -> list[tuple[float, float]]:
    """The places at which a curve has a finite value, each with the value, rounded up."""
    found = []
    for place in places:
        try:
            value = curve(place)
        except (ArithmeticError, ValueError, TypeError, AssertionError, RuntimeError, IndexError):
            continue
        value = np.asarray(value).item() if np.size(value) == 1 else math.inf
        if _upper(value) < math.inf:
            found.append((place, _upper(value)))
    return found


def _profile(points: list[tuple[float, float]], adjacency: Adjacency) -> Guarantee | None:
    """The profile through (delta, epsilon). Each epsilon keeps its smallest delta."""
    smallest: dict[float, float] = {}
    for delta, epsilon in points:
        raised = epsilon * _SOLVED
        smallest[raised] = min(delta, smallest.get(raised, 1.0))
    epsilons = sorted(smallest)
    return from_profile(epsilons, [smallest[e] for e in epsilons], adjacency=adjacency) if epsilons else None
