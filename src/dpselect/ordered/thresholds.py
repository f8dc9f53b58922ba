"""Private thresholds: the rule "x is at most u" learnt from labelled rows (Cohen et al. 2022, Section 3).

A cut c of a domain puts the codes below c on the lower side; there are size + 1 cuts. A positive row with code k asks
for c >= k + 1, a negative one for c <= k. In these terms the shift by one between positive and negative rows, without
which an interior point may misclassify every negative row, is there by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, SupportsFloat, SupportsIndex, get_args

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, integer
from dpselect.mechanisms.bounded_range import bounded_range
from dpselect.ordered.domains import Domain
from dpselect.ordered.intervals import exponential_interior_point
from dpselect.ordered.quantile import parse_epsilon
from dpselect.ordered.runs import draw_from_runs
from dpselect.ordered.sources import declare_domain
from dpselect.ordered.threshold_rows import interior_point_rows
from dpselect.privacy import Adjacency, Guarantee, Release
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.randomness import RandomSource, resolve

__all__ = [
    "Side",
    "Threshold",
    "ThresholdMethod",
    "boundary_points",
    "error_runs",
    "learn_threshold",
    "threshold_guarantee",
    "threshold_rate",
]

ThresholdMethod = Literal["errors", "interior-point"]
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
        codes = self.domain.encode(values[present])
        found[present] = np.array([(code < self.cut) == self.positive_below for code in codes], dtype=bool) if (
            isinstance(codes, list)
        ) else ((codes < self.cut) == self.positive_below)  # fmt: skip
        return found


def threshold_rate(
    *,
    epsilon: Fraction,
    method: ThresholdMethod = "errors",
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> Fraction:
    """The largest rate at which the exponential mechanism of `learn_threshold` has range epsilon.

    "errors": a row that is added adds 0 or 1 to the errors of every cut, so log-weights span at most rate: epsilon.
    A replaced row moves them by at most 1 either way: epsilon/2.

    "interior-point": the score is min(#{p <= c}, #{p >= c}) over the 2m points p. A positive row that is added moves
    one of the m largest up, a negative one moves one of the m smallest down; either way one point is swapped and every
    score moves by at most 1, some up and some down: epsilon/2. A replaced row may swap two points, one in each half
    and both in the same direction (a positive that becomes a negative), so scores move by at most 2: epsilon/4.

    >>> threshold_rate(epsilon=Fraction(1), method="interior-point", adjacency="replace_one")
    Fraction(1, 4)
    """
    replaced = parse_adjacency(adjacency) is Adjacency.REPLACE_ONE
    if method not in get_args(ThresholdMethod):
        raise ArgumentError(f"method must be one of {get_args(ThresholdMethod)}, got {method!r}")
    return epsilon / ((1 if method == "errors" else 2) * (2 if replaced else 1))


def threshold_guarantee(
    *,
    epsilon: SupportsFloat,
    method: ThresholdMethod = "errors",
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> Guarantee:
    """What `learn_threshold` with the same arguments promises: range epsilon, and so pure epsilon.

    >>> threshold_guarantee(epsilon=0.5).epsilon(delta=0)
    0.5
    """
    claimed = bounded_range(epsilon=parse_epsilon(epsilon), adjacency=adjacency)
    threshold_rate(epsilon=Fraction(1), method=method)
    return replace(claimed, terms={"mechanism": "threshold", "method": method, "epsilon": claimed.pure_epsilon})


def learn_threshold(
    x: Any,
    y: Any,
    *,
    lower: Any,
    upper: Any,
    epsilon: SupportsFloat,
    granularity: Any = None,
    positives: Side = "below",
    method: ThresholdMethod = "errors",
    per_side: SupportsIndex | None = None,
    failure_probability: SupportsFloat = 0.05,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    random: RandomSource | None = None,
) -> Release:
    """Learn a threshold on one column from labelled rows; the release's value is a `Threshold`.

    - "errors" (the better one for every domain that fits in memory): a cut with probability proportional to
      exp(-rate * misclassified rows). Works for any labels; for `positives="either"` the direction is learnt as well.
    - "interior-point" (the paper's route, Theorem 3.9): an interior point of the `per_side` largest positive and the
      `per_side` smallest negative rows. Private for any labels; accurate only if some threshold makes no errors.

    Both are exponential mechanisms, drawn exactly, in O(n log n) at most, without touching the domain. How many rows
    they need stands in `threshold_rows`.

    Args:
        x: one number, whole number or moment a row; rows where it is NaN are left out.
        y: one label a row, of a number type: 1 (or True) is positive, 0 negative; other rows are left out.
        lower, upper, granularity: the public domain, as for `quantile`; values beyond the bounds count as the bounds.
        epsilon: the price.
        positives: on which side of the cut they are: "below", "above" or "either" (only for "errors").
        per_side: for "interior-point"; from `failure_probability` and the domain when None. Public.
        adjacency: "add_or_remove_one" or "replace_one", of labelled rows.

    Raises `ArgumentError` or `TypeError` for arguments, types and shapes, never because of what the rows hold.

    >>> from dpselect.randomness import keyed_source
    >>> x = np.arange(100)
    >>> learn_threshold(x, x <= 60, lower=0, upper=99, epsilon=9.0, random=keyed_source(1)).value.value
    60
    """
    guarantee = threshold_guarantee(epsilon=epsilon, method=method, adjacency=adjacency)
    rate = threshold_rate(epsilon=Fraction(guarantee.pure_epsilon), method=method, adjacency=adjacency)
    source = resolve(random)
    if positives not in get_args(Side):
        raise ArgumentError(f"positives must be one of {get_args(Side)}, got {positives!r}")
    if positives == "either" and method != "errors":
        raise ArgumentError("positives: the interior-point method needs a direction, 'below' or 'above'")
    column, labels = _column(x), _labels(y)
    if len(column) != len(labels):
        raise ArgumentError("y must have one label for each value of x")
    domain = declare_domain(column.dtype, lower=lower, upper=upper, granularity=granularity)
    present = np.asarray(column == column, dtype=bool)
    sides = [_codes(domain, column[present & (labels == label)]) for label in (1, 0)]
    below, above = sides[::-1] if positives == "above" else sides
    if method == "errors":
        lengths, errors = error_runs(below, above, domain.size)
        if positives == "either":
            lengths, errors = np.tile(lengths, 2), np.append(errors, len(below) + len(above) - errors)
        place = draw_from_runs(lengths, -errors, rate=rate, random=source)
        turned, cut = divmod(place, domain.size + 1)
    else:
        wanted = (
            interior_point_rows(domain.size, float(rate), failure_probability)
            if per_side is None
            else integer("per_side", per_side, at_least=1)
        )
        points = boundary_points(below, above, domain.size, wanted)
        turned = 0
        cut = int(
            exponential_interior_point(
                points, lower=0, upper=domain.size, epsilon=rate, monotonic=True, random=source
            )
        )
    rule = Threshold(domain, cut, positive_below=(positives != "above") != bool(turned))
    return Release(value=rule, guarantee=guarantee, replayable=source.replayable)


def error_runs(below: Codes, above: Codes, size: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Runs of cuts 0 .. size with equal errors: their lengths and errors. Secret.

    Cut c misclassifies the codes of `below` that are >= c and those of `above` that are < c.
    """
    values, place = np.unique(np.concatenate([below, above]), return_inverse=True)
    wanted = np.bincount(place[: len(below)], minlength=len(values))
    unwanted = np.bincount(place[len(below) :], minlength=len(values))
    errors = len(below) + np.concatenate(([0], np.cumsum(unwanted - wanted))).astype(np.int64)
    wide = values.astype(object) if size + 1 >= 1 << 64 else values.astype(np.uint64)
    # cuts 0 .. v_1, then v_1 + 1 .. v_2, and so on up to size
    ends = np.concatenate([wide + 1 if wide.dtype == object else wide + np.uint64(1), [size + 1]]).astype(wide.dtype)
    return np.diff(ends, prepend=wide.dtype.type(0) if wide.dtype != object else 0), errors


def boundary_points(below: Codes, above: Codes, size: int, per_side: int) -> list[int]:
    """The cuts that the rows at the boundary ask for, sorted: 2 * per_side numbers from 0 to size. Secret.

    The largest `per_side` of code + 1 in `below`, filled up with 0; the smallest `per_side` codes in `above`, filled
    up with `size`. Every cut between the two groups makes no error where some cut makes none.
    """
    largest = [int(code) + 1 for code in _smallest(below, per_side, last=True)]
    least = [int(code) for code in _smallest(above, per_side, last=False)]
    return sorted(
        [0] * (per_side - len(largest)) + largest + least + [size] * (per_side - len(least))
    )


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


def _codes(domain: Domain, values: NDArray[Any]) -> Codes:
    codes = domain.encode(values)
    return np.array(codes, dtype=object) if isinstance(codes, list) else codes


def _column(x: Any) -> NDArray[Any]:
    values = np.asarray(x)
    if values.ndim != 1:
        raise ArgumentError("x must be one-dimensional")
    if values.dtype.kind == "b":
        values = values.astype(np.uint8)
    if values.dtype.kind not in "iufMO":
        raise TypeError(f"x must be numbers, whole numbers or moments, got {values.dtype}")
    return values


def _labels(y: Any) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ArgumentError("y must be one-dimensional")
    if labels.dtype.kind not in "biuf":
        raise TypeError(f"y must be of a number type, 1 for positive and 0 for negative, got {labels.dtype}")
    return labels
