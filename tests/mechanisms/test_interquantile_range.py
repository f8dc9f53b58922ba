"""The interquantile range: distances by brute force, guarantees by the oracle, and its distribution."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpselect.mechanisms import InterquantileRange
from dpselect.mechanisms.propose_test_release import answered
from dpselect.privacy.output.calculus import coarsen
from dpselect.randomness import keyed_source
from tests.audits.propose_test_laws import (
    interquantile_range_law,
    stages_law,
)
from tests.mechanisms.instability_cases import counted, fits
from tests.mechanisms.propose_test_release_cases import (
    audited_delta,
    cheaper_versions,
    interquantile_range,
    multisets,
    needed_delta,
    trimmed_mean,
)

ROUNDING = 1e-12
FAR = 1000


@pytest.mark.parametrize(("count", "ratio"), [(5, 1.5), (6, 2.0), (4, 3.0)])
@pytest.mark.parametrize("shifted", [False, True])
def test_the_distance_to_another_bin_by_brute_force(count, ratio, shifted):
    """The bins are intervals of real numbers here, and integers in the mechanism."""
    universe = (-FAR, *range(9), FAR)
    mechanism = interquantile_range(ratio=ratio)
    low, high = mechanism.ranks(count)
    everything = multisets(universe, count)

    def place(rows):
        width = rows[high - 1] - rows[low - 1]
        return None if width == 0 else math.floor(math.log(width) / math.log(ratio) + 0.5 * shifted + 1e-9)

    places = {x: place(x) for x in everything}
    table = np.array([[x.count(v) for v in universe] for x in everything])
    held = np.array([-1 if p is None else p for p in places.values()])
    for x in everything[:: max(len(everything) // 150, 1)]:
        if max(map(abs, x)) == FAR:
            continue
        distance, level = mechanism.examined(np.array(x), shifted=shifted)
        own = -1 if places[x] is None else places[x]
        moved = count - np.minimum(table, [x.count(v) for v in universe]).sum(axis=1)
        assert distance == moved[held != own].min() - 1
        assert (level is None) == (places[x] is None)
        if level is not None:
            assert (level + 0.5 * shifted * mechanism.steps) // mechanism.steps == own


@pytest.mark.parametrize(("count", "ranks"), [(2, (1, 2)), (3, (1, 3)), (4, (2, 3)), (5, (2, 4)), (100, (26, 75))])
def test_the_ranks_of_the_quartiles(count, ranks):
    """floor(n/4) + 1 from either end, and never past the middle."""
    assert interquantile_range().ranks(count) == ranks


@pytest.mark.cases(1)
@pytest.mark.parametrize(("count", "ratio", "steps"), [(4, 2.0, 2), (5, 1.5, 4), (6, 3.0, 3)])
def test_the_interquantile_range_keeps_its_guarantee(count, ratio, steps):
    mechanism = interquantile_range(ratio=ratio, steps=steps)
    universe = (0, 1, 2, 3, 40)
    levels = [round(math.log(w) / math.log(ratio) * steps) for w in (1, 40)]
    reach = (levels[0] - 2 * steps, levels[1] + 2 * steps)
    laws = {x: interquantile_range_law(mechanism, np.array(x), reach) for x in multisets(universe, count)}
    for law in itertools.islice(laws.values(), 0, None, 7):
        assert sum(law.values()) == pytest.approx(1, abs=ROUNDING)
    found = audited_delta(interquantile_range_law, mechanism, universe, count, reach)
    assert 0.4 * mechanism.delta <= found <= mechanism.guarantee.delta + ROUNDING
    merged = coarsen(mechanism.guarantee, merge=bool, cell=answered)
    assert dict(merged.epsilons) == {False: 1.2, True: pytest.approx(1.7)}
    found = audited_delta(interquantile_range_law, mechanism, universe, count, reach, merged)
    assert found <= merged.delta + ROUNDING


def test_zoo_smaller_prices_of_two_stages_are_caught():
    """From distances and levels as larger data have them: a distance moves by one, a level by less than a bin."""
    mechanism = interquantile_range(steps=4, delta=0.04)
    places = [(1, 0), (2, 3), (9, 0), (10, 3)]

    def needed(guarantee):
        games = [
            [stages_law(mechanism, stages, (-1, 4)) for stages in ((a, c), (b, d))]
            for a, b, c, d in itertools.product(places, repeat=4)
            if abs(a[0] - b[0]) <= 1 and abs(c[0] - d[0]) <= 1
        ]
        return max(needed_delta(*pair, guarantee) for pair in games)

    assert needed(mechanism.guarantee) <= ROUNDING
    for wrong in cheaper_versions(mechanism.guarantee):
        assert needed(wrong) > 1e-4


@pytest.mark.full
@pytest.mark.parametrize("rows", [(0, 0, 3, 3, 4, 5), (2, 2, 2, 2, 2, 2), (0, 1, 5, 9, 9, 20)])
def test_interquantile_ranges_follow_their_exact_law(rows):
    """2,000 draws, as above."""
    mechanism = interquantile_range()
    logarithm = math.log(2.0)
    reach = (-8, 16)
    law = interquantile_range_law(mechanism, np.array(rows), reach)

    def level(output):
        if output is None:
            return None
        stage, width = output
        if width == 0.0:
            return stage, None
        return stage, min(max(round(math.log(width) / logarithm * 2 - 0.5), reach[0] - 1), reach[1] + 1)

    outputs = (mechanism.draw(rows, random=keyed_source(i)) for i in range(2000))
    assert fits(counted(map(level, outputs)), law)


def test_extreme_data_are_data():
    mechanism = InterquantileRange(granularity=1.0, epsilon_test=1.0, epsilon_answer=0.01, delta=0.5)
    for rows in ([1e300, -1e300] * 20, [math.nan] * 40, [0.0] * 40, [1e300] * 10 + [0.0] * 30):
        for key in range(5):
            output = mechanism.draw(rows, random=keyed_source(key))
            assert output is None or (output[0] in (1, 2) and 0.0 <= output[1] < math.inf)
        assert trimmed_mean(delta=0.5).draw(rows, random=keyed_source(1)) != math.inf
