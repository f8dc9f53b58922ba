"""What the other audits leave open: shifted targets, weights, trees under both adjacencies; and paying by a ledger."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy.signal import fftconvolve

from dpselect.errors import ArgumentError
from dpselect.ledger import InsufficientBudget, Ledger
from dpselect.ordered import Quantiles, median, private_range, quantile, quantile_interval, quantiles
from dpselect.ordered.order_statistics.one import quantile_rate
from dpselect.ordered.order_statistics.tree import node_counts, sum_of_noise, tree_levels
from dpselect.ordered.sources.declared import Column
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE
SIZE, BASE = 3, Fraction(2)


def rows_of(most, marks=(1,)):
    """All sorted tuples of (value, units) of up to so many rows."""
    kinds = list(itertools.product(range(SIZE), marks))
    return [r for n in range(most + 1) for r in itertools.combinations_with_replacement(kinds, n)]


def neighbours(rows, adjacency, marks):
    kinds = list(itertools.product(range(SIZE), marks))
    if adjacency is ADD:
        return [tuple(sorted((*rows, x))) for x in kinds]
    # a replaced row may also become one that is missing
    shorter = [(*rows[:i], *rows[i + 1 :]) for i in range(len(rows))]
    return [tuple(sorted((*rest, x))) for rest in shorter for x in kinds] + shorter


def score(rows, z, target):
    at_most = sum(u for x, u in rows if x <= z)
    below = sum(u for x, u in rows if x < z)
    return min(at_most - target, target - below)


def law(rows, rate, target, power):
    weights = [BASE ** int(power * rate * score(rows, z, target)) for z in range(SIZE)]
    assert all((power * rate * score(rows, z, target)).denominator == 1 for z in range(SIZE))
    return [w / sum(weights) for w in weights]


def largest_range(rate_of, target_of, adjacency, power, marks=(1,), most=4):
    """The largest range of log ratios between neighbours, as a power of the base."""
    laws = {}
    for rows in rows_of(most, marks):
        total = sum(u for _, u in rows)
        laws[rows] = law(rows, rate_of, target_of(total), power)
    found = Fraction(1)
    for rows in laws:
        for other in neighbours(rows, adjacency, marks):
            if other in laws:
                ratios = [a / b for a, b in zip(laws[rows], laws[other], strict=True)]
                found = max(found, max(ratios) / min(ratios))
    return found


@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
@pytest.mark.parametrize(("q", "shift"), [("0", 2), ("1", -2), ("1/2", 1), ("1/2", -3), ("1/3", 2), ("1", 0), ("0", 0)])
def test_shifted_targets_of_ranges_and_intervals(adjacency, q, shift):
    """`private_range` aims `shift` ranks inside the ends, `quantile_interval` on both sides of q n."""
    q = Fraction(q)
    rate = quantile_rate(q, Fraction(1), adjacency, shifted=bool(shift))
    power = math.lcm(rate.denominator, (rate * q).denominator)
    found = largest_range(rate, lambda total: q * total + shift, adjacency, power)
    assert found <= BASE**power  # exp(epsilon)
    if q in (0, 1) and shift:  # the rate of an unshifted end would be too large
        greedy = quantile_rate(q, Fraction(1), adjacency)
        power = math.lcm(greedy.denominator, (greedy * q).denominator)
        assert largest_range(greedy, lambda total: q * total + shift, adjacency, power) > BASE**power


@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
@pytest.mark.parametrize("q", ["0", "1/3", "1/2", "1"])
def test_weights_are_within_epsilon(adjacency, q):
    """Rows of one or two units, at the rate for two."""
    q = Fraction(q)
    rate = quantile_rate(q, Fraction(1), adjacency, units=2)
    power = math.lcm(rate.denominator, (rate * q).denominator)
    assert largest_range(rate, lambda total: q * total, adjacency, power, marks=(1, 2), most=3) <= BASE**power
    careless = quantile_rate(q, Fraction(1), adjacency, units=1)
    power = math.lcm(careless.denominator, (careless * q).denominator)
    assert largest_range(careless, lambda total: q * total, adjacency, power, marks=(1, 2), most=3) > BASE**power


@pytest.mark.cases(1)
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
def test_weighted_cuts_are_within_epsilon(adjacency):
    """The law of recursive cuts of rows with one or two units; a row is in one part, with all its units."""
    qs = (Fraction(1, 4), Fraction(1, 2))
    plan = Quantiles(epsilon=1.0, qs=qs, method="recursive", adjacency=adjacency, units=2)
    power = math.lcm(*((rate * cut.share).denominator * rate.denominator for cut, rate in zip(plan.cuts, plan.rates, strict=True)))  # fmt: skip # noqa: E501

    def joint_law(rows):
        outcomes = {(): Fraction(1)}
        for cut, rate in zip(plan.cuts, plan.rates, strict=True):
            longer = {}
            for drawn, chance in outcomes.items():
                place = {c.index: z for c, z in zip(plan.cuts, drawn, strict=False)}
                low, last = place.get(cut.low, -1), place.get(cut.high, SIZE - 1)
                origin = min(low + 1, last)
                part = [(x, u) for x, u in rows if low < x and (x <= last or cut.high is None)]
                target = cut.share * sum(u for _, u in part)
                weights = [BASE ** int(power * rate * score(part, z, target)) for z in range(origin, last + 1)]
                for step, w in enumerate(weights):
                    longer[(*drawn, origin + step)] = chance * w / sum(weights)
            outcomes = longer
        return outcomes

    laws = {rows: joint_law(rows) for rows in rows_of(3, (1, 2))}
    worst = Fraction(1)
    for rows in laws:
        for other in neighbours(rows, adjacency, (1, 2)):
            if other in laws:
                worst = max(worst, *(laws[rows][z] / laws[other][z] for z in laws[rows]))
                worst = max(worst, *(laws[other][z] / laws[rows][z] for z in laws[rows]))
    assert 1 < worst <= BASE**power


def test_all_units_of_a_row_fall_at_one_place():
    values, weights = np.array([3, 3, 3, 5]), np.array([1.0, 0.5, 0.25, 1.0])
    declared = Column(values, lower=0, upper=7, weights=weights)
    column = declared.scattered(keyed_source(1))
    window = column.window(1, column.total)
    assert sorted(window.counts.tolist()) == [256, 512, 1024, 1024]
    assert sorted(int(code) >> 61 for code in window.codes) == [3, 3, 3, 5]


@pytest.mark.statistical
@pytest.mark.parametrize("method", ["auto", "recursive", "tree", "independent"])
def test_several_quantiles_with_weights(method):
    rng = np.random.default_rng(2)
    values, weights = rng.integers(0, 101, 30_000), rng.random(30_000) * 3.0
    released = quantiles(
        values, qs=[0.2, 0.5, 0.9], lower=0, upper=100, epsilon=4.0, weights=weights, largest_weight=3.0,
        method=method, random=keyed_source(3),
    )  # fmt: skip
    total = weights.sum() / 3.0
    for q, value, error in zip([0.2, 0.5, 0.9], released.value, released.rank_errors(0.01), strict=True):
        assert weights[values <= value].sum() / 3.0 >= q * total - error - 20
        assert weights[values < value].sum() / 3.0 <= q * total + error + 20
        assert error < 1500
    with pytest.raises(ArgumentError, match="joint"):
        quantiles(values, qs=[0.2, 0.5], lower=0, upper=9, epsilon=1.0, weights=weights, method="joint")


@pytest.mark.parametrize("size", [1, 16, 17, 40])
@pytest.mark.parametrize(("adjacency", "factor"), [(ADD, 1), (REPLACE, 2)])
def test_noisy_trees_are_within_epsilon(size, adjacency, factor):
    """P(noise = k) is r^|k| up to a constant: the ratio of two laws of all counts is at most r^-(their L1 distance)."""
    counts = np.random.default_rng(1).integers(0, 3, size)
    most = 0
    for place, other in itertools.product(range(size), repeat=2):
        moved = counts.copy()
        moved[place] += 1
        if adjacency is REPLACE:
            moved[other] -= 1
        distance = sum(int(np.abs(a - b).sum()) for a, b in zip(node_counts(counts), node_counts(moved), strict=True))
        most = max(most, distance)
    assert most <= factor * tree_levels(size)  # which the scale of the noise is times 1/epsilon
    assert most == factor * tree_levels(size) or size == 1


@pytest.mark.parametrize(("count", "scale"), [(1, 3.0), (5, 0.7), (31, 20.0)])
def test_sums_of_noise_stay_within_the_bound(count, scale):
    decay = math.exp(-1.0 / scale)
    reach = int(400 * scale) + 400
    one = (1.0 - decay) / (1.0 + decay) * decay ** np.abs(np.arange(-reach, reach + 1.0))
    law = one
    for _ in range(count - 1):
        law = fftconvolve(law, one, mode="same")  # good to 1e-15
    values = np.abs(np.arange(-reach, reach + 1))
    for failure in (0.05, 1e-4):
        bound = sum_of_noise(count, scale, failure)
        assert law[values > bound].sum() <= failure
        assert law[values > bound / 2.0].sum() > failure


@pytest.mark.parametrize("call", [private_range, lambda rows, **o: quantile_interval(rows, q=0, lower=0, upper=9, **o)])
def test_ends_are_drawn_at_the_rate_of_shifted_targets(monkeypatch, call):
    """Two draws at half of epsilon = 1, where one row moves all scores by one."""
    rates = []

    def draw(column, *, size, target, rate, random):
        rates.append(rate)
        return 0

    monkeypatch.setattr(sys.modules["dpselect.ordered.order_statistics.private_range"], "draw_code", draw)
    for adjacency in (ADD, REPLACE):
        released = call([1.0], epsilon=1.0, adjacency=adjacency)
        assert released.guarantee.epsilon(delta=0) == 1.0
    assert rates == [Fraction(1, 4)] * 4


def test_atoms_of_streams_are_counted():
    values = np.concatenate([np.arange(100.0), np.full(200_000, 50.0), np.arange(100.0)])
    column = Column(values, lower=0.0, upper=100.0, granularity=1.0).ranked()
    window = column.window(100_000, 100_010)
    assert (window.before, window.codes.tolist(), window.counts.tolist(), window.after) == (100, [50], [200_002], 98)


# ---------------------------------------------------------------- paying


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(str(tmp_path / "budget.db")) as record:
        record.create_budget("all", epsilon=10)
        yield record


def test_every_function_pays_before_it_reads(ledger, monkeypatch):
    budget, rows = ledger.budget("all"), np.arange(1000.0)
    bounds = {"lower": 0.0, "upper": 1000.0}
    calls = [
        lambda **o: quantile(rows, q=0.5, epsilon=1.0, **bounds, **o),
        lambda **o: median(rows, epsilon=0.5, **bounds, **o),
        lambda **o: quantiles(rows, qs=[0.2, 0.5], epsilon=0.5, **bounds, **o),
        lambda **o: private_range(rows, epsilon=0.5, **o),
        lambda **o: quantile_interval(rows, q=0.5, epsilon=0.5, **bounds, **o),
    ]
    for call in calls:
        before = budget.remaining().epsilon
        released = call(spender=budget, label="a test")
        spent = float(before - budget.remaining().epsilon)
        assert spent == pytest.approx(released.guarantee.epsilon(delta=0), rel=1e-9)
        assert released.receipt.sequence is not None
        assert call().receipt is None
    monkeypatch.setattr("dpselect.ordered.sources.columns.ChunkedColumn._survey", lambda _: 1 / 0)
    for call in calls:
        before = budget.remaining().epsilon
        with pytest.raises(ZeroDivisionError):
            call(spender=budget)
        assert budget.remaining().epsilon < before  # what may have looked stays charged
    before = budget.remaining().epsilon
    with pytest.raises(InsufficientBudget):
        quantile(rows, q=0.5, epsilon=9.0, spender=budget, **bounds)  # and what is refused reads nothing
    with pytest.raises(ArgumentError):
        quantiles(rows, qs=[2.0], epsilon=1.0, spender=budget, **bounds)
    assert budget.remaining().epsilon == before


@pytest.mark.full
@pytest.mark.parametrize(
    ("stop", "status"), [("os._exit(77)", 77), ("os.kill(os.getpid(), signal.SIGINT) or time.sleep(9)", 130)]
)
def test_a_run_that_is_killed_or_interrupted_stays_charged(tmp_path, stop, status):
    where = str(tmp_path / "budget.db")
    with Ledger.open(where) as record:
        record.create_budget("all", epsilon=3)
    (tmp_path / "rows.csv").write_text("x\n" + "\n".join(str(k) for k in range(100)))
    script = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # what runs in the background may ignore Ctrl-C
        "from dpselect.ordered.sources.columns import ChunkedColumn; from dpselect.cli.app import main\n"
        f"ChunkedColumn._survey = lambda _: {stop}\n"
        f"sys.argv = {['dpselect', 'quantile', str(tmp_path / 'rows.csv'), '--column', 'x', '--q', '0.5', '--epsilon', '2', '--lower', '0', '--upper', '99', '--ledger', where, '--budget', 'all']}\n"  # noqa: E501
        "main()"
    )
    ended = subprocess.run([sys.executable, "-c", script], env=os.environ, check=False, capture_output=True)
    assert (ended.returncode, ended.stdout) == (status, b"")
    assert b"Traceback" not in ended.stderr
    with Ledger.open(where) as record:
        assert record.budget("all").remaining().epsilon == 1
        record.verify()
