"""Privacy random variables and accountants of prv-accountant: the mechanisms that they stand for, accounted again.

Its discretised random variables are estimates with an error of their own, so they are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable

from dpselect.errors import AdjacencyError, ArgumentError, integer, number
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.composition import compose_counted
from dpselect.privacy.foreign.numbers import gaussian_dp
from dpselect.privacy.foreign_kinds import foreign_reader, own_adjacency
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.mechanisms.laplace import laplace
from dpselect.privacy.mechanisms.poisson_samples import dp_sgd
from dpselect.privacy.mechanisms.pure import approximate_dp, pure_dp

__all__ = ["read_prv_accountant"]


@runtime_checkable
class _VariableAccountant(Protocol):
    prvs: Sequence[Any]
    max_self_compositions: Sequence[int]


def _laplace(prv: Any, adjacency: Adjacency) -> Guarantee:
    epsilon = number("mu", prv.mu, above=0.0, rounding="up")
    return laplace(scale=math.nextafter(1.0 / epsilon, 0.0), adjacency=adjacency)


def _sampled(prv: Any, adjacency: Adjacency) -> Guarantee:
    if adjacency is not Adjacency.ADD_OR_REMOVE_ONE:
        raise AdjacencyError("a PoissonSubsampledGaussianMechanism is the loss of a row that is added or removed")
    noise, rate = number("sigma", prv.sigma, above=0.0), number("p", prv.p, above=0.0, at_most=1.0)
    return dp_sgd(noise_multiplier=noise, sampling_rate=rate, steps=1, adjacency=adjacency)


def _approximate(prv: Any, adjacency: Adjacency) -> Guarantee:
    return approximate_dp(epsilon=prv.pure_dp.eps, delta=prv.delta, adjacency=adjacency)


_KINDS: Final[Mapping[str, Callable[[Any, Adjacency], Guarantee]]] = {
    "GaussianMechanism": lambda prv, adjacency: gaussian_dp(prv.mu, adjacency),
    "LaplaceMechanism": _laplace,
    "PoissonSubsampledGaussianMechanism": _sampled,
    "PureDPMechanism": lambda prv, adjacency: pure_dp(epsilon=prv.eps, adjacency=adjacency),
    "ApproximateDPMechanism": _approximate,
}
"""By the name of the random variable's class."""


@foreign_reader("prv_accountant", takes="a PrivacyRandomVariable or a PRVAccountant of prv-accountant")
def read_prv_accountant(thing: Any, adjacency: Adjacency | None) -> Guarantee | None:
    """Read a random variable, or the composition that an accountant was made for: each as often as at most."""
    relation = own_adjacency("the random variable", None, adjacency)
    if isinstance(thing, _VariableAccountant):
        counts = [integer("max_self_compositions", count, at_least=1) for count in thing.max_self_compositions]
        parts = [(_one(prv, relation), count) for prv, count in zip(thing.prvs, counts, strict=True)]
        return compose_counted([_steps(*part) for part in parts])
    return _one(thing, relation)


def _one(prv: Any, adjacency: Adjacency) -> Guarantee:
    kind = type(prv).__name__
    if kind not in _KINDS:
        raise ArgumentError(f"{kind} of prv-accountant names no mechanism that is known here: {', '.join(_KINDS)}")
    return _KINDS[kind](prv, adjacency)


def _steps(one: Guarantee, count: int) -> tuple[Guarantee, int]:
    """The steps of DP-SGD are one guarantee."""
    if count == 1 or one.terms.get("mechanism") != "dp-sgd":
        return one, count
    settings = {name: one.terms[name] for name in ("noise_multiplier", "sampling_rate")}
    return dp_sgd(**settings, steps=count, adjacency=one.adjacency), 1
