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

from dpselect.errors import ArgumentError
from dpselect.ledger import InsufficientBudget, Ledger
from dpselect.ordered import Quantiles, median, private_range, quantile, quantile_interval, quantiles
from dpselect.ordered.order_statistics.one import quantile_rate
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from tests.ordered.order_statistics.several_cases import BASE, SIZE, law, score

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE


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


@pytest.mark.parametrize("method", ["joint", "recursive", "independent", "tree"])
def test_values_come_in_the_order_that_was_asked_for_with_repeats(method):
    options = {"lower": 0, "upper": 1000, "granularity": 1, "epsilon": 50.0, "random": keyed_source(4)}
    found = quantiles(list(range(1000)), qs=[0.9, 0.1, 0.1, 0.5], method=method, **options)
    assert found.qs == (0.9, 0.1, 0.1, 0.5)
    assert found.value == pytest.approx([900, 100, 100, 500], abs=25)
    assert found.value[1] == found.value[2]
    assert len(found.rank_errors()) == 4


def test_repeats_are_paid_for_once():
    once = Quantiles(qs=[0.1, 0.9], epsilon=1.0, method="recursive")
    assert Quantiles(qs=[0.9, 0.1, 0.1], epsilon=1.0, method="recursive").rates == once.rates


def test_evenly_spaced_quantiles_are_taken():
    found = Quantiles(qs=np.linspace(0, 1, 301)[1:-1], epsilon=1.0, method="recursive")
    assert len(found.qs) == 299
    assert found.qs[0] == Fraction(1, 300)
    tiny = Quantiles(qs=[1.2345678901234567e-19], epsilon=1.0).qs[0]
    assert tiny.denominator < 2**60


FOUR = [0.1, 0.25, 0.5, 0.75]


@pytest.mark.parametrize("qs", [FOUR, [0.25, 0.5, 0.75], [k / 10 for k in range(1, 10)]])
@pytest.mark.parametrize("size", [1, 101, 1 << 49, 1 << 70])
def test_the_least_bound_is_the_least_that_a_method_proves(qs, size):
    """Four quantiles by the joint method are proved to be within 409 ranks, and independent ones within 279."""
    plan = Quantiles(epsilon=1.0, qs=qs, domain_size=size)
    method, error = plan.proved_best(size)
    assert max(Quantiles(epsilon=1.0, qs=qs, method=method).rank_errors(size)) == error
    for other in ("joint", "recursive", "independent") if size <= 1 << 64 else ("independent",):
        assert error <= max(Quantiles(epsilon=1.0, qs=qs, method=other).rank_errors(size))
    assert Quantiles(epsilon=1.0, qs=qs, domain_size=size, method="least_bound").chosen == method


@pytest.mark.parametrize(
    ("count", "rows", "size", "adjacency", "method"),
    [
        (9, 2000, 1 << 49, "add_or_remove_one", "recursive"),
        (9, 4000, 1 << 49, "add_or_remove_one", "joint"),
        (9, 500, 1 << 49, "replace_one", "recursive"),
        (9, 1000, 1 << 49, "replace_one", "joint"),
        (9, 2000, 4096, "add_or_remove_one", "tree"),
        (9, 2500, 4096, "add_or_remove_one", "joint"),
        (3, 3000, 4096, "add_or_remove_one", "recursive"),
        (3, 10**6, 1 << 40, "add_or_remove_one", "recursive"),
        (3, 3000, 1 << 49, "replace_one", "joint"),
        (2, 2000, 1 << 49, "add_or_remove_one", "joint"),
    ],
)
def test_auto_goes_by_the_expected_rows_a_quantile(count, rows, size, adjacency, method):
    """At epsilon 0.1, with the constants of `benchmarks/quantiles_ties.py rule`."""
    qs = [(k + 1) / (count + 1) for k in range(count)]
    plan = Quantiles(epsilon=0.1, qs=qs, domain_size=size, expected_rows=rows, adjacency=adjacency)
    assert plan.chosen == method


def test_the_least_bound_is_found_for_the_columns_own_domain_and_weights():
    found = quantiles(range(100), qs=FOUR, lower=0, upper=100, granularity=1, epsilon=1.0, method="least_bound")
    assert found.plan.chosen == found.plan.proved_best(101)[0]
    assert max(found.rank_errors()) < 66
    weighted = quantiles(
        [1, 2], qs=FOUR, weights=[1.0, 0.5], lower=0, upper=100, granularity=1, epsilon=1.0, method="least_bound"
    )
    assert weighted.plan.chosen in ("independent", "recursive")
    assert Quantiles(epsilon=1.0, qs=FOUR, method="least_bound").chosen == "independent"


def test_the_recursive_method_is_left_out_where_ties_stay():
    """A domain of 64 bits leaves no places for rows of one value: its stated errors would leave such ties out."""
    for size in (2**64, 2**58):
        plan = Quantiles(qs=[0.25, 0.5, 0.95], epsilon=1.0, domain_size=size)
        assert plan.chosen != "recursive"
        assert plan.proved_best(size)[0] != "recursive"
    assert Quantiles(qs=[0.25, 0.5, 0.95], epsilon=1.0, domain_size=2**40).chosen == "recursive"
    assert Quantiles(qs=[0.25, 0.5, 0.95], epsilon=1.0, domain_size=2**40, expected_rows=10**9).chosen == "joint"
