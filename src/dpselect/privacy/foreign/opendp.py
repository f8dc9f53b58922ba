"""Measurements of OpenDP on data sets: their privacy map at one row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from dpselect.errors import ArgumentError, number
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.foreign_kinds import ON_THE_CALLERS_WORD, RENYI_ORDERS, foreign_reader, own_adjacency
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.mechanisms.known_curves import from_profile, renyi_dp, zcdp
from dpselect.privacy.mechanisms.pure import approximate_dp, pure_dp

__all__ = ["read_opendp"]

_DELTAS: Final = tuple(np.logspace(-15.0, -0.5, 117).tolist())
_UNBOUNDED: Final = ("SymmetricDistance", "InsertDeleteDistance")
_BOUNDED: Final = ("ChangeOneDistance", "HammingDistance")


@runtime_checkable
class _MappedMeasurement(Protocol):
    input_metric: Any
    output_measure: Any

    def map(self, d_in: int) -> Any: ...


@foreign_reader("opendp", takes="a Measurement of OpenDP on data sets")
def read_opendp(thing: Any, adjacency: Adjacency | None) -> Guarantee | None:
    """Read the map of a measurement whose input metric counts rows."""
    if not isinstance(thing, _MappedMeasurement):
        return None
    relation, distance = _distance(str(thing.input_metric.type), adjacency)
    loss, measure = thing.map(distance), str(thing.output_measure.type)
    if measure not in _MEASURES:
        raise ArgumentError(f"output_measure {measure} of OpenDP is not read. Those that are: {', '.join(_MEASURES)}")
    found = _MEASURES[measure](loss, relation)
    return replace(
        found,
        theorem=f"privacy map of OpenDP, {ON_THE_CALLERS_WORD}; {found.theorem}",
        terms={"mechanism": "opendp", "measure": measure, "d_in": distance, "rests": ON_THE_CALLERS_WORD},
    )


def _distance(metric: str, asked: Adjacency | None) -> tuple[Adjacency, int]:
    """The adjacency, and how far neighbours are apart: a replaced row is one that is removed and one that is added."""
    if metric in _BOUNDED:
        return own_adjacency(f"a measurement with {metric}", Adjacency.REPLACE_ONE, asked), 1
    if metric in _UNBOUNDED:
        return asked or Adjacency.ADD_OR_REMOVE_ONE, 2 if asked is Adjacency.REPLACE_ONE else 1
    raise ArgumentError(
        f"input_metric {metric} does not count rows: chain the measurement to a transformation of a data set, or pass "
        "what its map gives for your sensitivity, such as {'rho': measurement.map(d_in)}"
    )


def _profile(curve: Any, adjacency: Adjacency) -> Guarantee:
    """Points of a profile at fixed deltas. Of equal epsilons the smallest delta counts."""
    smallest: dict[float, float] = {}
    for delta in reversed(_DELTAS):
        epsilon = number("epsilon of the profile", curve.epsilon(delta), at_least=0.0, finite=False, rounding="up")
        if epsilon < np.inf:
            smallest[epsilon] = delta
    if not smallest:
        raise ArgumentError("the measurement's privacy profile has no finite epsilon")
    epsilons = sorted(smallest)
    return from_profile(epsilons, [smallest[e] for e in epsilons], adjacency=adjacency)


def _renyi(curve: Callable[[float], float], adjacency: Adjacency) -> Guarantee:
    return renyi_dp(
        orders=RENYI_ORDERS,
        epsilons=[number("loss", curve(a), at_least=0.0, finite=False) for a in RENYI_ORDERS],
        adjacency=adjacency,
    )


def _approximate(pair: tuple[float, float], adjacency: Adjacency) -> Guarantee:
    epsilon, delta = pair
    return approximate_dp(epsilon=epsilon, delta=delta, adjacency=adjacency)


_MEASURES: Final[dict[str, Callable[[Any, Adjacency], Guarantee]]] = {
    "MaxDivergence": lambda loss, adjacency: pure_dp(epsilon=loss, adjacency=adjacency),
    "Approximate<MaxDivergence>": _approximate,
    "FixedSmoothedMaxDivergence": _approximate,
    "ZeroConcentratedDivergence": lambda loss, adjacency: zcdp(rho=loss, adjacency=adjacency),
    "SmoothedMaxDivergence": _profile,
    "RenyiDivergence": _renyi,
}
"""By the name of the measure. Maps round upwards."""
