"""What orders its data, on bad pairs, for `tests.audits.shipped_mechanisms`.

A row more at one end, or one that moves from one end to the other, on a domain of a few values.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from dpselect.audit import Subject
from dpselect.mechanisms import noisy_count
from dpselect.ordered import (
    count_cells,
    interior_point as point_inside,
    learn_rectangle,
    learn_threshold,
    private_range,
    quantile,
    quantile_interval,
    quantiles,
    quantiles_by_group,
)
from dpselect.ordered.interior_points import ScoreRuns, maximize_quasi_concave
from dpselect.ordered.interior_points.interior_point import CumulativeInteriorPoint
from dpselect.ordered.interior_points.optimisation_reduction import QuasiConcaveByInteriorPoint
from dpselect.ordered.interior_points.tree_log_tuning import tuned_cumulative
from dpselect.ordered.slices import Ordered, ReorderSliceCompute
from dpselect.privacy import pure_dp
from dpselect.randomness import RandomSource
from tests.audits.shipped import audited, label, released

__all__: list[str] = []

POINT = ("ordered.interior_point", "ordered.InteriorPoint")
QUANTILE = ("ordered.quantile", "ordered.Quantile")
QUANTILES = ("ordered.quantiles", "ordered.Quantiles")
THRESHOLD = ("ordered.learn_threshold", "ordered.ThresholdLearner")
RECTANGLE = ("ordered.learn_rectangle", "ordered.RectangleLearner")
MAXIMUM = ("ordered.interior_points.maximize_quasi_concave", "ordered.QuasiConcave")
BY_POINT = ("ordered.QuasiConcaveByInteriorPoint",)

MOVED = (np.array([0, 0, 0, 7, 7, 7]), np.array([0, 0, 7, 7, 7, 7]))
ADDED = (np.array([0, 0, 0, 7, 7, 7]), np.array([0, 0, 0, 7, 7, 7, 7]))
EPSILON = 1.0
LARGE = 4.0
"""Where epsilon is shared by several parts or few draws can be made."""


def ends(low: int, high: int) -> np.ndarray[Any, Any]:
    """So many rows at 0 and so many at 7."""
    return np.array([0] * low + [7] * high)


CUT = (
    (np.array([0, 0, 7, 7]), np.array([1, 1, 0, 0])),
    (np.array([0, 0, 7, 7, 7]), np.array([1, 1, 0, 0, 1])),
)
"""Rows of one number, and their labels."""


def several(values: Any) -> str:
    """The parts of an answer as one label; none as one more."""
    return "none" if values is None else label(values)


@audited(*POINT, of=("cumulative",), draws=100, many=5_000)
@audited(*POINT, of=("binary_search",), draws=100, many=8_000, planted=0.25)
@audited(*POINT, of=("tree_log_printed",), draws=100, many=8_000, planted=0.5)
@audited(*POINT, of=("tree_log",), draws=100, many=3_000)
@audited(*POINT, of=("dyadic",), draws=100, many=3_000)
@audited(*POINT, of=("exponential",), draws=300, many=12_000, planted=0.5)
def interior_point(method: Any) -> Subject:
    """`interior_point` by one of its methods, with so many rows at either end that no answer is certain."""
    rows = {"tree_log": 80, "cumulative": 320}.get(method, 3)
    options: dict[str, Any] = {} if method == "exponential" else {"delta": 0.02, "failure_probability": 0.2}
    if replaced := method == "cumulative":
        options["adjacency"] = "replace_one"
    return released(
        f"interior point, {method}",
        partial(point_inside, domain_size=8, epsilon=EPSILON, method=method, **options),
        (ends(rows, rows), ends(rows - replaced, rows + 1)),
    )


@audited(*POINT, draws=200, many=8_000, planted=0.6)
def counted_interior_point() -> Subject:
    """`interior_point` behind a noisy count."""
    return released(
        "interior point, counted",
        partial(point_inside, domain_size=8, epsilon=EPSILON, count_epsilon=0.5, method="exponential"),
        (ends(6, 6), ends(6, 7)),
    )


@audited("ordered.CumulativeInteriorPoint", draws=200, many=5_000)
def cumulative() -> Subject:
    """`CumulativeInteriorPoint` by itself."""
    point = CumulativeInteriorPoint(bits=3, parameters=tuned_cumulative(3, EPSILON, 0.02, 0.2, 1), distance=1)
    return released("interior point, cumulative", point, (ends(320, 320), ends(319, 321)))


@audited(*QUANTILE, of=("permute_and_flip",), draws=300, many=12_000, planted=0.8)
@audited(*QUANTILE, of=("exponential",), draws=300, many=12_000, planted=0.6)
def median(mechanism: Any) -> Subject:
    """`quantile` by one of its mechanisms."""
    run = partial(quantile, q=0.5, lower=0, upper=7, epsilon=EPSILON, mechanism=mechanism)
    return released(f"median, {mechanism}", run, ADDED)


@audited(*QUANTILE, draws=300, many=10_000, planted=0.7)
def replaced_median() -> Subject:
    """`quantile` under replace-one."""
    run = partial(quantile, q=0.5, lower=0, upper=7, epsilon=EPSILON, adjacency="replace_one")
    return released("median, replace-one", run, MOVED)


@audited("ordered.quantile_interval", draws=100, many=5_000, planted=0.25)
def interval() -> Subject:
    """`quantile_interval`."""
    run = partial(quantile_interval, q=0.5, lower=0, upper=7, epsilon=LARGE, failure_probability=0.5)
    return released("interval around the median", run, (ends(3, 3), ends(3, 4)), several)


@audited(*QUANTILES, of=("slice",), draws=600, many=5_000, heavy=True)
@audited(*QUANTILES, of=("independent",), draws=100, many=6_000, planted=0.2)
@audited(*QUANTILES, of=("tree",), draws=100, many=6_000, planted=0.4)
@audited(*QUANTILES, of=("recursive",), draws=100, many=6_000, planted=0.1)
@audited(*QUANTILES, of=("joint",), draws=100, many=6_000, planted=0.2)
def two_quantiles(method: Any) -> Subject:
    """`quantiles` by one of its methods; few rows, so that no answer is certain."""
    rows = {"joint": [0, 3, 3], "recursive": [3, 3]}.get(method, [0, 0, 3, 3])
    epsilon, delta = (EPSILON if method == "tree" else LARGE), (0.01 if method == "slice" else None)
    run = partial(quantiles, qs=[0.25, 0.75], lower=0, upper=3, epsilon=epsilon, method=method, delta=delta)
    return released(f"two quantiles, {method}", run, (np.array(rows), np.array([*rows, 3])), several)


@audited("ordered.quantiles_by_group", "ordered.GroupedQuantiles", draws=300, many=10_000, planted=0.2)
def medians_by_group() -> Subject:
    """`quantiles_by_group`: a row moves from one group to the other."""

    def run(data: tuple[list[int], str], random: RandomSource) -> Any:
        domain: dict[str, Any] = {"lower": 0, "upper": 1, "epsilon": EPSILON, "adjacency": "replace_one"}
        rows, groups = data
        return quantiles_by_group(np.array(rows), list(groups), names=["a", "b"], qs=[0.5], **domain, random=random)

    return released(
        "medians by group",
        run,
        (([1, 1, 1, 0, 0, 0, 0], "aaaabbb"), ([1, 1, 1, 0, 0, 0, 0], "aaabbbb")),
        lambda found: several([value for (value,) in found.values()]),
    )


@audited("ordered.private_range", "ordered.PrivateRange", draws=150, many=5_000, planted=0.15)
def public_range() -> Subject:
    """`private_range`: the signs and the sizes of its two ends."""

    def sizes(ends: tuple[float, float]) -> str:
        return label(0 if end == 0.0 else (1 if end > 0.0 else -1) * (1 if abs(end) < 2.0 else 2) for end in ends)

    return released("range", partial(private_range, epsilon=2.0 * LARGE), ([1.0], [1.0, 1.0]), sizes)


@audited("ordered.count_cells", "ordered.CellCounts", draws=300, many=12_000, planted=0.6)
def counted_cells() -> Subject:
    """`count_cells`: a row moves between two counts."""

    def signs(found: Any) -> str:
        return label(min(max(count, 0), 2) for count in found)

    run = partial(count_cells, lower=0, upper=5, epsilon=EPSILON, adjacency="replace_one")
    return released("cells", run, (np.array([0, 7]), np.array([0, 0])), signs)


@audited(*THRESHOLD, of=("below", "interior-point"), draws=300, many=8_000, planted=0.4)
@audited(*THRESHOLD, of=("either", "errors"), draws=300, many=8_000, planted=0.5)
@audited(*THRESHOLD, of=("below", "errors"), draws=300, many=8_000, planted=0.3)
def threshold(positives: Any, method: Any) -> Subject:
    """`learn_threshold` by one of its methods."""
    per_side = 2 if method == "interior-point" else None
    fixed = {"lower": 0, "upper": 7, "epsilon": EPSILON, "positives": positives, "method": method, "per_side": per_side}
    return released(
        f"threshold, {method}, {positives}",
        lambda data, random: learn_threshold(*data, **fixed, random=random),
        CUT,
        lambda rule: label([rule.cut, rule.positive_below]),
    )


@audited(*RECTANGLE, of=("noisy",), draws=1000, many=5_000, heavy=True)
@audited(*RECTANGLE, of=("plain",), draws=200, many=5_000)
def rectangle(slicing: Any) -> Subject:
    """`learn_rectangle` on one axis, slices with and without noise."""
    return released(
        f"rectangle, {slicing} slices",
        lambda data, random: learn_rectangle(
            *data,
            lower=0,
            upper=7,
            epsilon=4.0,
            delta=0.001 if slicing == "noisy" else 0.0,
            failure_probability=0.9,
            slicing=slicing,
            random=random,
        ),
        tuple((x[:, None], np.ones(len(x))) for x in (ends(20, 20), ends(20, 21))),  # type: ignore[arg-type]
        lambda found: label([*found.first, *found.last]),
    )


@audited(*MAXIMUM, draws=300, many=10_000, planted=0.5)
def over_runs() -> Subject:
    """`QuasiConcave` on `ScoreRuns`."""
    pair = tuple(ScoreRuns([0, 1, 4], scores, upper=7) for scores in ([1, 0, 0], [0, 1, 1]))
    return released("maximum over runs", partial(maximize_quasi_concave, epsilon=EPSILON), pair)  # type: ignore[arg-type]


@audited(*BY_POINT, of=("cumulative",), draws=100, many=500, heavy=True)
@audited(*BY_POINT, of=("exponential",), draws=100, planted=0.5)
def maximum_by_interior_point(method: Any) -> Subject:
    """`QuasiConcaveByInteriorPoint` by one of its methods."""
    delta = 0.01 if method == "cumulative" else 0.0
    mechanism = QuasiConcaveByInteriorPoint(epsilon=EPSILON, delta=delta, method=method)
    pair = tuple(ScoreRuns([0, 3, 4], scores, upper=7) for scores in ([0, 20, 0], [1, 19, 1]))
    return released(f"maximum by an interior point, {method}", mechanism, pair)  # type: ignore[arg-type]


@audited(*MAXIMUM, draws=300, many=10_000, planted=0.5)
def quasi_concave() -> Subject:
    """`maximize_quasi_concave`."""
    run = partial(maximize_quasi_concave, lower=0, upper=7, epsilon=EPSILON)
    return released("maximum of a quasi-concave score", run, (lambda z: float(z == 0), lambda z: float(z > 0)))


@audited("ordered.slices.ReorderSliceCompute", draws=200, many=5_000, planted=0.1)
def slices() -> Subject:
    """`ReorderSliceCompute`: the sizes of two noisy slices."""

    def run(rows: list[int], random: RandomSource) -> Any:
        session = ReorderSliceCompute(
            rows, slice_epsilon=1.0, computation=pure_dp(epsilon=1.0), slices=2, random=random
        )
        cuts = [
            session.slice_and_compute(2, Ordered(), lambda part: noisy_count(sum(part), epsilon=1.0, random=random))
            for _ in range(2)
        ]
        return session.release([min(max(cut, -2), 4) for cut in cuts])

    return released("reorder, slice, compute", run, ([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1]), several)
