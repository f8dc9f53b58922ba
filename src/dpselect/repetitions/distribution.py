"""The number of runs K: the base of all its distributions.

One object both draws K and prices it, so the search that runs and the bound that is promised cannot disagree. Every
law means K independent runs, with replacement, of one mixture that does not depend on the data. Write
phi(s) = E[s^K] for the probability generating function. A best-of-K search turns the probability F of "at most this
good" for one run into phi(F) for the winner (Papernot and Steinke 2022, proof of Lemma 7).

The delicate end is F near 1. So derivatives take the complement v = 1 - F, and increments of phi take the complement
and the mass of the step, never two values to subtract.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeVar

import numpy as np

from dpselect.caching import CopiedByFields
from dpselect.capabilities import field_values
from dpselect.errors import ArgumentError, integer, number
from dpselect.numerics.search import first_true
from dpselect.randomness import RandomSource, resolve
from dpselect.registry import Registry
from dpselect.repetitions.one_run import FloatArray, OneRun, RenyiForm

__all__ = ["LAWS", "Family", "FloatArray", "Repetitions", "repetition_law"]

Value = TypeVar("Value", float, FloatArray)
Law = TypeVar("Law", bound="type[Repetitions]")

LAWS: Final = Registry[type[Any]]("law", room=__package__ or "")
"""The classes of all laws, by the names that descriptions, study files and the command line write."""

LONG_WALK = 1 << 20
"""Steps of sequential inversion after which a law may switch to its own exact way of drawing the tail."""


def repetition_law(name: str) -> Callable[[Law], Law]:
    """Return a decorator that registers a distribution of K, from this room or from outside.

    `law_named` and `describe` then know the name.

    Args:
        name: the name of the distribution, public.

    Returns:
        The decorator. It sets `law_name` and returns the class, and raises `ArgumentError` if another class has this
        name.
    """

    def named(law: Law) -> Law:
        law.law_name = name
        LAWS.register(name)(law)
        return law

    return named


class _LawType(ABCMeta):
    """The type of the laws: its error says how to build a law that has no `with_mean`."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> NoReturn:
            said = f"type object {cls.__name__!r} has no attribute {name!r}"
            if name == "with_mean":
                shown = ", ".join(f"{each}=..." for each in cls.parameters())
                said = f"{cls.__name__} has no with_mean: write {cls.__name__}({shown}), whose mean is in .mean"
            raise AttributeError(said, name=name, obj=cls)


class Repetitions(CopiedByFields, metaclass=_LawType):
    """The distribution of K, the number of independent runs of a private selection.

    It is immutable, hashable and equal by value. A new distribution is a new file: a frozen, keyword-only dataclass
    under `repetition_law("its-name")`. It gives the abstract methods below, and anything that it knows in closed form.
    Methods with a leading underscore take and return arrays of doubles and need not check their input. A class method
    `with_mean` builds the distribution from `mean` in place of its parameter `gamma`. Nothing else has to be edited.

    Attributes:
        law_name: the name under which the class is registered, as `repetition_law` sets it.
        convex_log_derivative: whether log phi'(1 - v) is known to be convex in v. Suprema over v then need fewer cells.
            False unless a class says so.
    """

    law_name: ClassVar[str]

    convex_log_derivative: ClassVar[bool] = False
    """Whether log phi'(1 - v) is known to be convex in v: suprema over v then need fewer cells."""

    # ---- what a law must give -----------------------------------------------------------------------------------

    if TYPE_CHECKING:
        # At run time these stay undeclared, because a dataclass field of the same name could not override a property.

        @property
        @abstractmethod
        def mean(self) -> float:
            """E[K], the expected number of runs."""

        @property
        @abstractmethod
        def minimum(self) -> int:
            """The smallest possible K, 0 if it may happen that nothing runs."""

        @property
        @abstractmethod
        def limit(self) -> int | None:
            """The largest possible K, or None when there is none."""

    @abstractmethod
    def _log_pmf(self, k: FloatArray) -> FloatArray:
        """log P(K = k) at whole k of either sign."""

    @abstractmethod
    def _survival(self, k: FloatArray) -> FloatArray:
        """P(K > k) at whole k >= 0, without subtracting from one."""

    @abstractmethod
    def _size_biased_survival(self, m: FloatArray) -> FloatArray:
        """E[K 1{K > m}] / E[K] at whole m >= 0."""

    @abstractmethod
    def _pgf(self, s: FloatArray) -> FloatArray:
        """phi(s) for s >= 0, infinite if the series diverges."""

    @abstractmethod
    def _increment(self, complement: FloatArray, mass: FloatArray) -> FloatArray:
        """phi(1 - complement) - phi(1 - complement - mass)."""

    @abstractmethod
    def _log_derivative(self, v: FloatArray) -> FloatArray:
        """log phi'(1 - v)."""

    @abstractmethod
    def _second_derivative(self, v: FloatArray) -> FloatArray:
        """phi''(1 - v)."""

    @abstractmethod
    def _third_derivative(self, v: FloatArray) -> FloatArray:
        """phi'''(1 - v)."""

    @abstractmethod
    def expected_quantile(self) -> float:
        """E[K / (K + 1)]: the expected quantile of the winner among i.i.d. scores, 0 when K = 0."""

    @abstractmethod
    def _tilted(self, s: float) -> Repetitions:
        """The law with generating function phi(s x) / phi(s), for 0 < s < 1."""

    @abstractmethod
    def _exact_pmf(self) -> tuple[int, Iterator[int]]:
        """`bits`, then integers near 2**bits P(K = k) for k = 0, 1, 2, ...

        With p = P(K = minimum), `bits` is at least 320 - log2(p). Each of the first 2**20 integers is within
        2**-300 max(p, P(K = k)) of the truth, so the weights stay good when K is drawn given K <= limit.
        """

    # ---- what a law may know in closed form -----------------------------------------------------------------------

    def pure_shift(self, epsilon: float) -> float | None:  # noqa: ARG002
        """The largest log phi'(1 - v) / phi'(1 - v') that an (epsilon, 0)-private run allows. None: search for it.

        v and v' are the probabilities of one event under neighbours: v' <= min(exp(epsilon) v, 1 - exp(-epsilon)
        (1 - v)). With epsilon added it is the pure privacy of the best of K runs.
        """
        return None

    def renyi_forms(self, run: OneRun) -> tuple[RenyiForm, ...]:  # noqa: ARG002
        """Bounds on the Renyi divergence of the best of K runs, of the kind of Lemma 7, without the outcome K = 0."""
        return ()

    def first_as_best(self) -> Repetitions | None:
        """A law of K whose best of K runs costs, purely, what the first acceptable of this many tries does, if any."""
        return None

    def negative_binomial_shape(self) -> float | None:
        """The shape eta of a truncated negative binomial law, inf for its limit, the Poisson law. None for other laws.

        Papernot and Steinke (2022) price these, and the mean and the shape tell all about them.

        >>> from dpselect.repetitions import Geometric
        >>> Geometric(gamma=0.1).negative_binomial_shape()
        1.0
        """
        return None

    @classmethod
    def families(cls) -> Sequence[Family]:
        """Laws of this shape that a planner weighs. None unless a law says which."""
        return ()

    # ---- what follows -------------------------------------------------------------------------------------------

    @property
    def zero_probability(self) -> float:
        """P(K = 0), the probability that nothing runs."""
        return float(self.pmf(0.0)) if self.minimum == 0 else 0.0

    def pmf(self, k: Value) -> Value:
        """P(K = k) for an integer k or an array of them, 0 outside the support.

        >>> from dpselect.repetitions import Geometric
        >>> round(Geometric(gamma=0.1).pmf(2), 12)
        0.09
        """
        steps = _whole("k", k)
        with np.errstate(over="ignore", under="ignore"):
            found = np.exp(self._log_pmf(np.where(np.isinf(steps), -1.0, steps)))
            return _like(k, found)

    def survival(self, k: Value) -> Value:
        """P(K > k) for an integer k, to full relative accuracy in the tail. It is 1 for k < 0."""
        steps = _whole("k", k)
        with np.errstate(under="ignore"):
            return _like(k, np.where(steps < self.minimum, 1.0, self._survival(np.maximum(steps, 0.0))))

    def size_biased_survival(self, m: Value) -> Value:
        """E[K 1{K > m}] / E[K] for whole m: the `t` of Papernot and Steinke (2022), Lemma 22, for K redrawn until <= m.

        >>> from dpselect.repetitions import Geometric
        >>> round(Geometric.with_mean(mean=10).size_biased_survival(50), 7)
        0.0309227
        """
        steps = _whole("m", m)
        with np.errstate(under="ignore"):
            return _like(m, np.where(steps < self.minimum, 1.0, self._size_biased_survival(np.maximum(steps, 0.0))))

    def pgf(self, s: Value) -> Value:
        """phi(s) = E[s^K] for s >= 0. Beyond s = 1 it is the moment generating function at log s, inf if it diverges.

        >>> from dpselect.repetitions import Poisson
        >>> round(Poisson(mean=10).pgf(0.5), 10)
        0.006737947
        """
        at = _doubles("s", s)
        if not np.all(at >= 0.0):
            raise ArgumentError("s must be at least 0")
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            return _like(s, self._pgf(at))

    def increment(self, *, complement_after: Value, mass: Value) -> Value:
        """phi(F + mass) - phi(F), where complement_after = 1 - (F + mass), with no cancellation.

        Arrays broadcast. Relative accuracy is about 1e-13 as far as complement_after itself is known to it. A
        complement outside [0, 1] by rounding is moved to the end.

        >>> from dpselect.repetitions import Poisson
        >>> Poisson(mean=10).increment(complement_after=0.0, mass=1e-20)
        1e-19
        """
        before = np.clip(_doubles("complement_after", complement_after), 0.0, 1.0)
        step = np.clip(_doubles("mass", mass), 0.0, 1.0)
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            return _like(complement_after, self._increment(*np.broadcast_arrays(before, step)))

    def success_probability(self, p: Value) -> Value:
        """1 - phi(1 - p): the probability that at least one of K runs lands in an event of probability p.

        It is also the failure mass of a best-of-K search whose runs each fail with probability p
        (Papernot and Steinke 2022, Lemma 20), at most p E[K].

        >>> from dpselect.repetitions import Geometric
        >>> round(Geometric.with_mean(mean=10).success_probability(1e-3), 10)
        0.0099108028
        """
        at = _doubles("p", p)
        if not np.all((at >= 0.0) & (at <= 1.0)):
            raise ArgumentError("p must be between 0 and 1")
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            return _like(p, self._increment(np.zeros_like(at), at))

    def log_derivative(self, v: Value) -> Value:
        """log phi'(1 - v) for v in [0, 1]: log E[K] at v = 0, non-increasing, -inf where phi' is 0."""
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            return _like(v, self._log_derivative(_unit(v)))

    def second_derivative(self, v: Value) -> Value:
        """phi''(1 - v) for v in [0, 1]: E[K (K - 1)] at v = 0, non-increasing."""
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            return _like(v, self._second_derivative(_unit(v)))

    def third_derivative(self, v: Value) -> Value:
        """phi'''(1 - v) for v in [0, 1]: E[K (K - 1) (K - 2)] at v = 0, non-increasing."""
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            return _like(v, self._third_derivative(_unit(v)))

    def quantile(self, probability: float) -> int:
        """The smallest k with P(K <= k) >= probability.

        A tail that misses the mark by rounding alone (1e-12 of itself) counts as reached. Raises `ArgumentError` for
        probability 1 when K has no limit.

        >>> from dpselect.repetitions import Geometric
        >>> [Geometric(gamma=0.1).quantile(p) for p in (0.5, 0.9, 0.99, 0.999)]
        [7, 22, 44, 66]
        """
        probability = number("probability", probability, at_least=0.0, at_most=1.0)
        if probability == 1.0:
            if self.limit is None:
                raise ArgumentError("probability must be below 1: this number of runs has no limit")
            return self.limit
        tail = (1.0 - probability) * (1.0 + 1e-12)
        return first_true(lambda k: self.survival(float(k)) <= tail, self.minimum, None, start=self.minimum)

    def tilted(self, s: float) -> Repetitions:
        """The law with generating function phi(s x) / phi(s), 0 < s <= 1 (Papernot and Steinke 2022, Lemma 20).

        With s = 1 - delta0 it is the law of K given that no run fell into its failure event of probability delta0.

        >>> from dpselect.repetitions import TruncatedNegativeBinomial
        >>> round(TruncatedNegativeBinomial(eta=0.5, gamma=0.0625).tilted(0.99).gamma, 12)
        0.071875
        """
        s = number("s", s, above=0.0, at_most=1.0)
        return self if s == 1.0 else self._tilted(s)

    def at_most(self, limit: int) -> Repetitions:
        """The law of K given K <= limit: K redrawn until it fits, never min(K, limit) (Papernot and Steinke 2022, E.1).

        Raises `ArgumentError` if no run is possible within the limit.

        >>> from dpselect.repetitions import Poisson
        >>> law = Poisson(mean=10).at_most(20)
        >>> law.limit, law.pmf(21)
        (20, 0.0)
        """
        limit = integer("limit", limit, at_least=1)
        if self.limit is not None and self.limit <= limit:
            return self
        conditioned: Repetitions = LAWS["at-most"](law=self, limit=limit)
        return conditioned

    def sample(self, random: RandomSource | None = None) -> int:
        """One draw of K. The total variation distance from the law is below 2**-190.

        Sequential inversion: a uniform integer of at least 320 bits against the cumulated exact weights, so the cost
        is about K multiplications of integers of that size. K is a secret: never publish it, or its running time.
        """
        source = resolve(random)
        while True:
            bits, weights = self._exact_pmf()
            drawn = source.bits(bits)
            reached = 0
            for k, weight in enumerate(weights):
                reached += weight
                if drawn < reached:
                    return k
                if k == LONG_WALK and (tail := self._sample_beyond(k, source)) is not None:
                    return tail
                if (1 << bits) - reached < 1 << (bits - 250):
                    break  # only what rounding lost is left: draw again

    def _sample_beyond(self, k: int, source: RandomSource) -> int | None:  # noqa: ARG002
        """One draw of K given K > k, for a law that can do better than walk on. None to walk on."""
        return None

    def describe(self) -> dict[str, Any]:
        """Return JSON-able values from which `from_description` builds the law again.

        >>> from dpselect.repetitions import Poisson
        >>> Poisson(mean=10).describe()
        {'law': 'poisson', 'mean': 10.0}
        """
        parameters = field_values(self, self.parameters())  # type: ignore[arg-type]
        if "law" in parameters:  # a law made from another one; "law" already names the law itself
            parameters["base_law"] = parameters.pop("law").describe()
        return {"law": self.law_name, **parameters}

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """The names of the law's parameters. `law` is among them if it is made from another law.

        >>> from dpselect.repetitions import BetaBinomial
        >>> BetaBinomial.parameters()
        ('trials', 'shape')
        """
        return tuple(field.name for field in fields(cls) if field.init)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Family:
    """Laws of one shape that differ in size. Utility and price grow with the size.

    `at(size)` is the law. The size is a mean (at least 1) or, for `whole` families, a hard limit. `saturates`: the
    expected quantile of the winner stays away from one at every size. `representative`: one of the few that are weighed
    if weighing is slow.
    """

    name: str
    at: Callable[[float], Repetitions]
    whole: bool = False
    saturates: bool = False
    representative: bool = False

    def under(self, max_runs: int | None) -> Family:
        """The same family with every law conditioned on the hard limit. The limited families are so already."""
        if max_runs is None or self.whole:
            return self
        return replace(self, name=f"{self.name}, at most {max_runs}", at=lambda size: self.at(size).at_most(max_runs))


def _like(given: Value, values: FloatArray) -> Value:
    return float(values) if np.ndim(given) == 0 and np.ndim(values) == 0 else values  # type: ignore[return-value]


def _doubles(name: str, value: Value) -> FloatArray:
    if np.ndim(value) == 0:
        return np.asarray(number(name, value, finite=False))
    return np.asarray(value, dtype=np.float64)


def _whole(name: str, value: Value) -> FloatArray:
    whole = _doubles(name, value)
    if not np.all(whole == np.floor(whole)):
        raise ArgumentError(f"{name} must be integers")
    return whole


def _unit(v: Value) -> FloatArray:
    at = np.asarray(v, dtype=np.float64)
    if at.size and not (at.min() >= 0.0 and at.max() <= 1.0):
        raise ArgumentError("v must be between 0 and 1")
    return at
