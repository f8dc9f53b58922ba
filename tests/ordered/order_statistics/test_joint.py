"""The joint exponential mechanism: its exact law, its price, and sums along the chain that may not be too small."""

from __future__ import annotations

import importlib.util
import itertools
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.ordered import quantiles
from dpselect.ordered.domains import WholeNumbers
from dpselect.ordered.order_statistics import joint
from dpselect.ordered.order_statistics.intervals import SortedColumn
from dpselect.ordered.order_statistics.joint import _reach, joint_codes, joint_error, joint_rate
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from dpselect.randomness.lazy import exponential_enclosure
from tests.root import ROOT

THREE = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE


def scores(rows, qs, size):
    """{sequence: score} by the definition."""
    edges = [Fraction(0), *qs, Fraction(1)]
    wanted = [(b - a) * len(rows) for a, b in itertools.pairwise(edges)]
    found = {}
    for sequence in itertools.combinations_with_replacement(range(size), len(qs)):
        ranks = [0, *(sum(x <= z for x in rows) for z in sequence), len(rows)]
        groups = [b - a for a, b in itertools.pairwise(ranks)]
        found[sequence] = -sum((abs(g - w) for g, w in zip(groups, wanted, strict=True)), Fraction(0))
    return found


@pytest.mark.parametrize("qs", [(Fraction(1, 4), Fraction(1, 2)), (Fraction(1, 10), Fraction(1, 3), Fraction(2, 3))])
@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
def test_every_ratio_is_within_epsilon_in_rational_arithmetic(qs, adjacency):
    size, base = 3, 2
    rate = joint_rate(qs, Fraction(1), adjacency)
    units = rate.denominator * math.lcm(*(q.denominator for q in qs))

    def law(rows):
        weights = {z: Fraction(base) ** int(units * rate * s) for z, s in scores(rows, qs, size).items()}
        total = sum(weights.values())
        return {z: w / total for z, w in weights.items()}

    laws = {r: law(r) for n in range(5) for r in itertools.combinations_with_replacement(range(size), n)}
    worst = Fraction(0)
    for rows in laws:
        others = {tuple(sorted((*rows, x))) for x in range(size)}
        if adjacency is REPLACE:
            others = {tuple(sorted((*rows[:i], x, *rows[i + 1 :]))) for i in range(len(rows)) for x in range(size)}
        for other in others & set(laws):
            ratios = [laws[rows][z] / laws[other][z] for z in laws[rows]]
            worst = max(worst, max(ratios) / min(ratios))
    assert 1 < worst <= base**units  # exp(epsilon) bounds even the range


@settings(max_examples=60, deadline=None)
@given(
    placed=st.lists(st.floats(0, 1), min_size=1, max_size=40),
    wanted=st.floats(0, 45),
    slope=st.floats(1e-3, 3),
)
def test_sums_along_the_chain(placed, wanted, slope):
    terms = [
        sum(p * math.exp(-slope * abs(i - j - wanted)) for j, p in enumerate(placed[:i])) for i in range(len(placed))
    ]
    # relative: the correction allows 2**-18; below 1e-280 a floor is added afterwards
    assert np.allclose(_reach(np.array(placed), wanted, slope), terms, rtol=1e-10, atol=1e-290)


CASES = [
    ([0, 2, 2, 3], (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)), 4, Fraction(1, 3)),
    ([], (Fraction(1, 4), Fraction(1, 2)), 3, Fraction(1)),
    ([1, 1, 1, 1], (Fraction(1, 3), Fraction(9, 10)), 3, Fraction(1, 2)),
    ([0, 1, 2, 3, 4, 5], (Fraction(1, 2), Fraction(2, 3)), 6, Fraction(1)),
]


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize(("rows", "qs", "size", "rate"), CASES)
def test_draws_follow_the_law(rows, qs, size, rate):
    weights = {z: math.exp(rate * s) for z, s in scores(rows, qs, size).items()}
    random, draws, seen = keyed_source(2), 1500, dict.fromkeys(weights, 0)
    column = SortedColumn(np.array(rows, dtype=np.int64), WholeNumbers(0, size - 1))
    for _ in range(draws):
        seen[tuple(joint_codes(column, qs, size=size, rate=rate, random=random))] += 1
    expected = {z: draws * w / sum(weights.values()) for z, w in weights.items()}
    large = [z for z, e in expected.items() if e > 5]
    statistic = sum((seen[z] - expected[z]) ** 2 / expected[z] for z in large)
    # a right sampler is above this with probability below 1e-5
    assert statistic < len(large) + 4.3 * math.sqrt(2 * len(large)) + 13


# ---------------------------------------------------------------- the stated error


def late(weights, bound, qs, rows):
    """The probability of a rank that is more than `bound` off, by {ranks: weight}."""
    off = [w for ranks, w in weights if any(abs(r - q * rows) > bound for r, q in zip(ranks, qs, strict=True))]
    return math.fsum(off) / math.fsum(w for _, w in weights)


@pytest.mark.parametrize("failure", [0.05, 0.5])
@pytest.mark.parametrize("qs", [(Fraction(1, 2),), (Fraction(1, 5), Fraction(1, 2)), THREE])
def test_the_stated_error_holds_for_all_columns_of_a_small_domain(qs, failure):
    size, rate = 6, Fraction(3)
    bound = joint_error(len(qs), size, rate, failure)
    assert bound < size - 2
    for rows in itertools.chain.from_iterable(itertools.combinations(range(size), n) for n in range(size + 1)):
        law = [
            ([sum(x <= z for x in rows) for z in sequence], math.exp(rate * score))
            for sequence, score in scores(rows, qs, size).items()
        ]
        assert late(law, bound, qs, len(rows)) <= failure


def worst_column(size, rate, off):
    """Ranks of two outputs and their weights: `off` rows at consecutive codes, then half of the domain, after each."""
    third = 2 * off
    rows = 3 * third
    volumes = np.ones(rows + 1)
    volumes[[third + off, 2 * third + off]] = size / 2.0
    first, second = np.triu_indices(rows + 1)
    loss = abs(first - third) + abs(second - first - third) + abs(rows - second - third)
    ways = np.where(first == second, volumes[first] * (volumes[first] + 1.0) / 2.0, volumes[first] * volumes[second])
    return first, second, third, ways * np.exp(-float(rate) * loss)


@pytest.mark.parametrize(("size", "failure"), [(1 << 20, 0.05), (1 << 81, 0.05), (1 << 81, 1e-6)])
def test_the_stated_error_holds_for_the_worst_column_and_is_nearly_met(size, failure):
    rate = Fraction(1)
    bound = joint_error(2, size, rate, failure)

    def chance(off):
        first, second, third, weights = worst_column(size, rate, off)
        away = np.maximum(abs(first - third), abs(second - 2 * third)) >= off
        return np.sum(weights[away]) / np.sum(weights)

    assert chance(math.floor(bound) + 1) <= failure
    # a bound that is four ranks smaller would be wrong
    assert chance(math.floor(bound) - 3) > failure


def test_the_benchmark_runs(tmp_path, monkeypatch):
    path = ROOT / "benchmarks" / "quantiles_error.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_quantiles", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "benchmark_of_quantiles", module)
    spec.loader.exec_module(module)
    cells = module.cells(300, [1, 3], [1.0])
    module.fill(tmp_path, 2, cells, ["dpselect"])
    module.fill(tmp_path, 3, cells, ["dpselect"])  # continues where it stopped
    assert all(len(np.load(cell.file(tmp_path, "dpselect"))) == 3 for cell in cells)
    cell = cells[0]
    np.save(cell.file(tmp_path, "OpenDP"), np.load(cell.file(tmp_path, "dpselect")) - 1.0)
    assert module.table(tmp_path, cells) == (1, 1)


# ---------------------------------------------------------------- the shipped sampler, by enumeration of its proposals


class Enumeration:
    """Each choice of `_choose` in turn, with its exact probability; the coin's probability is recorded, not tossed."""

    def __init__(self, prefix):
        self.prefix, self.taken, self.chance, self.kept = prefix, [], Fraction(1), None

    def choose(self, weights, possible, random):
        units = np.where(possible, (weights * (2.0**44 / max(float(weights.max()), 1e-280))).astype(np.int64) + 1, 0)
        outcomes = [(i, Fraction(int(u), int(units.sum()))) for i, u in enumerate(units) if u]
        place = len(self.taken)
        choice = self.prefix[place] if place < len(self.prefix) else 0
        self.taken.append((choice, len(outcomes)))
        self.chance *= outcomes[choice][1]
        return outcomes[choice]

    def coin(self, enclosure, random):
        low, high = enclosure(200)
        assert high - low < Fraction(1, 2**150)
        self.kept = high
        return True


def proposal_law(rows, qs, size, rate, width, monkeypatch):
    """{places of outputs in rank order: probability that a proposal is it and is kept} by the shipped code."""
    column = SortedColumn(np.array(rows, dtype=np.int64), WholeNumbers(0, size - 1))
    spans = joint.joint_spans(len(rows), qs, width)
    chain = joint._chain(joint._pieces(column, qs, size, spans), len(qs), rate)
    weights = joint._ending(chain, len(qs), chain.last, *chain.span(len(qs)))
    found, prefix = {}, []
    while True:
        run = Enumeration(prefix)
        monkeypatch.setattr(joint, "_choose", run.choose)
        monkeypatch.setattr(joint, "coin", run.coin)
        runs = joint._proposal(chain, weights, Fraction(float(weights.sum())) * 2, None)
        if runs is not None:
            codes = []
            for place, length in runs:
                start, many = chain.pieces.starts[place], chain.pieces.sizes[place]
                codes.append((start, many, length))
            key = tuple(codes)
            found[key] = found.get(key, Fraction(0)) + run.chance * run.kept
        taken = run.taken
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if not taken:
            return found, spans
        prefix = [choice for choice, _ in taken[:-1]] + [taken[-1][0] + 1]


@pytest.mark.parametrize(("rows", "qs", "size", "rate"), CASES)
@pytest.mark.parametrize("width", [0, 1, 9])
def test_kept_proposals_have_the_weights_of_the_law_exactly(rows, qs, size, rate, width, monkeypatch):
    """Every sequence inside the spans, and no other, is kept in proportion to exp(rate * score), to 100 bits."""
    found, spans = proposal_law(rows, qs, size, rate, width, monkeypatch)
    law, quotients, met = scores(rows, qs, size), [], 0
    for pieces, probability in found.items():
        inside = [
            z
            for z in law
            if [sum(start <= code < start + many for code in z) for start, many, _ in pieces]
            == [length for _, _, length in pieces]
        ]
        ranks = [sum(x <= code for x in rows) for code in inside[0]]
        assert all(low <= rank <= high for rank, (low, high) in zip(ranks, spans, strict=True))
        low, high = exponential_enclosure(-rate * law[inside[0]], 200)
        quotients.append(probability / (len(inside) * (low + high) / 2))
        met += len(inside)
    wanted = [
        z
        for z in law
        if all(low <= sum(x <= code for x in rows) <= high for code, (low, high) in zip(z, spans, strict=True))
    ]
    assert met == len(wanted)
    if quotients:
        assert max(quotients) / min(quotients) - 1 < Fraction(1, 2**100)


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize(("rows", "qs", "size", "rate"), [CASES[0]])
def test_sequences_outside_the_spans_have_their_share(rows, qs, size, rate, monkeypatch):
    """With spans far too narrow most sequences come from the proposal that is otherwise next to never made."""
    monkeypatch.setattr(joint, "joint_width", lambda *_: 1)
    monkeypatch.setattr(joint, "_RARE", Fraction(10**400))
    met = []
    far = joint._kept_far
    monkeypatch.setattr(joint, "_kept_far", lambda *a: met.append(far(*a)) or met[-1])
    test_draws_follow_the_law(rows, qs, size, rate)
    assert sum(met) > 30


@pytest.mark.full
def test_spans_are_wide_enough_and_hardly_grow_with_the_rows():
    column = np.arange(2_000_000)
    options = {"qs": [0.25, 0.5, 0.75], "lower": 0, "upper": 2_000_000, "epsilon": 1.0, "method": "joint"}
    looked = []
    original = joint._pieces
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint, "_pieces", lambda *a: looked.append(original(*a)) or looked[-1])
        released = quantiles(column, assume_sorted=True, **options)
    assert looked[0].count < 5000
    for q, value, error in zip([0.25, 0.5, 0.75], released.value, released.rank_errors(1e-9), strict=True):
        assert abs(value - q * 2_000_000) < error < 2000
    # the weights of what is left aside, by the bound, are below 2**-60 of what is looked at
    width = joint.joint_width(3, 1 << 64, Fraction(1, 3))
    spans = joint.joint_spans(10**7, THREE, width)
    halvings = math.floor(2 * width / 3 / math.log(2.0))
    assert joint._far(10**7, spans, 1 << 64, halvings) < Fraction(math.exp(-4 / 3)) / 2**60 / 2**64
