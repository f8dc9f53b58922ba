"""Figures 1 and 2 of Hartmann et al. (2022): the noise of a sparse vector's values, and of a private test.

The text gives all parameters of the first figure and some of the second, but no values. Where a formula fixes a
number, the paper's column is that formula, computed apart from this library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from dpselect.accounting import gated
from dpselect.accounting.stopping.gate import logistic_error_shift, noise_unit
from dpselect.learners import GatedRelease
from dpselect.mechanisms import SparseRelease, balanced_split
from dpselect.mechanisms.sparse_vector_prices import sparse_vector_guarantee
from dpselect.numerics.search import Array
from dpselect.privacy import pure_dp
from papers.output_dp_laws import expected_scales
from papers.table import Context, Curve, Figure, Part, Row

__all__ = ["noise_on_the_test", "sparse_vector_release"]

# ---- Figure 1: a sparse vector and the values of what it found

_CAP, _ENTRIES, _LARGE, _THRESHOLD = 20, 100, 1000.0, 500.0
_SCALES: Final = {1: 1.06656786, 2: 2.18685360, 5: 5.91391724, 10: 13.6928366, 15: 24.3841207, 19: 36.3267265, 20: 40.0}


def sparse_vector_release(context: Context) -> Part:
    """Figure 1: 100 entries of 0 or 1000, at most 20 hits, epsilon 1 in all."""
    first, second = balanced_split(epsilon=0.5, max_positives=_CAP)
    price = sparse_vector_guarantee(epsilon_threshold=first, epsilon_queries=second, max_positives=_CAP)
    search = SparseRelease(
        epsilon_threshold=first, epsilon_queries=second, epsilon_release=0.5, max_positives=_CAP, spend="all"
    )
    scales = np.array([hits / (1.0 - price.price(hits)) for hits in range(_CAP + 1)])
    counts = np.arange(1, _CAP + 1)
    exact = expected_scales(first, second, _CAP, _ENTRIES, _LARGE - _THRESHOLD, scales)
    rows = [
        Row(
            name=f"scale of a value's noise after {hits} of at most 20 hits",
            paper=known,
            ours=float(scales[hits]),
            optimal=search.scale(hits, _ENTRIES - hits),
            tolerance=1e-8 * known + 1e-8,
        )
        for hits, known in _SCALES.items()
    ]
    rows += [
        Row(
            name=f"expected scale, {large} large entries (40 without the method)",
            ours=float(exact[large - 1]),
            note="the figure shows a bound by Chebyshev's inequality",
        )
        for large in (1, 2, 5, 10, 15, 18, 20)
    ]
    shown, means, halves = _released_scales(context, search)
    figure = Figure(
        name="figure-1",
        title="Noise on each released entry, 100 entries, epsilon 1",
        x_label="large entries",
        y_label="scale of the Laplace noise",
        curves=(
            Curve("without output privacy", counts, (40.0,) * _CAP),
            Curve("with it, expected (exact)", counts, exact),
            Curve("with it, bounded by Chebyshev", counts, _chebyshev(first, second, scales), "--"),
            Curve("the shipped mechanism, mean of runs", shown, means, "o", band=halves),
        ),
    )
    open_ = (
        "the values of the figure, what 'amount of noise' is (we take the Laplace scale), and how Chebyshev's "
        "inequality is applied (we bound each comparison's error by it and use that the scale is convex in the hits)",
    )
    return Part(source="Figure 1, Lemma 8", rows=tuple(rows), figures=(figure,), unspecified=open_)


def _released_scales(context: Context, search: SparseRelease) -> tuple[Sequence[int], list[float], list[float]]:
    """(large entries, mean scale over runs that released anything, three standard errors)."""
    runs, shown = (60, (1, 5, 10, 15, 20)) if context.quick else (300, (1, 2, 5, 8, 10, 12, 15, 18, 20))
    means, halves = [], []
    for large in shown:
        context.progress(f"a sparse vector with {large} large entries")
        values = np.where(np.arange(_ENTRIES) % (_ENTRIES // large) < 1, _LARGE, 0.0)
        values[np.flatnonzero(values)[large:]] = 0.0
        found = []
        for run in range(runs):
            source = context.random.spawn(f"{large} {run}")
            shuffled = values[source.permutation(_ENTRIES)]
            answers = search.draw(shuffled, threshold=_THRESHOLD, random=source).answers
            hits = int(np.count_nonzero(answers))
            found += [search.scale(hits, len(answers) - hits)] if hits else []
        means.append(float(np.mean(found)))
        halves.append(3.0 * float(np.std(found)) / math.sqrt(len(found)))
    return shown, means, halves


def _chebyshev(first: float, second: float, scales: Array) -> tuple[float, ...]:
    """A comparison errs with probability v = Var/500^2 at most, so that v (100 - m) small entries are expected."""
    variance = 2.0 * (1.0 / first) ** 2 + 2.0 * (2.0 * _CAP / second) ** 2
    wrong = variance / (_LARGE - _THRESHOLD) ** 2
    bounds = []
    for large in range(1, _CAP + 1):
        share = 1.0 if large == _CAP else min(1.0, wrong * (_ENTRIES - large) / (_CAP - large))
        bounds.append(float(scales[large] + (scales[_CAP] - scales[large]) * share))
    return tuple(bounds)


# ---- Figure 2: the noise of a private test

_PERCENTILES: Final = {
    (100, 1.0): 0.153505673, (100, 0.1): 1.53505673, (1000, 1.0): 0.0153505673, (1000, 0.1): 0.153505673,
    (10_000, 1.0): 0.00153505673, (10_000, 0.1): 0.0153505673, (100_000, 1.0): 1.53505673e-4,
    (100_000, 0.1): 1.53505673e-3,
}  # fmt: skip
_UNITS: Final = {
    (1000, 1.0): 0.00666666667,
    (1000, 0.1): 0.0579670141,
    (1000, 0.01): 0.661424395,
    (10_000, 0.01): 0.0579670141,
}


def _unit(rows: int, strength: float, *, tight: bool = False) -> float:
    train, test = round(0.7 * rows), round(0.3 * rows)
    shift = logistic_error_shift(2.0 / (train * strength), bound="tight" if tight else "paper")
    return noise_unit(train_shift=shift, test_shift=2.0 / test)


def noise_on_the_test(context: Context) -> Part:
    """Figure 2, and what the test costs: 70 % of the rows to train, 30 to test."""
    rows = [
        Row(
            name=f"95th percentile, n = {n}, epsilon_2 = {epsilon:g}, Lambda = 1",
            paper=known,
            ours=_unit(n, 1.0) / epsilon * math.log(10.0),
            optimal=_unit(n, 1.0, tight=True) / epsilon * math.log(10.0),
            tolerance=1e-8 * known,
        )
        for (n, epsilon), known in _PERCENTILES.items()
    ]
    rows += [
        Row(
            name=f"the noise's unit a, n = {n}, Lambda = {strength:g}",
            paper=known,
            ours=_unit(n, strength),
            optimal=_unit(n, strength, tight=True),
            tolerance=1e-8 * known,
        )
        for (n, strength), known in _UNITS.items()
    ]
    rows += [_withheld(context), *_gate_prices()]
    sizes = tuple(float(n) for n in np.geomspace(100, 100_000, 25).round())
    figure = Figure(
        name="figure-2",
        title="95th percentile of the test's noise (70% train, 30% test)",
        x_label="rows",
        y_label="noise on the mean error",
        log_x=True,
        log_y=True,
        curves=tuple(
            Curve(
                f"Lambda = {strength:g}, epsilon_2 = {epsilon:g}{', tight' if tight else ''}",
                sizes,
                [_unit(int(n), strength, tight=tight) / epsilon * math.log(10.0) for n in sizes],
                style,
            )
            for strength, epsilon, tight, style in (
                (1.0, 1.0, False, "-"),
                (1.0, 0.1, False, "-"),
                (0.01, 1.0, False, "-"),
                (0.01, 1.0, True, "--"),
            )
        ),
    )
    open_ = ("the plotted values of epsilon_2 and n; Lambda = 1 never shows the training term of a, which we add",)
    return Part(source="Figure 2, Theorem 17", rows=tuple(rows), figures=(figure,), unspecified=open_)


def _withheld(context: Context) -> Row:
    runs, unit, epsilon = 2000 if context.quick else 20_000, _unit(1000, 1.0), 1.0
    threshold = 0.5
    error = threshold + unit / epsilon * math.log(10.0)
    withheld = sum(
        GatedRelease(training=pure_dp(epsilon=1.0), max_error=threshold, test_epsilon=epsilon, test_shift=unit)(
            lambda _random: "model", lambda _model: error, random=context.random
        ).value
        is None
        for _ in range(runs)
    )
    return Row(
        name=f"share withheld in {runs} runs when the error is t + the percentile",
        paper=0.95,
        ours=withheld / runs,
        tolerance=5.0 * math.sqrt(0.95 * 0.05 / runs),
        known="claim",
        note="the caption; to five standard errors",
    )


def _gate_prices() -> list[Row]:
    """Corollary 18, and Theorem 17 where epsilon_1 is the smaller one (300 test rows, Lambda = 0.01)."""
    small = gated(pure_dp(epsilon=0.001), test_epsilon=1.0, test_shift=2.0 / 300, train_shift=_unit(1000, 0.01))
    usual = gated(pure_dp(epsilon=1.0), test_epsilon=0.1, test_shift=2.0 / 300, train_shift=2.0 / 300)
    known = (
        ("a model, epsilons 1 and 0.1", usual, "released", 1.0),
        ("nothing, epsilons 1 and 0.1", usual, "none", 0.1),
        ("a model, epsilons 0.001 and 1", small, "released", 0.0100792573),
    )
    return [
        Row(name=f"price of {what}", paper=value, ours=gate.price(cell), tolerance=1e-9)
        for what, gate, cell, value in known
    ]
