"""Private axis-aligned rectangles from labelled rows.

Source: Cohen et al. 2022, Corollary 1.9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from dpselect.capabilities import field_values
from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError, integer, number
from dpselect.mechanisms import Mechanism, noisy_count
from dpselect.ordered.domains import Domain
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.labelled_rows.rectangle_plan import MOST_NOISY, RectanglePlan, Slicing, plan_rectangle
from dpselect.ordered.labelled_rows.thresholds import coded, labelled, numbers_of
from dpselect.ordered.order_statistics.one import parse_epsilon
from dpselect.ordered.public_domain import PublicDomain
from dpselect.ordered.slices.reorder_slice_compute import Ordered, ReorderSliceCompute
from dpselect.privacy import Adjacency, Guarantee, Release, Spender
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.public_api import options_of
from dpselect.randomness import RandomSource

__all__ = ["Rectangle", "RectangleLearner", "axis_domains", "learn_rectangle"]


@dataclass(frozen=True)
class Rectangle:
    """The rule "positive inside": on each axis the codes from `first` to `last`. No axis with first > last: empty."""

    domains: tuple[Domain, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing is positive."""
        return any(low > high for low, high in zip(self.first, self.last, strict=True))

    @property
    def bounds(self) -> list[tuple[Any, Any]] | None:
        """(lowest, highest) value of each axis, both inside, or None for the empty rectangle."""
        if self.empty:
            return None
        return [
            (domain.decode(low), domain.decode(high))
            for domain, low, high in zip(self.domains, self.first, self.last, strict=True)
        ]

    def predict(self, X: Any) -> NDArray[np.bool_]:
        """Whether each row is inside. Values beyond the bounds of the domain count as the bounds. NaN is outside."""
        table = numbers_of(X, "X", 2)
        if table.shape[1] != len(self.domains):
            raise ArgumentError(f"X must have {len(self.domains)} columns, one for each axis")
        inside = np.asarray(np.all(table == table, axis=1), dtype=bool)
        for axis, domain in enumerate(self.domains):
            codes = coded(domain, table[inside, axis])
            inside[inside] = (codes >= self.first[axis]) & (codes <= self.last[axis])
        return inside


@dataclass(frozen=True, kw_only=True)
class RectangleLearner(PublicDomain, Mechanism):
    """Learns an axis-aligned rectangle from labelled rows. The release's value is a `Rectangle`.

    The positive rows are counted with noise. If they are too few the rectangle is empty. Else axis after axis the
    lowest m rows and then the highest m that are left are removed, with a secret few more if slices are noisy. An
    interior point of their values on that axis, by the exponential mechanism, becomes a side. If some rectangle
    explains the labels there are no false positives, and the false negatives are among the rows clipped, except with
    `failure_probability`. With other labels it is private but promises nothing. `plan` has m, the price and all other
    parameters, and says how many rows are enough for an error (`RectanglePlan.rows`).

    Attributes:
        domain_size, or lower, upper and granularity: the public domain of every axis, as for `quantile`, or lists with
            one for each axis.
        epsilon, delta: the whole price. A sixteenth of epsilon goes to the count. delta is at most 0.01; with delta 0
            or epsilon above 10 slices are plain. With a delta it takes some seconds for ten or more axes (privacy
            losses are composed for a few rates). The same question is answered once.
        dimensions: the number of axes, for what is asked before there are rows.
        slicing: "noisy" slice sizes (Reorder-Slice-Compute), "plain" ones, or "auto", which takes the one that consumes
            fewer rows, from public parameters.
        adjacency: "add_or_remove_one" or "replace_one", of labelled rows.

    It is run on X and y. X is a dense table of numbers, shape (rows, axes). Rows with NaN are left out, and of an array
    of objects those with a cell that is no integer. In y is one label a row, of a number type: 1 (or True) is positive.
    Other rows are not used. Takes O(axes * n log n).

    Raises `ArgumentError` or `TypeError` for arguments, types and shapes, never because of what the rows hold, and
    `BudgetError` when the spender refuses.

    >>> learner = RectangleLearner(dimensions=1, domain_size=2**32, epsilon=1.0)
    >>> learner.plan.slice_epsilon, learner.guarantee.epsilon(delta=0) <= 1.0, learner.plan.rows(error=0.1)
    (None, True, 9120)
    """

    epsilon: float
    delta: float = 0.0
    dimensions: int | None = None
    failure_probability: float = 0.05
    slicing: Slicing = "auto"
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        axes, failure = self.dimensions, self.failure_probability
        self._parsed(
            epsilon=parse_epsilon(self.epsilon),
            delta=number("delta", self.delta, at_least=0.0, at_most=0.01, rounding="down"),
            dimensions=None if axes is None else integer("dimensions", axes, at_least=1, at_most=4096),
            failure_probability=number("failure_probability", failure, at_least=1e-100, below=1.0),
            adjacency=parse_adjacency(self.adjacency),
        )
        if self.slicing not in get_args(Slicing):
            said = f"slicing must be one of {get_args(Slicing)}, got {self.slicing!r}"
            raise ArgumentError(said + write_one_of("slicing", self.slicing, get_args(Slicing)))
        if self.slicing == "noisy" and not self.delta:
            raise ArgumentError("delta must be above 0 for noisy slices")
        if self.slicing == "noisy" and self.epsilon > MOST_NOISY:
            raise ArgumentError(f"epsilon must be at most {MOST_NOISY:g} for noisy slices")

    @cached_property
    def plan(self) -> RectanglePlan:
        """The largest rate that (epsilon, delta) pays for, and what follows from it. It goes by the largest domain."""
        if self.dimensions is None:
            raise ArgumentError("dimensions must be given before there are rows")
        public = (self.dimensions, self.size(), self.epsilon, self.delta, self.failure_probability)
        both = self.slicing == "auto" and self.delta and self.epsilon <= MOST_NOISY
        ways = (False, True) if both else (self.slicing == "noisy",)
        found = [plan_rectangle(*public, noisy, parse_adjacency(self.adjacency)) for noisy in ways]
        return min(found, key=lambda plan: plan.consumed)

    @property
    def guarantee(self) -> Guarantee:
        """At most (epsilon, delta)."""
        return self.plan.guarantee

    def bind(self, *data: Any) -> tuple[RectangleLearner, tuple[Any, ...]]:
        """With the number of axes, and the largest domain that the type of the table declares."""
        X, y = data
        table, present, labels = labelled(X, y, "X", 2)
        domains = axis_domains(table.dtype, table.shape[1], self)
        found = replace(self.of_size(max(domain.size for domain in domains)), dimensions=len(domains))
        return found, (domains, table, present, labels)

    def prepared(
        self, domains: tuple[Domain, ...], table: NDArray[Any], present: NDArray[np.bool_], labels: NDArray[Any]
    ) -> Callable[[RandomSource], Rectangle]:
        """The rectangle for the rows of a table whose cells are present."""
        plan, axes = self.plan, len(domains)

        def run(random: RandomSource) -> Rectangle:
            positive = table[(labels == 1) & np.all(present, axis=1)]
            columns = [coded(domain, positive[:, axis]) for axis, domain in enumerate(domains)]
            if noisy_count(len(positive), epsilon=plan.count_epsilon, random=random) < plan.least_count:
                return Rectangle(domains, (1,) * axes, (0,) * axes)
            return _sides(columns, domains, plan, self.adjacency, random)

        return run


@options_of(RectangleLearner)
def learn_rectangle(
    X: Any,
    y: Any,
    *,
    spender: Spender | None = None,
    label: str = "rectangle",
    random: RandomSource | None = None,
    **options: Any,
) -> Release:
    """Return a private axis-aligned rectangle that is learnt from labelled rows X, y.

    It runs `RectangleLearner` with these options, and its documentation says how accurate the rectangle is.

    Args:
        X: a dense table of numbers, shape (rows, axes), private. Rows with NaN are left out. Of an array of objects,
            rows with a cell that is not an integer are left out.
        y: one label a row, of a number type, private: 1 (or True) is positive, and other rows are not used.
        spender: pays the cost before the rows are looked at. None charges no budget.
        label: the public name of the charge in the spender's record.
        random: the source of randomness. By default it is a fresh one from system entropy.
        **options: the attributes of `RectangleLearner`, all public: `epsilon`, and the domain of every axis as
            `domain_size`, or as `lower` and `upper` (and `granularity`). `delta`, `dimensions`, `failure_probability`,
            `slicing` and `adjacency` have the defaults of that class.

    Returns:
        A `Release` with the guarantee and a `Rectangle` as `value`. It is empty if there were too few positive rows.

    Raises:
        ArgumentError: if an option or a shape does not fit, never because of what the rows hold.
        TypeError: if a type does not fit.
        BudgetError: if the spender refuses.

    >>> from dpselect.randomness import keyed_source
    >>> X = np.stack(np.meshgrid(np.arange(100), np.arange(100)), axis=2).reshape(-1, 2)
    >>> y = np.all((X >= 20) & (X < 70), axis=1)
    >>> release = learn_rectangle(X, y, lower=0, upper=99, epsilon=8.0, random=keyed_source(1))
    >>> bool(np.mean(release.value.predict(X) != y) < 0.05)
    True
    """
    return RectangleLearner(**options)(X, y, spender=spender, label=label, random=random)


def _sides(
    columns: list[NDArray[Any]],
    domains: tuple[Domain, ...],
    plan: RectanglePlan,
    adjacency: Adjacency | str,
    source: RandomSource,
) -> Rectangle:
    # a row is sliced by its place, which stands for its content: whole rows need not be moved about
    session = ReorderSliceCompute(
        np.arange(len(columns[0])),  # type: ignore[arg-type]  # an array is as good as a sequence there
        slice_epsilon=plan.slice_epsilon,
        computation=plan.insertion,
        swap=plan.swap,
        slices=2 * len(domains),
        adjacency=adjacency,
        random=source,
    )
    draws = SecretDraws(source)

    def side(axis: int, *, descending: bool) -> int:
        def interior(part: NDArray[Any]) -> int:
            return draws.interior(sorted(columns[axis][part].tolist()), domains[axis].size, epsilon_used(plan.rate))

        order = Ordered(values=columns[axis], descending=descending)
        return int(session.slice_and_compute(plan.slice_size, order, interior))

    sides = [(side(axis, descending=False), side(axis, descending=True)) for axis in range(len(domains))]
    return Rectangle(domains, tuple(low for low, _ in sides), tuple(high for _, high in sides))


def axis_domains(dtype: np.dtype[Any], axes: int, every: PublicDomain) -> tuple[Domain, ...]:
    """The domain of each axis, from one value for all or one for each."""
    given = field_values(every, [field.name for field in fields(PublicDomain)])
    each = zip(*(_for_each_axis(name, value, axes) for name, value in given.items()), strict=True)
    return tuple(PublicDomain(**dict(zip(given, values, strict=True))).of_type(dtype) for values in each)


def _for_each_axis(name: str, value: Any, axes: int) -> list[Any]:
    if not isinstance(value, (list, tuple, np.ndarray)):
        return [value] * integer("columns", axes, at_least=1, at_most=1 << 24)
    if len(value) != axes:
        raise ArgumentError(f"{name} must be one value or one for each axis")
    return list(value)
