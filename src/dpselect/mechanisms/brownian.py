"""The Brownian mechanism: Gaussian noise reduced level by level, priced at the last level with one delta.

Whitehouse, Ramdas, Wu, Rogers, "Brownian noise reduction: maximizing privacy subject to accuracy constraints" (2022).
Proofs of what is claimed here: docs/theory/noise-reduction.md.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from dpselect.errors import ArgumentError, number
from dpselect.mechanisms.grid import add_on_grid, gaussian_steps, grid_at_most, rounding_sensitivity
from dpselect.mechanisms.mechanism import real
from dpselect.mechanisms.noise_reduction import Levels, NoiseReduction, read_levels
from dpselect.mechanisms.scores import as_vector
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import Array, last_true
from dpselect.privacy import Adjacency, OutputGuarantee, gaussian
from dpselect.privacy.output.gaussian_stopping import stopping_delta
from dpselect.randomness import RandomSource

__all__ = ["Boundary", "BrownianReduction", "linear_boundary", "mixture_boundary"]

Boundary = Literal["stopping", "linear", "mixture"]
_FINE = 2.0**-25
"""The grid, in deviations of the most accurate step; `gaussian_steps` needs at least 2**24 steps a deviation."""
_WIDEST = 2.0**46
_STEPS = 1 << 12


@dataclass(frozen=True, kw_only=True)
class BrownianReduction(NoiseReduction):
    """Gaussian noise of decreasing deviation on one answer. You pay only for the last level released.

    Level i is value + noise of standard deviation noise_multipliers[i] * sensitivity, and all noisier levels are
    post-processings of the least noisy one released.

    Reading a Brownian path backwards is averaging: level i is the mean, weighted by precision, of i independent
    Gaussian answers. So each step is an answer on a grid with fresh noise (`add_on_grid`, `gaussian_steps`). That is a
    post-processing of the real-valued Gaussian mechanism up to the precision that `gaussian_steps` states, and no
    secret path is kept. The rounding to the grid is added to the sensitivity.

    Args:
        noise_multipliers: one for each level, strictly decreasing, in units of `sensitivity`, from 2**-20 to 2**40.
            Public.
        delta: the one delta of the whole session, at least 1e-300 and below 1.
        sensitivity: how far the value moves between neighbours at most, in the Euclidean norm, of the value as doubles,
            in [1e-250, 1e250]. The value may have any shape. You must ensure this.
        boundary: how a level is priced. "stopping", the default: each level at its own Gaussian epsilon at a common
            nominal delta. That is raised until the delta of the worst stopping rule (`stopping_delta`) reaches `delta`.
            It has the smallest prices, for this list of levels only, with multipliers from 0.05 to 2**14. "linear" and
            "mixture": the privacy boundaries of Whitehouse et al., tightest at the last level. They also hold between
            the levels and for any number of them.
        adjacency: which data sets are neighbours, as `Adjacency` or its text. The default is add_or_remove_one.

    Raises:
        ArgumentError: naming the argument, if one is out of range or the levels are not strictly decreasing.
            `guarantee` raises it for levels that "stopping" cannot price. `open` raises it for two levels so close that
            the grid cannot hold the step's noise.
        AdjacencyError: if `adjacency` is neither of the two.

    >>> from dpselect.randomness import keyed_source
    >>> levels = BrownianReduction(noise_multipliers=[20, 10, 5], delta=1e-6, sensitivity=1.0)
    >>> {cell: round(epsilon, 2) for cell, epsilon in levels.guarantee.epsilons.items()}
    {0: 0.0, 1: 0.2, 2: 0.42, 3: 0.88}
    >>> levels.open([0.0, 3.0], random=keyed_source(1)).release().shape
    (2,)
    """

    noise_multipliers: Sequence[SupportsFloat]
    delta: float = field(metadata=real(at_least=1e-300, below=1.0, rounding="down"))
    sensitivity: float = field(metadata=real(at_least=1e-250, at_most=1e250, rounding="up"))
    boundary: Boundary = "stopping"
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        super().__post_init__()
        levels = read_levels(
            "noise_multipliers", self.noise_multipliers, decreasing=True, at_least=2.0**-20, at_most=2.0**40
        )
        self._parsed(noise_multipliers=levels)
        if self.boundary not in ("stopping", *_BOUNDARIES):
            raise ArgumentError(f"boundary must be 'stopping', 'linear' or 'mixture', got {self.boundary!r}")

    @cached_property
    def guarantee(self) -> OutputGuarantee:
        """The prices of stopping after 0, 1, 2, ... levels, all with the one `delta`, rounded up."""
        levels = [float(level) for level in self.noise_multipliers]
        if self.boundary == "stopping":
            prices = _stopping_prices(levels, self.delta)
        else:
            price = _BOUNDARIES[self.boundary]
            prices = [price(level, delta=self.delta, anchor=levels[-1]) for level in levels]
        by_level: dict[Hashable, float] = dict(enumerate([0.0, *prices]))
        return OutputGuarantee(
            cell=len, epsilons=by_level, delta=self.delta, adjacency=self.adjacency, interactive=True
        )

    def _levels(self, value: ArrayLike) -> Levels:
        """The levels in order: the mean, weighted by precision, of independent Gaussian answers on one grid."""
        array = as_vector("value", value)
        precisions = np.diff([0.0, *(float(level) ** -2.0 for level in self.noise_multipliers)])
        granularity = grid_at_most(self.sensitivity * _FINE / math.sqrt(float(np.max(precisions))))
        moved = self.sensitivity + rounding_sensitivity(max(array.size, 1), granularity)
        # a little more noise than the levels ask for covers the rounding of the precisions
        deviations = moved / np.sqrt(precisions) * (1.0 + 1e-9) / granularity
        if not float(np.max(deviations)) <= _WIDEST:
            raise ArgumentError("noise_multipliers: two levels are too close together for their step's noise")
        totals = [np.zeros(array.shape)]

        def level(place: int, random: RandomSource) -> Array:
            # drawn once, even if an interrupted level is asked for again: two answers to one step would cost more
            if len(totals) == place + 1:
                noise = gaussian_steps(float(deviations[place]), array.shape, random).reshape(array.shape)
                totals.append(totals[place] + precisions[place] * add_on_grid(array, noise * granularity, granularity))
            return np.asarray(totals[place + 1] / float(np.sum(precisions[: place + 1])))

        return lambda random: lambda place: level(place, random)


def linear_boundary(noise_multiplier: SupportsFloat, *, delta: SupportsFloat, anchor: SupportsFloat) -> float:
    """The privacy loss that a Brownian mechanism exceeds at any noise multiplier with probability at most delta.

    With s = 1/noise_multiplier^2 the loss is s/2 + B(s), B a Brownian motion. B meets the line a + b s with probability
    exp(-2ab) (Whitehouse et al. 2022, linear boundary). The line with 2ab = log(1/delta) that is lowest at `anchor`,
    rounded up: s/2 + sqrt(log(1/delta)/2) (s/sqrt(t) + sqrt(t)) with t = 1/anchor^2. Source:
    docs/theory/noise-reduction.md, Theorem 6.

    >>> linear_boundary(1, delta=1e-6, anchor=1) < 0.5 + math.sqrt(2 * math.log(1e6)) + 1e-9
    True
    """
    deviation, anchor, logarithm = _boundary_arguments(noise_multiplier, delta, anchor)
    slope = math.sqrt(logarithm / 2.0)
    return (0.5 / deviation**2 + slope * (anchor / deviation**2 + 1.0 / anchor)) * ROUND_UP


def mixture_boundary(noise_multiplier: SupportsFloat, *, delta: SupportsFloat, anchor: SupportsFloat) -> float:
    """As `linear_boundary`, by mixing lines (Robbins 1970 and Whitehouse et al. 2022, mixture boundary).

    With t = noise_multiplier^2 and W a Brownian motion the loss is 1/(2t) + W(t)/t. The motion W stays below sqrt((t +
    r) (log(1 + t/r) + 2 log(1/delta))) for all t with probability at least 1 - delta, for every r > 0. Here r =
    anchor^2 / (2 log(1/delta) + log(1 + 2 log(1/delta))), which is nearly best at `anchor`. Rounded up.
    Source: docs/theory/noise-reduction.md, Theorem 6.

    >>> mixture_boundary(1, delta=1e-6, anchor=1) < mixture_boundary(0.5, delta=1e-6, anchor=1)
    True
    """
    deviation, anchor, logarithm = _boundary_arguments(noise_multiplier, delta, anchor)
    rate = anchor**2 / (2.0 * logarithm + math.log1p(2.0 * logarithm))
    time = deviation**2
    crossing = math.sqrt((time + rate) * (math.log1p(time / rate) + 2.0 * logarithm))
    return (0.5 + crossing) / time * ROUND_UP


def _boundary_arguments(
    noise_multiplier: SupportsFloat, delta: SupportsFloat, anchor: SupportsFloat
) -> tuple[float, float, float]:
    return (
        number("noise_multiplier", noise_multiplier, at_least=2.0**-20, at_most=2.0**40, rounding="down"),
        number("anchor", anchor, at_least=2.0**-20, at_most=2.0**40),
        -math.log(number("delta", delta, above=0.0, below=1.0, rounding="down")),
    )


def _stopping_prices(levels: Sequence[float], delta: float) -> list[float]:
    """Each level's Gaussian epsilon at the largest nominal delta that is seen to fit.

    At delta/len(levels) it fits by adding up (Hartmann et al. 2022, Lemma 11), without the numerical bound.
    """
    guarantees = [gaussian(noise_multiplier=level) for level in levels]

    def prices(nominal: float) -> list[float]:
        found = [guarantee.epsilon(delta=nominal) for guarantee in guarantees]
        return np.maximum.accumulate(found).tolist()

    even, whole = math.log(delta / len(levels)), math.log(delta)

    def tried(step: int) -> list[float]:
        return prices(math.exp(even + (whole - even) * step / _STEPS))

    def fits(step: int) -> bool:
        return stopping_delta(noise_multipliers=levels, epsilons=tried(step)) <= delta

    best = last_true(fits, 1, _STEPS - 1) if len(levels) > 1 else None
    return prices(delta / len(levels) * (1.0 - 1e-12)) if best is None else tried(best)


_BOUNDARIES: Final = {"linear": linear_boundary, "mixture": mixture_boundary}
