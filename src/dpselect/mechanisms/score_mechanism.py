"""The base class of mechanisms on score vectors: their parameters and the rate that scores are weighed at."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from numpy.typing import ArrayLike

from dpselect.caching import CopiedByFields
from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError, flag
from dpselect.mechanisms.mechanism import Mechanism, real
from dpselect.mechanisms.scores import ScoreChunks, Scores, declared_scores
from dpselect.privacy import Adjacency, Guarantee, pure_dp
from dpselect.privacy.below import ClosedFormLowerProfile
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.privacy.profile import LaplaceProfile
from dpselect.randomness import RandomSource

__all__ = ["DOWN", "Method", "ScoreMechanism", "check_method", "flipping_guarantee"]

Method = Literal["exact", "float"]
DOWN = 1.0 - 1e-9
"""What an epsilon is multiplied by where a mechanism must be seen to attain a profile."""


@dataclass(frozen=True, kw_only=True)
class ScoreMechanism(CopiedByFields, Mechanism):
    """Parameters that are fixed before the data is seen.

    Attributes:
        sensitivity: how far one score moves between neighbouring data sets at most (you must ensure this, for the
            scores as they are handed over: rounding in their computation counts).
        epsilon: the price.
        monotonic: whether between neighbours all scores move in the same direction (adding a row never lowers a
            count, say), which halves the noise. You must ensure this; it is rarely true under replace-one.
        adjacency: which data sets are neighbours.

    Raises `ArgumentError` unless sensitivity and epsilon are in [2**-300, 2**300].
    """

    sensitivity: float = field(metadata=real(at_least=2.0**-300, at_most=2.0**300, rounding="up"))
    epsilon: float = field(metadata=real(at_least=2.0**-300, at_most=2.0**300, rounding="down"))
    monotonic: bool = field(default=False, metadata={"parse": flag})
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    @cached_property
    def rate(self) -> Fraction:
        """epsilon / (2 sensitivity), or epsilon / sensitivity for monotonic scores, exactly."""
        return epsilon_used(self.epsilon) / Fraction(self.sensitivity) / (1 if self.monotonic else 2)

    def prepared(self, scores: ArrayLike | ScoreChunks) -> Callable[[RandomSource], Any]:
        """The choice among candidates with these scores."""
        read = declared_scores(scores, self._check_count)
        return lambda random: self._chosen(read(), random)

    @abstractmethod
    def _chosen(self, scores: Scores, random: RandomSource) -> Any:
        """The draw."""

    def _check_count(self, count: int) -> None:
        """Raise `ArgumentError` for a number of candidates that does not fit the parameters."""

    def terms(self, name: str) -> dict[str, float | bool | str]:
        """A JSON-able description."""
        return {
            "mechanism": name,
            "sensitivity": self.sensitivity,
            "epsilon": self.epsilon,
            "monotonic": self.monotonic,
        }


def flipping_guarantee(mechanism: ScoreMechanism, name: str, theorem: str) -> Guarantee:
    """Pure epsilon. Two candidates attain the profile of Laplace noise, so hardly anything better is to be had."""
    pure = pure_dp(epsilon=mechanism.epsilon, adjacency=mechanism.adjacency)
    lower = ClosedFormLowerProfile(LaplaceProfile(mechanism.epsilon * DOWN))
    return replace(pure, theorem=theorem, terms=mechanism.terms(name), lower_profile=lower)


def check_method(method: str) -> None:
    """Raise `ArgumentError` unless it is "exact" or "float"."""
    if method not in ("exact", "float"):
        said = f"method must be 'exact' or 'float', got {method!r}"
        raise ArgumentError(said + write_one_of("method", method, ("exact", "float")))
