"""Private thresholds: the rule "x is at most u" learnt from labelled rows (Cohen et al. 2022, Section 3).

A cut c of a domain puts the codes below c on the lower side; there are size + 1 cuts. A positive row with code k asks
for c >= k + 1, a negative one for c <= k. In these terms the shift by one between positive and negative rows, without
which an interior point may misclassify every negative row, is there by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, SupportsFloat, SupportsIndex, get_args

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, integer
from dpselect.ordered.domains import Domain, WholeNumbers
from dpselect.ordered.interior_points.interior_point import interior_point
from dpselect.ordered.labelled_rows.threshold_plan import (
    Interior,
    ThresholdMethod,
    interior_search,
    rows_per_side,
    threshold_guarantee,
    threshold_rate,
)
from dpselect.ordered.order_statistics.equal_scores import draw_from_runs
from dpselect.ordered.public_domain import declare_domain
from dpselect.ordered.sources.plain_lists import typed, with_presence
from dpselect.privacy import Adjacency, Release, Spender, paid
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource, resolve

__all__ = ["Side", "Threshold", "boundary_points", "coded", "error_runs", "labels_of_numbers", "learn_threshold"]

Side = Literal["below", "above", "either"]
Codes = NDArray[Any]


@dataclass(frozen=True)
class Threshold:
    """The rule "positive on one side of a cut". `cut` values of the domain lie on the lower side.

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
        """The largest value on the lower side; None when all values are on the upper side."""
        return self.domain.decode(self.cut - 1) if self.cut else None

    def predict(self, x: Any) -> NDArray[np.bool_]:
        """Whether each value is positive. Values beyond the bounds count as the bounds; missing ones are negative."""
        values = _column(x)
        found = np.zeros(len(values), dtype=bool)
        present = np.asarray(values == values, dtype=bool)
        found[present] = (coded(self.domain, values[present]) < self.cut) == self.positive_below
        return found


def learn_threshold(
    x: Any,
    y: Any,
    *,
    epsilon: SupportsFloat,
    domain_size: SupportsIndex | None = None,
    lower: Any = None,
    upper: Any = None,
    granularity: Any = None,
    positives: Side = "below",
    method: ThresholdMethod = "errors",
    delta: SupportsFloat = 0.0,
    interior: Interior = "exponential",
    per_side: SupportsIndex | None = None,
    failure_probability: SupportsFloat = 0.05,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    spender: Spender | None = None,
    label: str = "threshold",
    random: RandomSource | None = None,
) -> Release:
    """Learn a threshold on one column from labelled rows; the release's value is a `Threshold`.

    - "errors" (the better one unless the domain is astronomical): a cut with probability proportional to
      exp(-rate * misclassified rows). Works for any labels; for `positives="either"` the direction is learnt as well.
    - "interior-point" (the paper's route, Theorem 3.9): an interior point of the `per_side` largest positive and the
      `per_side` smallest negative rows. Private for any labels; accurate only if some threshold makes no errors.

    Both take O(n log n) at most, without touching the domain. `threshold_rows` tells how many rows they need.

    Args:
        x: one number, whole number or moment a row; rows where it is NaN are left out, and of an array of objects
            those that are no whole numbers.
        y: one label a row, of a number type: 1 (or True) is positive, 0 negative; other rows are left out.
        domain_size, or lower, upper and granularity: the public domain, as for `quantile`; values beyond the bounds
            count as the bounds.
        epsilon, delta: the whole price; delta is spent by some interior points only.
        positives: on which side of the cut they are: "below", "above" or "either" (only for "errors").
        interior: for "interior-point": the method of `interior_point`. All but "exponential" need a delta; their
            value is None when they found none.
        per_side: for "interior-point"; from `failure_probability` and the domain when None. Public.
        adjacency: "add_or_remove_one" or "replace_one", of labelled rows.
        spender, label: where the price is paid, before the rows are looked at, and its name in the record.

    Raises `ArgumentError` or `TypeError` for arguments, types and shapes, never because of what the rows hold, and
    `BudgetError` when the spender refuses.

    >>> from dpselect.randomness import keyed_source
    >>> x = np.arange(100)
    >>> learn_threshold(x, x <= 60, lower=0, upper=99, epsilon=9.0, random=keyed_source(1)).value.value
    60
    """
    source = resolve(random)
    if positives not in get_args(Side):
        raise ArgumentError(f"positives must be one of {get_args(Side)}, got {positives!r}")
    if positives == "either" and method != "errors":
        raise ArgumentError("positives: the interior-point method needs a direction, 'below' or 'above'")
    column, labels = _column(typed(x, name="x")), labels_of_numbers(y)
    column, present = with_presence(column, name="x")
    if len(column) != len(labels):
        raise ArgumentError("y must have one label for each value of x")
    domain = declare_domain(column.dtype, domain_size=domain_size, lower=lower, upper=upper, granularity=granularity)
    public: dict[str, Any] = {
        "domain_size": domain.size,
        "epsilon": epsilon,
        "delta": delta,
        "interior": interior,
        "failure_probability": failure_probability,
        "adjacency": adjacency,
    }
    guarantee = threshold_guarantee(method=method, **public)
    half = 0
    if method == "interior-point":
        half = rows_per_side(**public) if per_side is None else integer("per_side", per_side, at_least=1)

    def run() -> Threshold | None:
        sides = [coded(domain, column[present & (labels == label)]) for label in (1, 0)]
        below, above = sides[::-1] if positives == "above" else sides
        turned, cut = 0, None
        if method == "errors":
            lengths, errors = error_runs(below, above, domain.size)
            if positives == "either":
                lengths, errors = np.tile(lengths, 2), np.append(errors, len(below) + len(above) - errors)
            rate = threshold_rate(epsilon=epsilon_used(guarantee.pure_epsilon), method=method, adjacency=adjacency)
            turned, cut = divmod(draw_from_runs(lengths, -errors, rate=rate, random=source), domain.size + 1)
        else:
            points = boundary_points(below, above, domain.size, half)
            cut = interior_point(points, random=source, **interior_search(**public)).value
        positive_below = (positives != "above") != bool(turned)
        rule = None if cut is None else Threshold(domain, cut, positive_below)
        return rule

    return paid(run, guarantee, spender=spender, label=label, replayable=source.replayable)


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

    The largest `per_side` of code + 1 in `below`, filled up with 0; the smallest `per_side` codes in `above`, filled
    up with `size`. Every cut between the two groups makes no error where some cut makes none.
    """
    largest = [int(code) + 1 for code in _smallest(below, per_side, last=True)]
    least = [int(code) for code in _smallest(above, per_side, last=False)]
    return sorted([0] * (per_side - len(largest)) + largest + least + [size] * (per_side - len(least)))


def _smallest(codes: Codes, count: int, *, last: bool) -> Codes:
    """The smallest, or the largest, `count` codes or all of them."""
    if len(codes) <= count:
        return codes
    if codes.dtype == object:
        ordered = np.sort(codes)
        return ordered[-count:] if last else ordered[:count]
    if last:
        return np.partition(codes, len(codes) - count)[len(codes) - count :]
    return np.partition(codes, count - 1)[:count]


def coded(domain: Domain, values: NDArray[Any]) -> Codes:
    """The codes of values that are not missing, as one array whatever the size of the domain."""
    if isinstance(domain, WholeNumbers) and values.dtype.kind not in "iuO":
        raise TypeError(f"values must be whole numbers, as those of the domain are, got {values.dtype}")
    codes = domain.encode(values)
    return np.array(codes, dtype=object) if isinstance(codes, list) else codes


def _column(x: Any) -> NDArray[Any]:
    values = np.asarray(x)
    if values.ndim != 1:
        raise ArgumentError("x must be one-dimensional")
    if values.dtype.kind == "b":
        values = values.astype(np.uint8)
    if values.dtype.kind not in "iufMO":
        raise TypeError(f"x must be numbers, whole numbers or timestamps, got {values.dtype}")
    return values


def labels_of_numbers(y: Any) -> NDArray[Any]:
    """The labels as a one-dimensional array of numbers."""
    labels = np.asarray(typed(y, name="y"))
    if labels.ndim != 1:
        raise ArgumentError("y must be one-dimensional")
    if labels.dtype.kind not in "biuf":
        raise TypeError(f"y must be of a number type, 1 for positive and 0 for negative, got {labels.dtype}")
    return labels
