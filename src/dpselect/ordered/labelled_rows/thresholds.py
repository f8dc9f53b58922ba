"""Private thresholds: the rule "x is at most u" learnt from labelled rows (Cohen et al. 2022, Section 3).

A cut c of a domain puts the codes below c on the lower side. There are size + 1 cuts. A positive row with code k asks
for c >= k + 1, a negative one for c <= k. In these terms the shift by one between positive and negative rows, without
which an interior point may misclassify every negative row, is there by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, SupportsFloat, get_args

import numpy as np
from numpy.typing import NDArray

from dpselect.capabilities import Typed
from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError, integer, number
from dpselect.mechanisms import Mechanism, bounded_range
from dpselect.ordered.domains import Domain, WholeNumbers
from dpselect.ordered.interior_points.interior_point import InteriorPoint
from dpselect.ordered.interior_points.rows import Method
from dpselect.ordered.labelled_rows.threshold_plan import ThresholdMethod, threshold_rate, threshold_size
from dpselect.ordered.order_statistics.equal_scores import draw_from_runs
from dpselect.ordered.order_statistics.one import parse_epsilon
from dpselect.ordered.public_domain import PublicDomain
from dpselect.ordered.slices.price import swap_of
from dpselect.privacy import Adjacency, Guarantee, Release, Spender
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.public_api import options_of
from dpselect.randomness import RandomSource
from dpselect.tables.column_cells import unmasked
from dpselect.tables.plain_lists import typed, with_presence

__all__ = [
    "Side",
    "Threshold",
    "ThresholdLearner",
    "boundary_points",
    "coded",
    "error_runs",
    "labelled",
    "learn_threshold",
    "numbers_of",
]

Side = Literal["below", "above", "either"]
Codes = NDArray[Any]


@dataclass(frozen=True)
class Threshold:
    """The rule "positive on one side of a cut". `cut` values of the domain are on the lower side.

    >>> from dpselect.ordered.domains import WholeNumbers
    >>> rule = Threshold(WholeNumbers(0, 9), 4)
    >>> rule.value, rule.predict([3, 4, -5]).tolist()
    (3, [True, False, True])
    """

    domain: Domain
    cut: int
    positive_below: bool = True

    @property
    def value(self) -> Any:
        """The largest value on the lower side, or None when all values are on the upper side."""
        return self.domain.decode(self.cut - 1) if self.cut else None

    def predict(self, x: Any) -> NDArray[np.bool_]:
        """Whether each value is positive. Values beyond the bounds count as the bounds. Missing ones are negative."""
        values = numbers_of(x, "x")
        found = np.zeros(len(values), dtype=bool)
        present = np.asarray(values == values, dtype=bool)
        found[present] = (coded(self.domain, values[present]) < self.cut) == self.positive_below
        return found


@dataclass(frozen=True, kw_only=True)
class ThresholdLearner(PublicDomain, Mechanism):
    """Learns a threshold on one column from labelled rows. The release's value is a `Threshold`.

    - "errors" (the better one unless the domain is astronomical): a cut with probability proportional to exp(-rate *
      misclassified rows). Works for any labels. For `positives="either"` the direction is learnt as well.
    - "interior-point" (the paper's route, Theorem 3.9): an interior point of the `per_side` largest positive and the
      `per_side` smallest negative rows. Private for any labels. Accurate only if some threshold makes no errors.

    Both take O(n log n) at most, without touching the domain. `rows` tells how many rows they need.

    Attributes:
        domain_size, or lower, upper and granularity: the public domain, as for `quantile`. Values beyond the bounds
            count as the bounds.
        epsilon, delta: the whole price. delta is spent by some interior points only.
        positives: on which side of the cut they are: "below", "above" or "either" (only for "errors").
        interior: for "interior-point": the method of `interior_point`. All but "exponential" need a delta; their
            value is None when they found none.
        per_side: for "interior-point", from `failure_probability` and the domain when None. Public.
        adjacency: "add_or_remove_one" or "replace_one", of labelled rows.

    It is run on x and y. In x is one number, integer or timestamp a row. Rows where it is NaN are left out, and of an
    array of objects those that are no integers. In y is one label a row, of a number type: 1 (or True) is positive, 0
    negative. Other rows are left out.

    Raises `ArgumentError` or `TypeError` for arguments, types and shapes, never because of what the rows hold, and
    `BudgetError` when the spender refuses.

    >>> learner = ThresholdLearner(domain_size=2**32, epsilon=0.5)
    >>> learner.guarantee.epsilon(delta=0), learner.rows_per_side
    (0.5, None)
    """

    epsilon: float
    delta: float = 0.0
    positives: Side = "below"
    method: ThresholdMethod = "errors"
    interior: Method | Literal["auto"] = "exponential"
    per_side: int | None = None
    failure_probability: float = 0.05
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        self._parsed(
            epsilon=parse_epsilon(self.epsilon),
            delta=number("delta", self.delta, at_least=0.0, below=1.0, rounding="down"),
            failure_probability=number("failure_probability", self.failure_probability, above=0.0, below=1.0),
            adjacency=parse_adjacency(self.adjacency),
            per_side=None if self.per_side is None else integer("per_side", self.per_side, at_least=1),
        )
        if self.positives not in get_args(Side):
            said = f"positives must be one of {get_args(Side)}, got {self.positives!r}"
            raise ArgumentError(said + write_one_of("positives", self.positives, get_args(Side)))
        threshold_rate(epsilon=epsilon_used(self.epsilon), method=self.method)  # refuses an unknown method
        if self.positives == "either" and self.method != "errors":
            raise ArgumentError("positives: the interior-point method needs a direction, 'below' or 'above'")
        if self.method == "errors" and self.interior != "exponential":
            raise ArgumentError("interior is for the interior-point method")

    @property
    def _search(self) -> InteriorPoint:
        """An interior point of the cuts, private for one swapped point. "auto" takes the fewest points."""
        replaced, epsilon, delta = self.adjacency is Adjacency.REPLACE_ONE, self.epsilon, self.delta
        if replaced:  # two steps, (2e, (1 + exp(e)) d) from (e, d), rounded down
            epsilon, delta = epsilon / 2.0, delta / (1.0 + math.exp(epsilon / 2.0)) * (1.0 - 1e-11)
        return InteriorPoint(
            domain_size=self.size() + 1,
            epsilon=epsilon,
            delta=delta,
            method=self.interior,
            expected_rows=0,
            failure_probability=self.failure_probability / 3.0,
            adjacency=Adjacency.REPLACE_ONE,
        )

    @property
    def rows_per_side(self) -> int | None:
        """Half the points that the interior point needs for a third of the failure, unless they are given."""
        if self.method == "errors" or self.per_side is not None:
            return self.per_side
        return -(-self._search.plan.rows // 2)

    @property
    def guarantee(self) -> Guarantee:
        """At most (epsilon, delta).

        An exponential mechanism has range epsilon, and so pure epsilon. Other interior points (which need the domain)
        are private for a swap of one point, which is an added or removed row. A replaced row is two such steps.
        """
        if self.interior == "exponential":
            claimed = bounded_range(epsilon=self.epsilon, adjacency=self.adjacency)
        else:
            claimed = replace(self._search.guarantee, adjacency=Adjacency.ADD_OR_REMOVE_ONE)
            if self.adjacency is Adjacency.REPLACE_ONE:
                claimed = swap_of(claimed)
        terms = {"mechanism": "threshold", "method": self.method, "epsilon": self.epsilon, "delta": self.delta}
        if self.method == "interior-point":
            terms["interior"] = self.interior
        # another mechanism than those whose worst case is known exactly
        return replace(claimed, terms=terms, lower_profile=None)

    def rows(self, *, error: SupportsFloat, realisable: bool = True) -> int:
        """Rows from which the error is at most `error` except with `failure_probability`, from public parameters.

        `realisable`: some threshold makes no error at all. Otherwise `error` is the excess over the best threshold (by
        errors only). The proofs are in `threshold_plan`.

        >>> learner = ThresholdLearner(domain_size=2**32, epsilon=1.0)
        >>> learner.rows(error=0.1), replace(learner, method="interior-point").rows(error=0.1)
        (386, 688)
        """
        if self.method != "errors" and not realisable:
            raise ArgumentError("method: only 'errors' has a bound when labels may be wrong")
        rate = float(threshold_rate(epsilon=Fraction(self.epsilon), method=self.method, adjacency=self.adjacency))
        size, side, either = self.size(), replace(self, per_side=None).rows_per_side, self.positives == "either"
        return threshold_size(size, error, self.failure_probability, rate, side, realisable=realisable, either=either)

    def bind(self, *data: Any) -> tuple[ThresholdLearner, tuple[Any, ...]]:
        """With the size of the domain that the type of x declares."""
        x, y = data
        column, present, labels = labelled(x, y, "x")
        domain = self.of_type(column.dtype)
        return self.of_size(domain.size), (domain, column, present, labels)

    def prepared(
        self, domain: Domain, column: NDArray[Any], present: NDArray[np.bool_], labels: NDArray[Any]
    ) -> Callable[[RandomSource], Threshold | None]:
        """The rule for the rows of a column that are present."""
        half, positives, size = self.rows_per_side or 0, self.positives, domain.size

        def run(random: RandomSource) -> Threshold | None:
            sides = [coded(domain, column[present & (labels == label)]) for label in (1, 0)]
            below, above = sides[::-1] if positives == "above" else sides
            turned, cut = 0, None
            if self.method == "errors":
                lengths, errors = error_runs(below, above, size)
                if positives == "either":
                    lengths, errors = np.tile(lengths, 2), np.append(errors, len(below) + len(above) - errors)
                rate = threshold_rate(epsilon=epsilon_used(self.epsilon), adjacency=self.adjacency)
                turned, cut = divmod(draw_from_runs(lengths, -errors, rate=rate, random=random), size + 1)
            else:
                cut = self._search.draw(boundary_points(below, above, size, half), random=random)
            positive_below = (positives != "above") != bool(turned)
            return None if cut is None else Threshold(domain, cut, positive_below)

        return run


@options_of(ThresholdLearner)
def learn_threshold(
    x: Any,
    y: Any,
    *,
    spender: Spender | None = None,
    label: str = "threshold",
    random: RandomSource | None = None,
    **options: Any,
) -> Release:
    """Return a private threshold on one column that is learnt from labelled rows x, y.

    It runs `ThresholdLearner` with these options, and its documentation says how accurate the threshold is.

    Args:
        x: one number, integer or timestamp a row, private. Rows with NaN are left out, and of an array of objects those
            that are not integers.
        y: one label a row, of a number type, private: 1 (or True) is positive, 0 negative. Other rows are left out.
        spender: pays the cost before the rows are looked at. None charges no budget.
        label: the public name of the charge in the spender's record.
        random: the source of randomness. By default it is a fresh one from system entropy.
        **options: the attributes of `ThresholdLearner`, all public: `epsilon`, and the domain as `domain_size`, or as
            `lower` and `upper` (and `granularity`). `delta`, `positives`, `method`, `interior`, `per_side`,
            `failure_probability` and `adjacency` have the defaults of that class.

    Returns:
        A `Release` with the guarantee and a `Threshold` as `value`. It is None if an interior point other than
        "exponential" found nothing.

    Raises:
        ArgumentError: if an option or a shape does not fit, never because of what the rows hold.
        TypeError: if a type does not fit.
        BudgetError: if the spender refuses.

    >>> from dpselect.randomness import keyed_source
    >>> x = np.arange(100)
    >>> learn_threshold(x, x <= 60, lower=0, upper=99, epsilon=9.0, random=keyed_source(1)).value.value
    60
    """
    return ThresholdLearner(**options)(x, y, spender=spender, label=label, random=random)


def error_runs(below: Codes, above: Codes, size: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Runs of cuts 0 .. size with equal errors: their lengths and errors. Secret.

    Cut c misclassifies the codes of `below` that are >= c and those of `above` that are < c.
    """
    values, place = np.unique(np.concatenate([below, above]), return_inverse=True)
    wanted = np.bincount(place[: len(below)], minlength=len(values))
    unwanted = np.bincount(place[len(below) :], minlength=len(values))
    errors = len(below) + np.concatenate(([0], np.cumsum(unwanted - wanted))).astype(np.int64)
    exact = np.dtype(np.uint64 if size + 1 < 1 << 64 else object)
    # cuts 0 .. v_1, then v_1 + 1 .. v_2, and so on up to size; one type throughout, as mixing them makes doubles
    starts = np.append(np.array([0], dtype=exact), values.astype(exact) + np.array(1, dtype=exact))
    return np.diff(np.append(starts, np.array([size + 1], dtype=exact))), errors


def boundary_points(below: Codes, above: Codes, size: int, per_side: int) -> list[int]:
    """The cuts that the rows at the boundary ask for, sorted: 2 * per_side numbers from 0 to size. Secret.

    The largest `per_side` of code + 1 in `below`, filled up with 0. The smallest `per_side` codes in `above`, filled up
    with `size`. Every cut between them errs on fewer than `per_side` rows of either group where some cut makes no
    error. Source: Cohen et al. 2022, Theorem 3.9.
    """
    largest = [int(code) + 1 for code in _smallest(below, per_side, last=True)]
    least = [int(code) for code in _smallest(above, per_side, last=False)]
    return sorted([0] * (per_side - len(largest)) + largest + least + [size] * (per_side - len(least)))


def _smallest(codes: Codes, count: int, *, last: bool) -> Codes:
    """The smallest, or the largest, `count` codes or all of them."""
    if len(codes) <= count:
        return codes
    place = len(codes) - count if last else count - 1
    ordered = np.partition(codes, place)
    return ordered[place:] if last else ordered[:count]


def coded(domain: Domain, values: NDArray[Any]) -> Codes:
    """The codes of values that are not missing, as one array regardless of the size of the domain."""
    if isinstance(domain, WholeNumbers) and values.dtype.kind not in "iuO":
        raise TypeError(f"values must be integers, as those of the domain are, got {values.dtype}")
    codes = domain.encode(values)
    return np.array(codes, dtype=object) if isinstance(codes, list) else codes


def numbers_of(values: Any, name: str, dimensions: int = 1) -> NDArray[Any]:
    """An array of numbers or timestamps. Raises `ArgumentError` and `TypeError` for its shape and its type."""
    found = np.asarray(unmasked(values))
    if found.dtype.kind == "M" and not isinstance(values, Typed):  # NumPy has made one unit of those in a list
        raise TypeError(f"{name}: give timestamps as an array of their type")
    if found.ndim != dimensions or (dimensions == 2 and not found.shape[1]):
        raise ArgumentError(
            f"{name} must {'be one-dimensional' if dimensions == 1 else 'have two dimensions, rows and axes'}"
        )
    if found.dtype.kind == "b":
        found = found.astype(np.uint8)
    if found.dtype.kind not in "iufMO":
        raise TypeError(f"{name} must be numbers, integers or timestamps, got {found.dtype}")
    return found


def labelled(values: Any, y: Any, name: str, dimensions: int = 1) -> tuple[NDArray[Any], ...]:
    """Rows of numbers, which of their cells are there, and their labels as a one-dimensional array of numbers."""
    found, labels = numbers_of(typed(values, name=name), name, dimensions), np.asarray(unmasked(typed(y, name="y")))
    if labels.ndim != 1:
        raise ArgumentError("y must be one-dimensional")
    if labels.dtype.kind not in "biuf":
        raise TypeError(f"y must be of a number type, 1 for positive and 0 for negative, got {labels.dtype}")
    found, present = with_presence(found, name=name)
    if len(found) != len(labels):
        raise ArgumentError(f"y must have one label for each {'value' if dimensions == 1 else 'row'} of {name}")
    return found, present, labels
