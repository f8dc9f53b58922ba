"""Private axis-aligned rectangles from labelled rows (Cohen et al. 2022, Corollary 1.9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, integer
from dpselect.mechanisms import noisy_count
from dpselect.ordered.domains import Domain
from dpselect.ordered.labelled_rows.rectangle_plan import RectanglePlan, Slicing, rectangle_plan
from dpselect.ordered.labelled_rows.thresholds import coded, labels_of_numbers
from dpselect.ordered.order_statistics.intervals import exponential_interior_point
from dpselect.ordered.public_domain import declare_domain
from dpselect.ordered.slices.reorder_slice_compute import Ordered, ReorderSliceCompute
from dpselect.ordered.sources.plain_lists import typed, with_presence
from dpselect.privacy import Adjacency, Release, Spender, paid
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource, resolve

__all__ = ["Rectangle", "axis_domains", "learn_rectangle"]


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
        """(lowest, highest) value of each axis, both inside; None for the empty rectangle."""
        if self.empty:
            return None
        return [
            (domain.decode(low), domain.decode(high))
            for domain, low, high in zip(self.domains, self.first, self.last, strict=True)
        ]

    def predict(self, X: Any) -> NDArray[np.bool_]:
        """Whether each row is inside. Values beyond the bounds of the domain count as the bounds; NaN is outside."""
        table = _table(X)
        if table.shape[1] != len(self.domains):
            raise ArgumentError(f"X must have {len(self.domains)} columns, one for each axis")
        inside = np.asarray(np.all(table == table, axis=1), dtype=bool)
        for axis, domain in enumerate(self.domains):
            codes = coded(domain, table[inside, axis])
            inside[inside] = (codes >= self.first[axis]) & (codes <= self.last[axis])
        return inside


def learn_rectangle(
    X: Any,
    y: Any,
    *,
    epsilon: SupportsFloat,
    delta: SupportsFloat = 0.0,
    domain_size: Any = None,
    lower: Any = None,
    upper: Any = None,
    granularity: Any = None,
    failure_probability: SupportsFloat = 0.05,
    slicing: Slicing = "auto",
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    spender: Spender | None = None,
    label: str = "rectangle",
    random: RandomSource | None = None,
) -> Release:
    """Learn an axis-aligned rectangle from labelled rows; the release's value is a `Rectangle`.

    The positive rows are counted with noise; if they are too few the rectangle is empty. Else axis after axis the
    lowest m rows and then the highest m that are left are cut off, with a secret few more if slices are noisy, and an
    interior point of their values on that axis, by the exponential mechanism, becomes a side. If some rectangle
    explains the labels there are no false positives, and the false negatives are among the rows cut off, except with
    `failure_probability`. With other labels it is private but promises nothing. `rectangle_plan` with the number of
    axes and the size of the largest domain has m, the price and all other parameters, `rectangle_rows` the number of
    rows for an error.

    Args:
        X: a dense table of numbers, shape (rows, axes); rows with NaN are left out, and of an array of
            objects those with a cell that is no whole number.
        y: one label a row, of a number type: 1 (or True) is positive; other rows are not used.
        domain_size, or lower, upper and granularity: the public domain of every axis, as for `quantile`, or lists with
            one for each axis.
        epsilon, delta: the whole price. With delta = 0, or epsilon above 10, slices are plain.
        slicing: "noisy" slice sizes (Reorder-Slice-Compute), "plain" ones, or "auto", which takes the one that consumes
            fewer rows, from public parameters.
        adjacency: "add_or_remove_one" or "replace_one", of labelled rows.
        spender, label: where the price is paid, before the rows are looked at, and its name in the record.

    Takes O(axes * n log n). Raises `ArgumentError` or `TypeError` for arguments, types and shapes, never because of
    what the rows hold, and `BudgetError` when the spender refuses.

    >>> from dpselect.randomness import keyed_source
    >>> X = np.stack(np.meshgrid(np.arange(100), np.arange(100)), axis=2).reshape(-1, 2)
    >>> y = np.all((X >= 20) & (X < 70), axis=1)
    >>> release = learn_rectangle(X, y, lower=0, upper=99, epsilon=8.0, random=keyed_source(1))
    >>> bool(np.mean(release.value.predict(X) != y) < 0.05)
    True
    """
    source = resolve(random)
    table, labels = _table(typed(X, name="X")), labels_of_numbers(y)
    table, present = with_presence(table, name="X")
    if len(labels) != len(table):
        raise ArgumentError("y must have one label for each row of X")
    axes = table.shape[1]
    domains = axis_domains(
        table.dtype, axes, domain_size=domain_size, lower=lower, upper=upper, granularity=granularity
    )
    plan = rectangle_plan(
        dimensions=axes,
        domain_size=max(domain.size for domain in domains),
        epsilon=epsilon,
        delta=delta,
        failure_probability=failure_probability,
        slicing=slicing,
        adjacency=adjacency,
    )

    def run() -> Rectangle:
        positive = table[(labels == 1) & np.all(present, axis=1)]
        columns = [coded(domain, positive[:, axis]) for axis, domain in enumerate(domains)]
        if noisy_count(len(positive), epsilon=plan.count_epsilon, random=source) < plan.least_count:
            rule = Rectangle(domains, (1,) * axes, (0,) * axes)
        else:
            rule = _sides(columns, domains, plan, adjacency, source)
        return rule

    return paid(run, plan.guarantee, spender=spender, label=label, replayable=source.replayable)


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

    def side(axis: int, *, descending: bool) -> int:
        def interior(part: NDArray[Any]) -> int:
            return int(
                exponential_interior_point(
                    sorted(columns[axis][part].tolist()),
                    lower=0,
                    upper=domains[axis].size - 1,
                    epsilon=epsilon_used(plan.rate),
                    monotonic=True,
                    random=source,
                )
            )

        order = Ordered(values=columns[axis], descending=descending)
        return session.slice_and_compute(plan.slice_size, order, interior)

    sides = [(side(axis, descending=False), side(axis, descending=True)) for axis in range(len(domains))]
    return Rectangle(domains, tuple(low for low, _ in sides), tuple(high for _, high in sides))


def axis_domains(dtype: np.dtype[Any], axes: int, **domain: Any) -> tuple[Domain, ...]:
    """The domain of each axis, from one value for all or one for each; see `PublicDomain`."""
    each = [_for_each_axis(name, value, axes) for name, value in domain.items()]
    return tuple(declare_domain(dtype, **dict(zip(domain, values, strict=True))) for values in zip(*each, strict=True))


def _for_each_axis(name: str, value: Any, axes: int) -> list[Any]:
    if not isinstance(value, (list, tuple, np.ndarray)):
        return [value] * integer("columns", axes, at_least=1, at_most=1 << 24)
    if len(value) != axes:
        raise ArgumentError(f"{name} must be one value or one for each axis")
    return list(value)


def _table(X: Any) -> NDArray[Any]:
    table = np.asarray(X)
    if table.ndim != 2 or not table.shape[1]:
        raise ArgumentError("X must have two dimensions, rows and axes")
    if table.dtype.kind == "b":
        table = table.astype(np.uint8)
    if table.dtype.kind not in "iufMO":
        raise TypeError(f"X must be numbers, whole numbers or timestamps, got {table.dtype}")
    return table
