"""Exact audits: the best adaptive adversary against the ledger's own rules, by brute force over short games.

The adversary picks mechanisms after seeing outputs; the record (the same fold that runs on disk) admits or refuses.
Its advantage at the budget's epsilon is the sum over views of [P(view) - e^epsilon Q(view)]_+, which must not exceed
the budget's delta. Broken rules from the literature are run through the same games, and caught.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.errors import BudgetError
from dpselect.ledger import InsufficientBudget, Ledger
from dpselect.ledger.accounting import Options
from dpselect.ledger.budget import ACCOUNTINGS
from dpselect.ledger.entries import amounts_to_text, cell_text
from dpselect.ledger.fold import Account, MemoryBooks
from dpselect.privacy import OutputGuarantee, compose, gaussian, pure_dp
from dpselect.privacy.output.oracle import output_delta
from dpselect.testing.exact import finite_guarantee
from tests.privacy.output.guarantee_cases import randomized_response, tight_delta
from tests.privacy.output.test_guarantee import asymmetric

ROUNDING = 1e-12


class Mechanism:
    """Two laws on a few outputs, with a guarantee whose delta is exact."""

    def __init__(self, upper, lower, cells, epsilons, guarantee=None):
        self.upper, self.lower, self.cells = list(upper), list(lower), list(cells)
        if guarantee is None:
            delta = tight_delta(self.upper, self.lower, self.cells, epsilons)
            guarantee = OutputGuarantee(cell=lambda y: self.cells[y], epsilons=epsilons, delta=delta)
        self.guarantee = guarantee


class Record:
    """One budget on the fold of the ledger, in memory."""

    def __init__(self, epsilon, delta, accounting="output", adjacency="add_or_remove_one", **options):
        amounts = {"epsilon": Fraction(str(epsilon)), "delta": Fraction(str(delta)), "delta_each": Fraction(str(delta))}
        self.kind = ACCOUNTINGS[accounting]
        self.books = MemoryBooks()
        fixed = {"kind": "budget", "name": "b", "parent": None, "part": "", "partition": "by row", "block": False}
        chosen = {"accounting": accounting, "adjacency": adjacency, "epsilon": str(epsilon), "delta": str(delta)}
        unused = {"delta_each": str(delta), "failure": "0", "sequence": None}
        self.terms = {**fixed, **chosen, **unused, **self.kind.terms(Options(name="b", **amounts, **options))}
        self.books.apply(1, self.terms)

    def copy(self):
        twin = object.__new__(type(self))
        twin.kind, twin.terms, twin.books = self.kind, self.terms, MemoryBooks()
        old = self.books.accounts["b"]
        buckets = {part: dict(bucket) for part, bucket in old.buckets.items()}
        twin.books.accounts["b"] = Account(old.terms, buckets, old.refunded, old.outstanding, old.locked_by)
        twin.books.seen = self.books.seen
        return twin

    def reserved(self, mechanism, part=""):
        """A copy with a reservation, or the refusal."""
        price = self.kind.price(self.terms, mechanism.guarantee, None)
        twin = self.copy()
        sequence = twin.books.seen + 1
        fixed = {"kind": "reserve", "budget": "b", "identifier": str(sequence), "label": "s", "interactive": False}
        body = {
            "adjacency": self.terms["adjacency"],
            "charge": amounts_to_text(price.charge),
            "cells": None if price.cells is None else amounts_to_text(price.cells),
            "mechanism": price.mechanism,
            "part": part,
        }
        twin.books.apply(sequence, {**fixed, **body})
        return twin

    def settled(self, mechanism, output):
        sequence = self.books.seen
        reserved = self.books.bodies[sequence]
        named = cell_text(mechanism.cells[output]) if reserved["cells"] is not None else None
        twin = self.copy()
        twin.books.bodies[sequence] = reserved
        twin.books.reservations = dict(self.books.reservations)
        price = None if named is None else reserved["cells"][named]
        body = {"kind": "settle", "budget": "b", "identifier": str(sequence), "cell": named, "epsilon": price}
        twin.books.apply(sequence + 1, body)
        return twin


def advantage(record, mechanisms, epsilon, depth, upper=1.0, lower=1.0):
    """The largest sum over views of [P - e^epsilon Q]_+ of an adversary with `depth` rounds left."""
    best = max(upper - math.exp(epsilon) * lower, 0.0)
    if depth == 0 or upper == 0.0:
        return best
    for mechanism in mechanisms:
        try:
            reserved = record.reserved(mechanism)
        except BudgetError:
            continue
        total = 0.0
        for output, (p, q) in enumerate(zip(mechanism.upper, mechanism.lower, strict=True)):
            after = reserved.settled(mechanism, output)
            total += advantage(after, mechanisms, epsilon, depth - 1, upper * p, lower * q)
        best = max(best, total)
    return best


def random_mechanism(chance, outputs=3):
    laws = chance.dirichlet(np.ones(outputs), size=2)
    mixed = 0.5 * laws + 0.5 * laws.mean(axis=0)
    cells = chance.integers(0, 2, outputs).tolist()
    loss = np.abs(np.log(mixed[0] / mixed[1]))
    # prices below the largest loss of a cell, so that some delta is needed
    epsilons = {
        c: float(0.7 * max((x for x, own in zip(loss, cells, strict=True) if own == c), default=0)) for c in (0, 1)
    }
    return Mechanism(*mixed.tolist(), cells, epsilons)


@pytest.mark.cases(6)
@pytest.mark.theorem("Hartmann et al. 2022, Theorem 7", exact=True)
@pytest.mark.parametrize("seed", range(12))
def test_no_adversary_beats_the_output_ledger(seed):
    chance = np.random.default_rng(seed)  # chooses the games; no part of what is tested
    mechanisms = [random_mechanism(chance) for _ in range(3)]
    dearest = max(m.guarantee.worst_epsilon for m in mechanisms)
    delta = max(m.guarantee.delta for m in mechanisms)
    epsilon, total = 1.5 * dearest, min(2.2 * delta, 0.99)
    record = Record(epsilon, total)
    for swap in (False, True):
        game = [Mechanism(m.lower, m.upper, m.cells, {}, m.guarantee) for m in mechanisms] if swap else mechanisms
        assert advantage(record, game, epsilon, 3) <= total + ROUNDING


@pytest.mark.theorem("Hartmann et al. 2022, Theorem 7", exact=True, sharp=True)
def test_the_audit_is_sharp_and_can_fail():
    """Two (0.5, 0.01)-private responses need 1 - 0.99^2 of the budget's 0.02, and more at an epsilon a hair smaller."""
    mechanism = Mechanism(*randomized_response(0.5, 0.01), "cccc", {"c": 0.5})
    mechanism.guarantee = OutputGuarantee(cell=lambda y: "c", epsilons={"c": 0.5}, delta=0.01)
    record = Record(1, 0.02)
    assert advantage(record, [mechanism], 1.0, 4) == pytest.approx(1 - 0.99**2, abs=ROUNDING)
    assert advantage(record, [mechanism], 0.99, 4) > 0.02


class RefundsDelta(Record):
    """Broken: a cheap output gives its delta back too."""

    def settled(self, mechanism, output):
        twin = super().settled(mechanism, output)
        if mechanism.cells[output] == "none":
            twin.books.accounts["b"].buckets[""]["delta"] -= Fraction(str(mechanism.guarantee.delta))
        return twin


def test_zoo_a_refunded_delta_is_caught_by_the_audit():
    """A test that leaks with mass 0.01 when it answers, and mostly says "none": fact 7 as a game."""
    leak = 0.01
    gate = OutputGuarantee(cell=str, epsilons={"answer": 0.2, "none": 0.1}, delta=leak)
    mechanism = Mechanism([leak, 0.0, 1 - leak], [0.0, leak, 1 - leak], ["answer", "answer", "none"], {}, gate)
    sound = advantage(Record(1, 0.02), [mechanism], 1.0, 5)
    assert sound == pytest.approx(1 - (1 - leak) ** 2, abs=ROUNDING)
    assert sound <= 0.02
    assert advantage(RefundsDelta(1, 0.02), [mechanism], 1.0, 5) > 0.04


def test_fact_4_the_worked_example():
    """Budget (1, 0.01): after the cheap output there is room for (0.9, 0.01), after the dear one for nothing."""
    first = Mechanism(*asymmetric(0.1, 1.0), "ab", {"a": 0.1, "b": 1.0})
    first.guarantee = OutputGuarantee(cell=lambda y: "ab"[y], epsilons={"a": 0.1, "b": 1.0})
    second = Mechanism(*randomized_response(0.9, 0.01), "cccc", {"c": 0.9})
    second.guarantee = OutputGuarantee(cell=lambda y: "c", epsilons={"c": 0.9}, delta=0.01)
    wrong = Mechanism(*randomized_response(1.0, 0.01), "cccc", {"c": 1.0})
    wrong.guarantee = OutputGuarantee(cell=lambda y: "c", epsilons={"c": 1.0}, delta=0.01)
    start = Record(1, 0.01).reserved(first)
    cheap, dear = start.settled(first, 0), start.settled(first, 1)
    for record, mechanism, admitted in ((cheap, second, True), (cheap, wrong, False), (dear, second, False)):
        if admitted:
            record.reserved(mechanism)
        else:
            with pytest.raises(InsufficientBudget):
                record.reserved(mechanism)

    def view_divergence(mechanism, swap):
        (p, q), (x, y) = (first.upper, first.lower), (mechanism.upper, mechanism.lower)
        if swap:
            (p, q), (x, y) = (q, p), (y, x)
        upper, lower = [p[0] * a for a in x] + [p[1]], [q[0] * a for a in y] + [q[1]]
        return output_delta(upper, lower, cells=[0] * 5, epsilons={0: 1.0})

    assert view_divergence(second, False) == pytest.approx(0.0094752385, abs=5e-11)
    assert view_divergence(second, True) == pytest.approx(0.0085735503, abs=5e-11)
    assert view_divergence(wrong, False) == pytest.approx(0.0747347381, abs=5e-11)


def test_fact_5_pure_games_are_tight_and_never_above():
    """Asymmetric responses, budget 1.2, depth 8: the largest loss of any view, over all adaptive adversaries."""
    losses = [("0.1", "1"), ("0.2", "0.5"), ("0.3", "0.3"), ("0.05", "0.6")]
    known = {}

    def largest(left, depth):
        if depth == 0:
            return 0.0
        if (left, depth) not in known:
            options = [0.0]
            for a, b in losses:
                if max(Fraction(a), Fraction(b)) <= left:
                    for mine, sign in ((a, 1.0), (b, -1.0)):
                        options.append(sign * float(mine) + largest(left - Fraction(mine), depth - 1))
            known[left, depth] = max(options)
        return known[left, depth]

    assert largest(Fraction("1.2"), 8) == pytest.approx(1.2, abs=1e-9)
    assert largest(Fraction("1.2"), 8) <= 1.2 + 1e-12


@pytest.mark.full
@pytest.mark.parametrize("filter_name", ["renyi", "zcdp"])
@pytest.mark.parametrize("seed", range(4))
def test_no_adversary_beats_a_filter(filter_name, seed):
    """Adaptive choices among randomised responses and random pairs, at a delta large enough for short games."""
    chance = np.random.default_rng(seed)
    epsilon, delta = 1.0, 0.15
    pairs = [randomized_response(0.5)[0][1:3], *(0.5 + 0.25 * chance.dirichlet(np.ones(2)) - 0.125 for _ in range(2))]
    mechanisms = []
    for law in pairs:
        law = np.array(law) / np.sum(law)
        other = law[::-1]
        guarantee = finite_guarantee(law.tolist(), other.tolist())
        if filter_name == "zcdp":
            guarantee = pure_dp(epsilon=guarantee.pure_epsilon)
        mechanisms.append(Mechanism(law.tolist(), other.tolist(), "cc", {"c": 9.0}, guarantee))
    record = Record(epsilon, delta, "renyi", filter=filter_name)
    assert advantage(record, mechanisms, epsilon, 5) <= delta + ROUNDING


@pytest.mark.cases(2)
@pytest.mark.parametrize("filter_name", ["renyi", "zcdp", "gaussian"])
def test_a_full_filter_keeps_its_promise_on_gaussians(tmp_path, filter_name):
    """The exact epsilon of all the Gaussian mechanisms that were admitted; the Gaussian filter loses nothing."""
    step = gaussian(noise_multiplier=12)
    with Ledger.open(tmp_path / "b.db") as ledger:
        budget = ledger.create_budget("b", epsilon=2, delta="1e-6", accounting="renyi", filter=filter_name)
        count = 0
        while True:
            try:
                budget.reserve(step, label="s")
            except InsufficientBudget:
                break
            count += 1
            assert compose(*[step] * count).epsilon(1e-6) <= float(budget.spent().epsilon)  # the odometer too
    exact = compose(*[step] * count).epsilon(1e-6)
    assert exact <= 2
    if filter_name == "gaussian":
        assert compose(*[step] * (count + 1)).epsilon(1e-6) > 2


def test_a_filter_beats_adding_up_and_never_refunds(tmp_path):
    gate = OutputGuarantee(cell=bool, epsilons={True: 0.1, False: 0.0})
    with Ledger.open(tmp_path / "b.db") as ledger:
        budget = ledger.create_budget("b", epsilon=2, delta="1e-6", accounting="renyi")
        before = budget.remaining().units
        receipt = budget.reserve(gate, label="s").settle(False)
        after = budget.remaining().units
        assert all(after[unit] < before[unit] for unit in before if unit != "failure")
        assert budget.refunded() == 0
        assert receipt.charged
        assert [body["cell"] for _, _, body in ledger.entries() if body["kind"] == "settle"] == [None]


# -- broken rules, which the same reasoning must catch


def test_zoo_fact_6_a_delta_for_each_cell():
    """A public label in 1..100 and, with mass 0.01, everything: a cell's 1e-4 is not the price of a call."""
    cells, leak, allowed = 100, 0.01, 0.02
    calls = math.floor((allowed - leak) / (leak / cells)) + 1
    assert calls == 101
    assert 1 - (1 - leak) ** calls == pytest.approx(0.637627982, abs=5e-10)
    record, count = Record(1, allowed), 0
    public = OutputGuarantee(cell=int, epsilons=dict.fromkeys(range(cells), 0.0), delta=leak)
    mechanism = Mechanism([1.0], [1.0], [0], {0: 0.0}, public)
    while True:
        try:
            record = record.reserved(mechanism).settled(mechanism, 0)
        except InsufficientBudget:
            break
        count += 1
    assert count == 2
    assert 1 - (1 - leak) ** count <= allowed


def test_zoo_fact_7_a_delta_for_answers_only():
    """A test that leaks with mass 1e-3 when it answers, retried until it does: "none" must pay its delta too."""
    leak, tries = 1e-3, 100
    assert 1 - (1 - leak) ** tries == pytest.approx(0.095207853, abs=5e-10)
    guarantee = OutputGuarantee(cell=lambda y: y, epsilons={"answer": 0.0, "none": 0.0}, delta=leak)
    mechanism = Mechanism(
        [leak, 1 - leak], [leak, 1 - leak], ["answer", "none"], {"answer": 0.0, "none": 0.0}, guarantee
    )
    record = Record(1, 0.01)
    for _ in range(10):
        record = record.reserved(mechanism).settled(mechanism, 1)
    with pytest.raises(InsufficientBudget):
        record.reserved(mechanism)


def test_zoo_fact_8_only_the_realised_cost_is_checked():
    """Suppressing what came out too dear leaks as much as it: the supremum must fit before the run."""
    upper, lower = asymmetric(0.01, 1.0)
    assert abs(math.log(upper[1] / lower[1])) == pytest.approx(1.0, abs=1e-12)
    mechanism = Mechanism(upper, lower, "ab", {"a": 0.01, "b": 1.0})
    with pytest.raises(InsufficientBudget) as caught:
        Record("0.01", 0).reserved(mechanism)
    assert caught.value.requested["epsilon"] == 1


def advanced(costs, delta):
    """Heterogeneous advanced composition (Kairouz, Oh, Viswanath 2015, Theorem 3.5, simplified)."""
    linear = sum(e * math.expm1(e) / (math.exp(e) + 1) for e in costs)
    return linear + math.sqrt(2 * math.log(1 / delta) * sum(e * e for e in costs))


def test_zoo_fact_9_realised_costs_in_advanced_composition():
    """750 cheap outputs have a loss of exactly 7.5, where the formula sees 1.5: it admits what the ledger does not."""
    upper, lower = asymmetric(0.01, 1.0)
    delta, budget = 1e-6, 6.5
    assert advanced([0.01] * 750 + [1.0], delta) < budget
    truth = upper[0] ** 750 * (1 - math.exp(budget - 7.5))
    assert truth == pytest.approx(0.00831892, abs=5e-9)
    assert truth > 1000 * delta
    formula = advanced([0.01] * 100, delta)
    assert formula == pytest.approx(0.530652, abs=1e-6)
    assert upper[0] ** 100 - math.exp(formula) * lower[0] ** 100 == pytest.approx(0.210277, abs=1e-6)

    gate = OutputGuarantee(cell=lambda y: "ab"[y], epsilons={"a": 0.01, "b": 1.0})
    mechanism = Mechanism(upper, lower, "ab", {"a": 0.01, "b": 1.0}, gate)
    record, count = Record(budget, delta), 0
    while True:
        try:
            record = record.reserved(mechanism).settled(mechanism, 0)
        except InsufficientBudget:
            break
        count += 1
    assert count == 551  # 0.01 n + 1 <= 6.5
    assert upper[0] ** count * (1 - math.exp(budget - 0.01 * count)) <= 0


def test_a_row_in_one_part_pays_for_one_part():
    """Add-or-remove: a row is in one part. Replace: it may leave one and enter another, and pays for two."""
    half = Mechanism([1.0], [1.0], "c", {}, OutputGuarantee(cell=str, epsilons={"c": 0.5}))
    same = Record(1, 0)
    for part in ("north", "south", "west"):
        same = same.reserved(half, part).settled(half, 0).reserved(half, part).settled(half, 0)
        with pytest.raises(InsufficientBudget):
            same.reserved(half, part)
        with pytest.raises(InsufficientBudget):
            same.reserved(half)  # all of the data: every row pays
    assert same.books.accounts["b"].totals()["epsilon"] == 1

    moving = OutputGuarantee(cell=str, epsilons={"c": 0.5}, adjacency="replace_one")
    half = Mechanism([1.0], [1.0], "c", {}, moving)
    both = Record(1, 0, adjacency="replace_one")
    for part in ("north", "south", "west"):
        both = both.reserved(half, part).settled(half, 0)
    assert both.books.accounts["b"].totals()["epsilon"] == 1
    with pytest.raises(InsufficientBudget):
        both.reserved(half, "north")


def test_fact_3_a_sparse_vector_and_its_release():
    """Five of twenty hits at the split of the paper's Figure 1: what is left, and the scale of five releases."""
    first, second = 0.0393822626, 0.4606177374
    prices = {hits: first + hits / 20 * second for hits in range(21)}
    guarantee = OutputGuarantee(cell=lambda hits: hits, epsilons=prices, supremum=0.5)
    mechanism = Mechanism([1.0] * 21, [1.0] * 21, range(21), prices, guarantee)
    record = Record(1, 0).reserved(mechanism)
    assert record.books.accounts["b"].totals()["epsilon"] == Fraction(1, 2)
    record = record.settled(mechanism, 5)
    left = 1 - record.books.accounts["b"].totals()["epsilon"]
    assert float(left) == pytest.approx(0.845463303, abs=5e-10)
    assert 5 / float(left) == pytest.approx(5.91391724, abs=5e-8)


operations = st.lists(
    st.tuples(st.sampled_from(["ask", "settle", "crash"]), st.integers(1, 12), st.booleans()), max_size=14
)


@pytest.mark.full
@given(operations)
@settings(max_examples=25)
def test_fact_28_the_ledger_s_invariants(tmp_path_factory, steps):
    """Random reservations, settlements and crashes against plain sums."""
    with Ledger.open(tmp_path_factory.mktemp("ledger") / "b.db") as ledger:
        budget = ledger.create_budget("b", epsilon=2, delta="1e-6")
        epsilon, delta, running = Fraction(0), Fraction(0), []
        for kind, tenths, cheap in steps:
            price, small = Fraction(tenths, 10), Fraction(tenths, 20)
            if kind == "ask":
                prices = {"dear": float(price), "cheap": float(small)}
                gate = OutputGuarantee(cell=str, epsilons=prices, delta=1e-7)
                fits = epsilon + price <= 2 and delta + Fraction(1, 10**7) <= Fraction(1, 10**6)
                before = ledger.head()
                try:
                    running.append((budget.reserve(gate, label="s"), price, small))
                except InsufficientBudget:
                    assert not fits
                    assert ledger.head() == before
                else:
                    assert fits
                    epsilon, delta = epsilon + price, delta + Fraction(1, 10**7)
            elif running:
                charge, price, small = running.pop()
                if kind == "settle":
                    charge.settle("cheap" if cheap else "dear")
                    epsilon -= price - small if cheap else 0
            spent, left = budget.spent(), budget.remaining()
            assert (spent.epsilon, spent.delta) == (epsilon, delta)
            assert (left.epsilon, left.delta) == (2 - epsilon, Fraction(1, 10**6) - delta)
        assert ledger.verify()
