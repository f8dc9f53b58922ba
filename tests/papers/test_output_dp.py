"""`python -m papers output-dp`: every row, and the parts that its rows rest on, against other computations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from papers.output_dp import PAPER
from papers.output_dp_laws import largest_prefix_free_sum, least_steps_that_gain, sum_over_stops
from papers.table import Context

from dpselect.privacy.output.optimal_composition import composition_delta
from dpselect.randomness import keyed_source
from tests.papers.reproductions import assert_documented, assert_explained, assert_repeats, reproduced, row_named


@pytest.fixture(scope="module")
def parts():
    return reproduced(PAPER)


@pytest.mark.full
def test_every_row_is_reproduced_or_explained(parts):
    assert list(parts) == [
        "sparse vector release", "noise on the test", "advanced composition", "early stopping", "one delta",
    ]  # fmt: skip
    assert_explained(parts)


@pytest.mark.full
def test_table_1_is_off_by_one_in_every_column(parts):
    rows = parts["advanced composition"].rows
    assert [row.paper for row in rows] == [17, 20, 24, 27, 31, 35, 38, 42]
    assert all(row.paper - row.ours == 1 and row.ours == row.optimal for row in rows)
    assert {row.verdict for row in rows} == {"differs, explained"}
    # ours needs so many, and one fewer is not enough, by another program's sums
    for row, power in zip(rows, range(5, 13), strict=True):
        k = int(row.ours)
        deltas = [composition_delta(count=n, epsilon=0.1, total_epsilon=round(0.1 * (n - 2), 9)) for n in (k, k - 1)]
        assert deltas[0] <= 10.0**-power < deltas[1]
    assert least_steps_that_gain(0.1, 1e-5) == 16


@pytest.mark.full
def test_expected_scales_of_figure_1(parts):
    """Numbers from an independent integration, to four digits; the shipped mechanism's means, within six errors."""
    part = parts["sparse vector release"]
    known = {1: 1.259, 2: 2.383, 5: 6.130, 10: 13.95, 15: 24.71, 18: 33.34, 20: 39.89}
    for large, scale in known.items():
        assert row_named(part, f"expected scale, {large} large").ours == pytest.approx(scale, rel=5e-4)
    without, exact, bound, shipped = part.figures[0].curves
    assert all(a < b <= c for a, b, c in zip(exact.y, bound.y, without.y, strict=True) if b < c)
    at = dict(zip(exact.x, exact.y, strict=True))
    for large, mean, half in zip(shipped.x, shipped.y, shipped.band, strict=True):
        assert abs(mean - at[large]) <= 2 * half + 1e-9


@pytest.mark.full
def test_the_test_of_figure_2(parts):
    part = parts["noise on the test"]
    assert row_named(part, "share withheld").verdict == "reproduced"
    worse = [row.ours / row.optimal for row in part.rows if row.name.startswith("the noise's unit")]
    assert worse == pytest.approx([1.0, 4.0578, 4.6378, 4.0578], rel=1e-4)
    slopes = [np.polyfit(np.log(c.x), np.log(c.y), 1)[0] for c in part.figures[0].curves[:2]]
    assert slopes == pytest.approx([-1.0, -1.0], abs=1e-2)  # parts of 70 and 30 % are rounded to whole rows


@pytest.mark.full
@pytest.mark.parametrize(
    ("epsilon", "delta", "stops", "prices", "exact", "summed"),
    [
        (0.5, 0.01, (1, 2), (0.3, 0.6), 0.1450943973, 0.2667988041),
        (0.5, 0.0, (1, 2), (0.3, 0.6), 0.1277363506, 0.2405690848),
        (0.5, 0.0, (1, 2), (0.1, 0.9), 0.2052123637, 0.2420836408),
        (0.5, 0.001, (2, 4), (0.5, 1.5), 0.1553681839, 0.2169725881),
        (0.2, 0.0, (3, 6), (0.3, 0.5), 0.0606719514, 0.0921711928),
    ],
)
def test_equations_3_and_4(epsilon, delta, stops, prices, exact, summed):
    """Published worked examples, from enumeration by another program."""
    assert largest_prefix_free_sum(epsilon, delta, stops, prices) == pytest.approx(exact, abs=1e-10)
    assert sum_over_stops(epsilon, delta, stops, prices) == pytest.approx(summed, abs=1e-10)


@pytest.mark.full
def test_equation_3_over_all_sets():
    """Literally: all 2**4 sets of outputs after one step, and the best set of longer ones without these prefixes."""
    epsilon, delta, prices = 0.5, 0.01, (0.3, 0.6)
    keep = (1 - delta) / (1 + math.exp(-epsilon))
    lie = (1 - delta) / (1 + math.exp(epsilon))
    upper, lower = (delta, keep, lie, 0.0), (0.0, lie, keep, delta)
    best = 0.0
    for first in itertools.product((0, 1), repeat=4):
        value = sum(upper[a] - math.exp(prices[0]) * lower[a] for a in range(4) if first[a])
        for a, b in itertools.product(range(4), repeat=2):
            if not first[a]:
                value += max(upper[a] * upper[b] - math.exp(prices[1]) * lower[a] * lower[b], 0.0)
        best = max(best, value)
    assert largest_prefix_free_sum(epsilon, delta, (1, 2), prices) == pytest.approx(best, abs=1e-14)


@pytest.mark.full
def test_stopping_points_are_cheaper_by_the_optimal_bound(parts):
    part = parts["early stopping"]
    prices = [row for row in part.rows if row.name.startswith("price of stop")]
    assert all(row.optimal < row.ours for row in prices)
    assert row_named(part, "price of stop 10, 10 stops up to 100 Gaussian").ours == pytest.approx(0.575055, abs=1e-6)
    assert row_named(part, "price of stop 100, 10 stops up to 100 steps").ours == pytest.approx(4.774568, abs=1e-6)
    assert row_named(part, "delta that Lemma 11 claims, 4 stops").optimal == pytest.approx(8.151999e-6, rel=1e-6)
    whole, formula, summed, best = (curve.y for curve in part.figures[0].curves)
    assert all(a > b > c for a, b, c in zip(formula, summed, best, strict=True))
    assert best[0] < whole[0] < best[-1]  # stopping early saves, the right to stop costs a little


@pytest.mark.full
def test_one_delta_for_the_whole(parts):
    part = parts["one delta"]
    assert row_named(part, "delta of two").ours == pytest.approx(0.0199, abs=1e-12)
    assert row_named(part, "delta 0.02 allowed").ours == pytest.approx(0.637627982, abs=1e-9)
    assert row_named(part, "leak when").ours == pytest.approx(0.095207853, abs=1e-9)


@pytest.mark.full
def test_the_page_shows_these_rows(parts):
    assert_documented(PAPER, parts)


@pytest.mark.full
def test_a_second_run_gives_the_same(parts):
    assert_repeats(PAPER, parts, "noise on the test")


@pytest.mark.slow
def test_full_mode():
    found = dict(PAPER.run(Context(False, keyed_source(2026))))
    assert_explained(found)
    assert row_named(found["early stopping"], "price of stop 5, 20 stops").optimal > 0
