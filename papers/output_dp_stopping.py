"""Lemma 11 and Theorem 15 of Hartmann et al. (2022): what runs save that may stop early. No number is printed."""

from __future__ import annotations

import math
from typing import Final

from scipy.optimize import brentq

from dpselect.accounting import iterative
from dpselect.accounting.stopping.optimal_stopping import ApproximateStepsGame, approximate_steps_delta
from dpselect.privacy import Guarantee, compose, gaussian, pure_dp
from dpselect.privacy.output.optimal_composition import composition_delta
from papers.output_dp_laws import largest_prefix_free_sum, sum_over_stops
from papers.table import Context, Curve, Figure, Part, Row

__all__ = ["early_stopping"]

_GAMES: Final = (
    # epsilon of a step, its delta, stops, prices
    (0.5, 0.01, (1, 2), (0.3, 0.6)),
    (0.5, 0.0, (1, 2), (0.3, 0.6)),
    (0.5, 0.0, (1, 2), (0.1, 0.9)),
    (0.5, 0.001, (2, 4), (0.5, 1.5)),
    (0.2, 0.0, (3, 6), (0.3, 0.5)),
)
_TENTHS: Final = tuple(range(10, 101, 10))


def early_stopping(context: Context) -> Part:
    """Both statements on small games, exactly, and the prices of stopping points of runs of 100 steps."""
    rows = []
    for epsilon, delta, stops, prices in _GAMES:
        exact = approximate_steps_delta(
            epsilons=[epsilon] * stops[-1], deltas=[delta] * stops[-1], stops=stops, prices=prices
        )
        what = f"steps ({epsilon}, {delta}), stops {stops}, prices {prices}"
        rows += [
            Row(
                name=f"delta by Theorem 15, {what}",
                paper=largest_prefix_free_sum(epsilon, delta, stops, prices),
                ours=exact,
                optimal=exact,
                tolerance=1e-10,
                note="equation (3), output by output; ours: a recursion over losses",
            ),
            Row(
                name=f"delta by Lemma 11, {what}",
                paper=sum_over_stops(epsilon, delta, stops, prices),
                ours=math.fsum(
                    composition_delta(count=k, epsilon=epsilon, delta=delta, total_epsilon=price)
                    for k, price in zip(stops, prices, strict=True)
                ),
                optimal=exact,
                tolerance=1e-10,
                note="equation (4), output by output",
            ),
        ]
    grids = [tuple(range(25, 101, 25)), _TENTHS, *([] if context.quick else [tuple(range(5, 101, 5))])]
    for grid in grids:
        context.progress(f"{len(grid)} stopping points")
        rows += _pure_savings(grid)
    gaussian_rows, figure = _gaussian_savings()
    open_ = (
        "how delta is divided over the stopping points (we: equally), and any number for a concrete run",
        "how to evaluate Theorem 15, called #P-complete: it is an optimal stopping problem, solved by one recursion",
    )
    return Part(source="Lemma 11, Theorem 15", rows=(*rows, *gaussian_rows), figures=(figure,), unspecified=open_)


def _pure_savings(stops: tuple[int, ...]) -> list[Row]:
    """0.1-private steps, delta 1e-5 in all: what stops cost by Lemma 11 with optimal composition, and by ours."""
    share = 1e-5 / len(stops)
    prices = [_composed_epsilon(k, 0.1, share) for k in stops]
    best = iterative(lambda n: compose(*[pure_dp(epsilon=0.1)] * n), stops=stops, delta=1e-5)
    game = ApproximateStepsGame(epsilons=[0.1] * 100, deltas=[0.0] * 100, stops=stops)
    what = f"{len(stops)} stops up to 100 steps of epsilon 0.1, delta 1e-5"
    unsaid = "no number is printed; ours: Lemma 11, optimal: Theorem 15"
    rows = [
        Row(name=f"price of stop {k}, {what}", ours=price, optimal=best.price(k), note=unsaid)
        for k, price in zip(stops, prices, strict=True)
        if k in (stops[0], 50, 100)
    ]
    needed = game.upper(prices)
    row = Row(name=f"delta that Lemma 11 claims, {what}", ours=1e-5, optimal=needed, note=unsaid)
    return [*rows, row]


def _gaussian_savings() -> tuple[list[Row], Figure]:
    """Steps of 0.001-zCDP, stops 10, 20, ..., 100: Lemma 11 with the zCDP formula, with exact Gaussians, and ours."""

    def steps(count: int) -> Guarantee:
        return gaussian(noise_multiplier=1.0 / math.sqrt(0.002 * count))

    concentrated = [0.001 * k + 2.0 * math.sqrt(0.001 * k * math.log(len(_TENTHS) / 1e-5)) for k in _TENTHS]
    summed = iterative(steps, stops=_TENTHS, delta=1e-5, bound="sum")
    best = iterative(steps, stops=_TENTHS, delta=1e-5)
    without = steps(100).epsilon(1e-5)
    note = f"no number is printed; without stopping points all 100 steps cost {without:.4f}"
    rows = [
        Row(
            name=f"price of stop {k}, 10 stops up to 100 Gaussian steps of 0.001-zCDP, delta 1e-5",
            ours=summed.price(k),
            optimal=best.price(k),
            note=note,
        )
        for k in (10, 20, 50, 100)
    ]
    figure = Figure(
        name="iterative-savings",
        title="What a run pays that stops early, delta 1e-5",
        x_label="steps done",
        y_label="epsilon charged",
        curves=(
            Curve("no stopping points: all 100 steps", _TENTHS, (without,) * len(_TENTHS)),
            Curve("Lemma 11 with the zCDP formula", _TENTHS, concentrated, ":"),
            Curve("Lemma 11 with exact Gaussians", _TENTHS, [summed.price(k) for k in _TENTHS], "--"),
            Curve("optimal stopping", _TENTHS, [best.price(k) for k in _TENTHS], "o-"),
        ),
    )
    return rows, figure


def _composed_epsilon(count: int, epsilon: float, delta: float) -> float:
    """The epsilon of so many epsilon-private mechanisms at delta, on the whole optimal curve."""

    def excess(total: float) -> float:
        return composition_delta(count=count, epsilon=epsilon, total_epsilon=total) - delta

    high = count * epsilon
    return high if excess(high * (1.0 - 1e-12)) > 0.0 else float(brentq(excess, 0.0, high, xtol=1e-9))
