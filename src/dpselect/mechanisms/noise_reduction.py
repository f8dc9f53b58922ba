"""Noise reduction: one answer, released less and less noisily, at the price of the last level alone.

Koufogiannis, Han, Pappas, "Gradual release of sensitive data under differential privacy" (2016), and Ligett, Neel,
Roth, Waggoner, Wu, "Accuracy first: selecting a differential privacy level for accuracy-constrained ERM" (2017). Proofs
of what is claimed here: docs/theory/noise-reduction.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.errors import ArgumentError, BudgetError, expect, number
from dpselect.mechanisms.grid import round_to_grid
from dpselect.mechanisms.mechanism import Mechanism, Parsed, real
from dpselect.mechanisms.scores import as_vector
from dpselect.mechanisms.sparse_vector import SparseVector
from dpselect.mechanisms.sparse_vector_prices import sparse_vector_guarantee
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, OutputGuarantee, Release, Spender
from dpselect.privacy.boundary import run_confined
from dpselect.privacy.output.amounts import charged_amount, charged_price, epsilon_used
from dpselect.privacy.paying import PaidSession, Payment
from dpselect.privacy.promises import output_promise
from dpselect.randomness import RandomSource, resolve
from dpselect.randomness.integers import discrete_laplace, discrete_laplace_array
from dpselect.randomness.lazy import Enclosure, LazyUniform, exponential_enclosure
from dpselect.randomness.session import answers

__all__ = ["GradualRelease", "LaplaceReduction", "NoiseReduction", "ReleaseUntilAbove", "read_levels"]

Levels = Callable[[RandomSource], Callable[[int], Array]]
"""From a source to the levels, by their place."""

_BULK = 2**20
"""The largest scale that the bulk sampler takes."""
_WIDEST = 2**50
"""The largest scale: noise then stays far inside 64 bits."""


class GradualRelease(PaidSession):
    """A session that releases the next, less noisy level of one answer each time it is asked.

    `LaplaceReduction` and `BrownianReduction` make it: call their `open`. With a `spender` it is paid as `PaidSession`
    says: when it is made, and settled by `close` at the levels released.

    The output of the session is `released`, and its cell is how many levels that holds. `guarantee` prices it. Your
    decision to ask again may depend on what was released, on public data and on public coins. It may depend on nothing
    else that is private: a test on private data has a price of its own (`ReleaseUntilAbove`). Between two levels no
    other mechanism's output on the same data may steer the session. Its guarantee is interactive, so that a ledger
    keeps others out.

    The object holds secrets: it cannot be copied or pickled. It refuses to answer in a forked child, where two sessions
    would each report a price of their own.

    Args:
        level: private: `level(place)` gives the level at this place, most noisy first, from 0. You must ensure that the
            same place always gives the same level.
        guarantee: the price by the number of levels released, as a table that starts at 0 levels. It says how many
            levels there are.
        replayable: whether the noise comes from a source that the caller chose.
        payment: the open reservation that `close` settles. None, the default, means that nothing is charged.

    Raises:
        PromiseError: if `guarantee` is not an `OutputGuarantee`.
    """

    def __init__(
        self,
        level: Callable[[int], Array],
        guarantee: OutputGuarantee,
        *,
        replayable: bool,
        payment: Payment | None = None,
    ) -> None:
        super().__init__()
        guarantee = output_promise("guarantee", guarantee)
        self._pay(payment)
        self._level = level
        self._guarantee = guarantee
        self._replayable = replayable
        self._released: tuple[Array, ...] = ()

    @property
    def guarantee(self) -> OutputGuarantee:
        """The price by the number of levels released."""
        return self._guarantee

    @property
    def released(self) -> tuple[Array, ...]:
        """The levels released so far, most noisy first. A ledger's charge is settled with them."""
        return self._released

    @property
    def replayable(self) -> bool:
        """Whether the noise came from a caller's own source."""
        return self._replayable

    @property
    def exhausted(self) -> bool:
        """Whether all levels are released."""
        return len(self._released) + 1 == len(self._guarantee.table or ())

    @answers
    def release(self) -> Array:
        """The next level. Raises `BudgetError` when there is none."""
        self._refuse_when_closed()
        if self.exhausted:
            raise BudgetError("all levels are released; open and charge a new session")
        level = self._level(len(self._released))
        level.setflags(write=False)
        self._released = (*self._released, level)
        return level

    def until(self, stop: Callable[[Array], bool]) -> Release:
        """Release level after level until `stop(level)` is true or the levels run out. The value is all of them.

        A session that is paid is closed, at the levels released. If `stop` raises, it stays open and charged. `stop` is
        a public rule: it uses the level, and no data (you must ensure this). The session must be fresh.

        >>> from dpselect.randomness import keyed_source
        >>> levels = LaplaceReduction(epsilons=[0.01, 0.1, 1.0], sensitivity=1)
        >>> release = levels.open(900, random=keyed_source(3)).until(lambda count: count > 500)
        >>> len(release.value), release.realised.price
        (1, 0.01)
        """
        if self._released:
            raise ArgumentError("session must be fresh: it has released levels already")
        while not self.exhausted:
            if stop(self.release()):
                break
        receipt = self.close()
        return Release(
            value=self._released,
            guarantee=self._guarantee.worst(),
            receipt=receipt,
            replayable=self._replayable,
            realised=self._guarantee.observed(self._released),
        )

    def _outcome(self) -> tuple[Array, ...]:
        return self._released

    def __repr__(self) -> str:
        return f"<GradualRelease: {len(self._released)} levels released>"


class NoiseReduction(Parsed, ABC):
    """Levels of noise on one answer, configured without data: `guarantee` prices them, `open` gives the session."""

    @property
    @abstractmethod
    def guarantee(self) -> OutputGuarantee:
        """The price by the number of levels released, from public parameters alone."""

    def open(
        self,
        value: ArrayLike,
        *,
        spender: Spender | None = None,
        label: str = "gradual release",
        random: RandomSource | None = None,
    ) -> GradualRelease:
        """A session that releases `value`, a number or an array. Only the last level that it releases is paid.

        Its shape, and whether its type is whole, must not depend on the data. An entry that is not a finite number
        counts as zero. The price is paid by a `spender` before the value is read. `label` is its name in the record.
        """
        if not isinstance(value, int) and np.asarray(value).dtype.kind not in "fiubO":
            raise ArgumentError("value must be an array of real numbers")
        levels, guarantee, source = self._levels(value), self.guarantee, resolve(random)
        payment = Payment.open(guarantee, spender=spender, label=label)
        return GradualRelease(levels(source), guarantee, replayable=source.replayable, payment=payment)

    @abstractmethod
    def _levels(self, value: ArrayLike) -> Levels:
        """Arguments are checked now, and the data are looked at when it is called."""


@dataclass(frozen=True, kw_only=True)
class LaplaceReduction(NoiseReduction):
    """Laplace noise at growing epsilons on one answer. Only the last level released is paid.

    Level i is value + noise of scale sensitivity/epsilons[i], and the levels are correlated so that all noisier ones
    are post-processings of the least noisy one released.

    Args:
        epsilons: positive, strictly increasing.
        sensitivity: how far the value moves between neighbours at most, in the sum of absolute differences (the caller
            must ensure it; what is not finite counts as zero, and what is beyond 2**52 granularities as that).
        granularity: a power of two; the noise is an integer of these, and so is what is released. An array of
            integers with a granularity of at most 1 is on the grid already; any other value is rounded to it,
            which is charged to the sensitivity (at most one granularity for each entry), so choose it fine.
        adjacency: which data sets are neighbours.

    Exactness. In units of the granularity the noise of level i has P(x) proportional to exp(-a_i |x|) with a_i =
    epsilons[i]/steps. The step from a level to the noisier one before it keeps the noise with probability
    (sinh(a_i/2)/sinh(a_(i+1)/2))^2 and else adds fresh noise of the noisier level. Both are drawn exactly, by rational
    arithmetic. (The familiar (epsilon_i/epsilon_(i+1))^2 is right for real-valued noise only.)

    Raises `ArgumentError` naming the argument. `open` raises it also if a level's scale is beyond 2**50 granularities
    or below 2**-60.

    >>> from dpselect.randomness import keyed_source
    >>> levels = LaplaceReduction(epsilons=[0.1, 1.0], sensitivity=1)
    >>> dict(levels.guarantee.epsilons)
    {0: 0.0, 1: 0.1, 2: 1.0}
    >>> session = levels.open(90, random=keyed_source(1))
    >>> _ = session.release()
    >>> session.guarantee.observed(session.released).epsilon(delta=0)
    0.1
    """

    epsilons: Sequence[SupportsFloat]
    sensitivity: SupportsFloat
    granularity: SupportsFloat = 1.0
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        super().__post_init__()
        self._parsed(
            epsilons=read_levels("epsilons", self.epsilons, above=0.0),
            sensitivity=number("sensitivity", self.sensitivity, above=0.0, rounding="up"),
        )
        round_to_grid(0.0, number("granularity", self.granularity, above=0.0))  # a power of two

    @property
    def guarantee(self) -> OutputGuarantee:
        """The price of stopping after i levels is epsilons[i - 1], and 0 before the first. Pure.

        After Ligett et al. 2017. Source: docs/theory/noise-reduction.md, Theorem 2 (for integer noise).
        """
        prices: dict[Hashable, float] = dict(enumerate([0.0, *map(float, self.epsilons)]))
        return OutputGuarantee(cell=len, epsilons=prices, adjacency=self.adjacency, interactive=True)

    def _levels(self, value: ArrayLike) -> Levels:
        # an integer of any size is whole
        whole = isinstance(value, int) or np.asarray(value).dtype.kind in "iub"
        array, unit = as_vector("value", value), float(self.granularity)
        steps = self._sensitivity_in_steps(array.size, whole=whole)
        rates = [epsilon_used(float(epsilon)) / steps for epsilon in self.epsilons]
        if 1 / rates[0] > _WIDEST or rates[-1] > 2**60:
            raise ArgumentError("granularity is too fine or too coarse for these epsilons and this sensitivity")

        def levels(random: RandomSource) -> Callable[[int], Array]:
            on_grid = (round_to_grid(array, unit) / unit).astype(np.int64)  # exact: a power of two
            chain = _chain(on_grid.reshape(-1), rates, random)
            return lambda place: chain[place].astype(np.float64).reshape(array.shape) * unit

        return levels

    def _sensitivity_in_steps(self, dimension: int, *, whole: bool) -> int:
        """How far the value moves on the grid at most, an integer of steps in the sum of absolute differences.

        Rounding x to the grid and y: the difference is an integer below |x - y|/granularity + 1.
        """
        unit = float(self.granularity)
        in_steps = Fraction(float(self.sensitivity)) / Fraction(unit)
        if whole and unit <= 1.0:
            return max(math.floor(in_steps), 1)
        return math.ceil(in_steps) + max(dimension, 1) - 1


def read_levels(
    name: str, levels: Sequence[SupportsFloat], *, decreasing: bool = False, **limits: Any
) -> tuple[float, ...]:
    """Parse at least one level, each within limits as of `number`, in strict order."""
    parsed = tuple(number(name, level, **limits) for level in levels)
    if not parsed:
        raise ArgumentError(f"{name} must hold at least one level")
    if any(not low < high for low, high in pairwise(parsed[::-1] if decreasing else parsed)):
        raise ArgumentError(f"{name} must be strictly {'decreasing' if decreasing else 'increasing'}")
    return parsed


def _chain(value: NDArray[np.int64], rates: Sequence[Fraction], random: RandomSource) -> list[NDArray[np.int64]]:
    """All levels on the grid, most noisy first: the least noisy is drawn first, the others from it."""
    levels = [value + _noise(rates[-1], value.size, random)]
    for coarse, fine in zip(rates[-2::-1], rates[:0:-1], strict=True):
        moved = np.flatnonzero(~_stays(coarse, fine, value.size, random))
        noisier = levels[-1].copy()
        noisier[moved] += _noise(coarse, moved.size, random)
        levels.append(noisier)
    return levels[::-1]


def _noise(rate: Fraction, size: int, random: RandomSource) -> NDArray[np.int64]:
    scale = 1 / rate
    if scale <= _BULK:
        return discrete_laplace_array(scale, size, random)
    return np.array([discrete_laplace(scale, random) for _ in range(size)], dtype=np.int64)


def _stays(coarse: Fraction, fine: Fraction, size: int, random: RandomSource) -> NDArray[np.bool_]:
    """Coins of probability (sinh(coarse/2) / sinh(fine/2))**2, exact: float64 decides all but close calls."""
    probability = stay_probability(coarse, fine)
    words = random.words(size)
    low, high = (float(bound) for bound in probability(64))
    uniform = words.astype(np.float64) * 2.0**-64
    stays = uniform < low - 2.0**-40
    for place in np.flatnonzero((uniform <= high + 2.0**-40) & ~stays):
        stays[place] = LazyUniform(random, int(words[place]), 64).below(probability)
    return stays


def stay_probability(coarse: Fraction, fine: Fraction) -> Enclosure:
    """(sinh(coarse/2) / sinh(fine/2))**2 for 0 < coarse < fine: how often the noisier level equals the other one.

    It equals exp(-(fine - coarse)) ((1 - exp(-coarse)) / (1 - exp(-fine)))**2. Source: docs/theory/noise-reduction.md,
    Theorem 1.

    >>> low, high = stay_probability(Fraction(1), Fraction(2))(60)
    >>> float(low), high - low < Fraction(1, 2**60)
    (0.196611933241481..., True)
    """

    def enclosure(bits: int) -> tuple[Fraction, Fraction]:
        # 1 - exp(-coarse) is about coarse when that is small: relative accuracy costs its leading zeros, squared
        more = bits + 8 + 4 * math.ceil(1 / coarse).bit_length()
        gap = exponential_enclosure(fine - coarse, more)
        ours, theirs = exponential_enclosure(coarse, more), exponential_enclosure(fine, more)
        low = gap[0] * ((1 - ours[1]) / (1 - theirs[0])) ** 2
        high = gap[1] * ((1 - ours[0]) / (1 - theirs[1])) ** 2
        return low, min(high, Fraction(1))

    return enclosure


@dataclass(frozen=True, kw_only=True)
class ReleaseUntilAbove(Mechanism):
    """Release level after level until a private test finds one good enough.

    The value of the release is (levels, success). A call takes the private value and `query(level)`, which may use the
    private data, and gives a number for every level. It may count the correct predictions of a model on held-out rows,
    say. The numbers go through one sparse vector, which is charged on top. A query that raises counts as -inf, and its
    message is lost.

    Args:
        reduction: the levels and their price, a `LaplaceReduction` or a `BrownianReduction`.
        threshold: public: what the noisy query must reach, in the unit of the query. Infinities are allowed.
        epsilon_threshold: the price of the test's noise on the threshold, above 0.
        epsilon_queries: the price of success, above 0.
        sensitivity: how far the query moves between neighbours at most, for every level, in [2**-300, 2**300]. The
            default is 1. You must ensure this.

    Raises:
        ArgumentError: for a number out of range.
        TypeError: if `reduction` is not a `NoiseReduction`.

    >>> from dpselect.randomness import keyed_source
    >>> levels = LaplaceReduction(epsilons=[0.01, 0.1, 1.0], sensitivity=1)
    >>> until = ReleaseUntilAbove(reduction=levels, threshold=900, epsilon_threshold=0.5, epsilon_queries=0.5)
    >>> release = until(900, lambda count: 1000 - abs(count - 900), random=keyed_source(4))
    >>> release.value[1], release.realised.price == until.guarantee.price((len(release.value[0]), 1))
    (True, True)
    """

    reduction: NoiseReduction
    threshold: float = field(metadata=real(finite=False))
    epsilon_threshold: float = field(metadata=real(above=0.0, rounding="down"))
    epsilon_queries: float = field(metadata=real(above=0.0, rounding="down"))
    sensitivity: float = field(default=1.0, metadata=real(at_least=2.0**-300, at_most=2.0**300, rounding="up"))

    def __post_init__(self) -> None:
        expect("reduction", self.reduction, NoiseReduction)
        super().__post_init__()

    @property
    def guarantee(self) -> OutputGuarantee:
        """The price of the levels, and of the test by whether it succeeded.

        Success at level i costs price(i) + epsilon_threshold + epsilon_queries. All levels without success cost
        price(last) + epsilon_threshold. Delta stays. Source: docs/theory/noise-reduction.md, Theorem 4 (Ligett et al.
        2017, for Laplace levels and another test). Rounded up.

        >>> levels = LaplaceReduction(epsilons=[0.25, 1.0], sensitivity=1)
        >>> until = ReleaseUntilAbove(reduction=levels, threshold=0, epsilon_threshold=0.5, epsilon_queries=1.0)
        >>> dict(until.guarantee.epsilons)
        {(1, 1): 1.75, (2, 1): 2.5, (2, 0): 1.5}
        """
        levels = self.reduction.guarantee
        test = sparse_vector_guarantee(
            epsilon_threshold=self.epsilon_threshold, epsilon_queries=self.epsilon_queries, max_positives=1
        )
        last = len(levels.table or ()) - 1
        cells = [*((level, 1) for level in range(1, last + 1)), (last, 0)]
        return OutputGuarantee(
            cell=_levels_and_success,
            epsilons={cell: _added(levels.price(cell[0]), test.price(cell[1])) for cell in cells},
            delta=levels.delta,
            adjacency=levels.adjacency,
        )

    def prepared(
        self, value: ArrayLike, query: Callable[[Array], SupportsFloat]
    ) -> Callable[[RandomSource], tuple[tuple[Array, ...], bool]]:
        """The levels up to the first that passes, and whether one did."""
        if not callable(query):
            raise TypeError("query must be callable: query(level) -> number")

        def run(random: RandomSource) -> tuple[tuple[Array, ...], bool]:
            session = self.reduction.open(value, random=random)
            test = SparseVector(
                epsilon_threshold=self.epsilon_threshold,
                epsilon_queries=self.epsilon_queries,
                max_positives=1,
                sensitivity=self.sensitivity,
                adjacency=session.guarantee.adjacency,
                random=random,
            )
            while not (session.exhausted or test.halted):
                asked = partial(query, session.release())
                test.above(run_confined(lambda: float(asked()), -math.inf), self.threshold)  # noqa: B023 - at once
            return session.released, test.halted

        return run


def _added(first: float, second: float) -> float:
    return charged_price(charged_amount("epsilons", first) + charged_amount("epsilons", second))


def _levels_and_success(output: Any) -> tuple[int, int]:
    return len(output[0]), int(output[1])
