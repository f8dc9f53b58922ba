"""What orders its data, on bad pairs, for `dpselect.testing.shipped_mechanisms`.

A row more at one end, or one that moves from one end to the other, on a domain of a few values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpselect.audit import Subject
from dpselect.mechanisms import noisy_count
from dpselect.ordered import (
    CumulativeInteriorPoint,
    Ordered,
    QuasiConcaveByInteriorPoint,
    ReorderSliceCompute,
    ScoreRuns,
    interior_point,
    learn_rectangle,
    learn_threshold,
    maximize_quasi_concave,
    private_range,
    quantile,
    quantile_interval,
    quantiles,
)
from dpselect.ordered.interior_points.tree_log_tuning import tuned_cumulative
from dpselect.privacy import pure_dp
from dpselect.randomness import RandomSource, keyed_source
from dpselect.testing.shipped import Shipped, audited, label, looped, number_or_nan

__all__ = ["ORDERED"]

ORDERED: list[Shipped] = []

POINT = ("ordered.interior_point", "ordered.InteriorPoint")
QUANTILE = ("ordered.quantile", "ordered.Quantile")
QUANTILES = ("ordered.quantiles", "ordered.Quantiles")
THRESHOLD = ("ordered.learn_threshold", "ordered.ThresholdLearner")
RECTANGLE = ("ordered.learn_rectangle", "ordered.RectangleLearner")
MAXIMUM = ("ordered.maximize_quasi_concave", "ordered.QuasiConcave")

MOVED = (np.array([0, 0, 0, 7, 7, 7]), np.array([0, 0, 7, 7, 7, 7]))
ADDED = (np.array([0, 0, 0, 7, 7, 7]), np.array([0, 0, 0, 7, 7, 7, 7]))
EPSILON = 1.0
LARGE = 4.0
"""Where epsilon is shared by several parts or few draws can be made."""


def ends(low: int, high: int) -> np.ndarray[Any, Any]:
    """So many rows at 0 and so many at 7."""
    return np.array([0] * low + [7] * high)


def labelled(x: list[int], y: list[int]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Rows of one number, and their labels."""
    return np.array(x), np.array(y)


CUT = (labelled([0, 0, 7, 7], [1, 1, 0, 0]), labelled([0, 0, 7, 7, 7], [1, 1, 0, 0, 1]))


def released(
    name: str,
    run: Callable[[Any, RandomSource], Any],
    pair: tuple[Any, Any],
    output: Callable[[Any], Any] = number_or_nan,
) -> Subject:
    """What a function returning a `Release` gives, with the guarantee that the release has."""
    claim = run(pair[0], keyed_source(0)).guarantee
    return looped(name, lambda data, random: output(run(data, random).value), pair, claim)


def several(values: Any) -> str:
    """The parts of an answer as one label; none as one more."""
    return "none" if values is None else label(values)


def point(method: Any, rows: int = 3, **options: Any) -> Callable[[], Subject]:
    """`interior_point` by one of its methods, with so many rows at either end that no answer is certain."""

    def make() -> Subject:
        return released(
            f"interior point, {method}",
            lambda data, random: interior_point(
                data, domain_size=8, epsilon=EPSILON, method=method, random=random, **options
            ),
            (ends(rows, rows), ends(rows - 1, rows + 1) if "adjacency" in options else ends(rows, rows + 1)),
        )

    make.__name__ = f"interior_point_{method}"
    return make


@audited(ORDERED, *POINT, draws=200, many=8_000, planted=0.6)
def counted_interior_point() -> Subject:
    """`interior_point` behind a noisy count."""
    return released(
        "interior point, counted",
        lambda data, random: interior_point(
            data, domain_size=8, epsilon=EPSILON, count_epsilon=0.5, method="exponential", random=random
        ),
        (ends(6, 6), ends(6, 7)),
    )


@audited(ORDERED, "ordered.CumulativeInteriorPoint", draws=200, many=5_000)
def cumulative() -> Subject:
    """`CumulativeInteriorPoint` by itself."""
    parameters = tuned_cumulative(3, EPSILON, 0.02, 0.2, 1)
    return released(
        "interior point, cumulative",
        lambda data, random: CumulativeInteriorPoint(bits=3, parameters=parameters, distance=1)(data, random=random),
        (ends(320, 320), ends(319, 321)),
    )


def one_quantile(mechanism: Any) -> Callable[[], Subject]:
    """`quantile` by one of its mechanisms."""

    def make() -> Subject:
        return released(
            f"median, {mechanism}",
            lambda data, random: quantile(
                data, q=0.5, lower=0, upper=7, epsilon=EPSILON, mechanism=mechanism, random=random
            ),
            ADDED,
        )

    make.__name__ = f"median_{mechanism}"
    return make


@audited(ORDERED, *QUANTILE, draws=300, many=10_000, planted=0.7)
def replaced_median() -> Subject:
    """`quantile` under replace-one."""
    return released(
        "median, replace-one",
        lambda data, random: quantile(
            data, q=0.5, lower=0, upper=7, epsilon=EPSILON, adjacency="replace_one", random=random
        ),
        MOVED,
    )


@audited(ORDERED, "ordered.quantile_interval", draws=100, many=5_000, planted=0.25)
def interval() -> Subject:
    """`quantile_interval`."""
    return released(
        "interval around the median",
        lambda data, random: quantile_interval(
            data, q=0.5, lower=0, upper=7, epsilon=LARGE, failure_probability=0.5, random=random
        ),
        (ends(3, 3), ends(3, 4)),
        several,
    )


def two_quantiles(method: Any) -> Callable[[], Subject]:
    """`quantiles` by one of its methods; few rows, so that no answer is certain."""
    rows = {"joint": [0, 3, 3], "recursive": [3, 3]}.get(method, [0, 0, 3, 3])

    def make() -> Subject:
        return released(
            f"two quantiles, {method}",
            lambda data, random: quantiles(
                data,
                qs=[0.25, 0.75],
                lower=0,
                upper=3,
                epsilon=EPSILON if method == "tree" else LARGE,
                method=method,
                delta=0.01 if method == "slice" else None,
                random=random,
            ),
            (np.array(rows), np.array([*rows, 3])),
            several,
        )

    make.__name__ = f"two_quantiles_{method}"
    return make


@audited(ORDERED, "ordered.private_range", "ordered.PrivateRange", draws=150, many=5_000, planted=0.15)
def public_range() -> Subject:
    """`private_range`: the signs and the sizes of its two ends."""

    def sizes(ends: tuple[float, float]) -> str:
        return label(0 if end == 0.0 else (1 if end > 0.0 else -1) * (1 if abs(end) < 2.0 else 2) for end in ends)

    return released(
        "range",
        lambda data, random: private_range(data, epsilon=2.0 * LARGE, random=random),
        ([1.0], [1.0, 1.0]),
        sizes,
    )


def threshold(positives: Any, method: Any) -> Callable[[], Subject]:
    """`learn_threshold` by one of its methods."""

    def make() -> Subject:
        return released(
            f"threshold, {method}, {positives}",
            lambda data, random: learn_threshold(
                *data,
                lower=0,
                upper=7,
                epsilon=EPSILON,
                positives=positives,
                method=method,
                per_side=2 if method == "interior-point" else None,
                random=random,
            ),
            CUT,
            lambda rule: label([rule.cut, rule.positive_below]),
        )

    make.__name__ = f"threshold_{positives}_{method}".replace("-", "_")
    return make


def rectangle(slicing: Any) -> Callable[[], Subject]:
    """`learn_rectangle` on one axis, slices with and without noise."""

    def make() -> Subject:
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

    make.__name__ = f"rectangle_{slicing}"
    return make


SCORES = ([1, 0, 0], [0, 1, 1])


@audited(ORDERED, *MAXIMUM, draws=300, many=10_000, planted=0.5)
def over_runs() -> Subject:
    """`QuasiConcave` on `ScoreRuns`."""
    return released(
        "maximum over runs",
        lambda scores, random: maximize_quasi_concave(
            ScoreRuns([0, 1, 4], scores, upper=7), epsilon=EPSILON, random=random
        ),
        SCORES,
    )


def by_interior_point(method: Any) -> Callable[[], Subject]:
    """`QuasiConcaveByInteriorPoint` by one of its methods."""
    delta = 0.01 if method == "cumulative" else 0.0
    mechanism = QuasiConcaveByInteriorPoint(epsilon=EPSILON, delta=delta, method=method)

    def make() -> Subject:
        return released(
            f"maximum by an interior point, {method}",
            lambda scores, random: mechanism(ScoreRuns([0, 3, 4], scores, upper=7), random=random),
            ([0, 20, 0], [1, 19, 1]),
        )

    make.__name__ = f"maximum_by_interior_point_{method}"
    return make


@audited(ORDERED, *MAXIMUM, draws=300, many=10_000, planted=0.5)
def quasi_concave() -> Subject:
    """`maximize_quasi_concave`."""
    return released(
        "maximum of a quasi-concave score",
        lambda peak, random: maximize_quasi_concave(
            lambda z: float(z == 0) if peak else float(z > 0), lower=0, upper=7, epsilon=EPSILON, random=random
        ),
        (True, False),
    )


@audited(ORDERED, "ordered.ReorderSliceCompute", draws=200, many=5_000, planted=0.1)
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


METHODS = (  # rows at either end, draws, planted
    ("dyadic", 3, 3_000, None),
    ("tree_log", 80, 3_000, None),
    ("tree_log_printed", 3, 8_000, 0.5),
    ("binary_search", 3, 8_000, 0.25),
)
FINE = {"delta": 0.02, "failure_probability": 0.2}

ORDERED += [
    Shipped(make=point("exponential"), covers=POINT, draws=300, many=12_000, planted=0.5),
    *(
        Shipped(make=point(method, rows, **FINE), covers=POINT, draws=100, many=many, planted=planted)
        for method, rows, many, planted in METHODS
    ),
    Shipped(make=point("cumulative", 320, adjacency="replace_one", **FINE), covers=POINT, draws=100, many=5_000),
    *(
        Shipped(make=one_quantile(mechanism), covers=QUANTILE, draws=300, many=12_000, planted=planted)
        for mechanism, planted in (("exponential", 0.6), ("permute_and_flip", 0.8))
    ),
    *(
        Shipped(make=two_quantiles(method), covers=QUANTILES, draws=100, many=6_000, planted=planted)
        for method, planted in (("joint", 0.2), ("recursive", 0.1), ("tree", 0.4), ("independent", 0.2))
    ),
    Shipped(make=two_quantiles("slice"), covers=QUANTILES, draws=600, many=5_000, heavy=True),
    *(
        Shipped(
            make=threshold(positives, method),
            covers=THRESHOLD,
            draws=300,
            many=8_000,
            planted=planted,
        )
        for positives, method, planted in (
            ("below", "errors", 0.3),
            ("either", "errors", 0.5),
            ("below", "interior-point", 0.4),
        )
    ),
    *(
        Shipped(make=rectangle(slicing), covers=RECTANGLE, draws=draws, many=5_000, heavy=draws > 200)
        for slicing, draws in (("plain", 200), ("noisy", 1000))
    ),
    *(
        Shipped(
            make=by_interior_point(method),
            covers=("ordered.QuasiConcaveByInteriorPoint",),
            draws=100,
            many=many,
            heavy=planted is None,
            planted=planted,
        )
        for method, many, planted in (("exponential", 20_000, 0.5), ("cumulative", 500, None))
    ),
]
