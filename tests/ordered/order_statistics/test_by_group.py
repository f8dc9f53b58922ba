"""Quantiles by group: the exact joint distribution of all answers against all neighbours, and what is refused."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError, BudgetError
from dpselect.ledger import Ledger
from dpselect.mechanisms import bounded_range
from dpselect.ordered import Column, GroupedQuantiles, Quantiles, quantiles, quantiles_by_group
from dpselect.ordered.order_statistics.cell_counts import CellCounts
from dpselect.ordered.order_statistics.recursive import cut_rate
from dpselect.ordered.sources.groups import columns_by_group, parse_names
from dpselect.privacy import Adjacency, compose
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import keyed_source

SIZE, NAMES = 3, ("a", "b")
KINDS = tuple(itertools.product(range(SIZE), (*NAMES, "other")))
"""A row: its value and its group."""


def split(rows, named):
    """The values of each group, by the shipped code."""
    values, groups = np.array([value for value, _ in rows], dtype=np.int64), [group for _, group in rows]
    columns = columns_by_group(Column(values, domain_size=SIZE), groups, named)
    return [[int(v) for chunk in column.source.chunks() for v in chunk] for column in columns]


def twice(rows, _named):
    """A mutant: rows of the first group count in the second one too."""
    return [[v for v, g in rows if g == "a"], [v for v, g in rows if g in NAMES]]


def exponents(values, q, rate, size=SIZE):
    """The logarithm of the weight of each answer of one exponential mechanism."""
    target = q * len(values)
    return [rate * min(sum(v <= z for v in values) - target, target - sum(v < z for v in values)) for z in range(size)]


def joint_law(parts, plan, units):
    """{answers of all groups: probability}, with 2**units for e."""
    each = []
    for values in parts:
        for cut, rate in zip(plan.cuts, plan.rates, strict=True):
            powers = [exponent * units for exponent in exponents(values, cut.share, rate)]
            assert all(power.denominator == 1 for power in powers)
            weights = [Fraction(2) ** int(power) for power in powers]
            each.append([weight / sum(weights) for weight in weights])
    return [math.prod(chances) for chances in itertools.product(*each)]


def worst_ratios(qs, adjacency, plan=None, parts=split, most=2):
    """(largest ratio, largest range) of two joint laws over all neighbours, and what epsilon allows."""
    each = Quantiles(qs=qs, epsilon=1, method="independent", adjacency=adjacency)
    asked = GroupedQuantiles(names=NAMES, quantiles=each)
    plan = asked.drawn if plan is None else plan
    powers = zip(plan.cuts, plan.rates, strict=True)
    units = math.lcm(*(rate.denominator * cut.share.denominator for cut, rate in powers))
    assert units < 100  # rates are simple, or the powers below would be too long
    data = [rows for n in range(most + 1) for rows in itertools.combinations_with_replacement(KINDS, n)]
    laws = {rows: joint_law(parts(rows, asked.named), plan, units) for rows in data}
    worst = spread = Fraction(1)
    for rows, kind in itertools.product(data, KINDS):
        if adjacency == "add_or_remove_one":
            others = [(*rows, kind)]
        else:
            others = [(*rows[:i], kind, *rows[i + 1 :]) for i in range(len(rows))]
        for other in (tuple(sorted(other)) for other in others if len(other) <= most):
            ratios = [p / q for p, q in zip(laws[rows], laws[other], strict=True)]
            worst = max(worst, *ratios, *(1 / ratio for ratio in ratios))
            spread = max(spread, max(ratios) / min(ratios))
    return worst, spread, Fraction(2) ** units


HALF, QUARTER = (Fraction(1, 2),), (Fraction(1, 4),)


@pytest.mark.cases(3)
@pytest.mark.theorem("McSherry 2009, Theorem 4", exact=True, sharp=True)
@pytest.mark.theorem("docs/theory/groups.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.parametrize("qs", [HALF, QUARTER, (Fraction(1),), (Fraction(0), Fraction(1, 3))])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_or_remove_one"])
def test_the_joint_law_of_two_groups_is_within_epsilon_for_all_neighbours(qs, adjacency):
    worst, spread, allowed = worst_ratios(qs, adjacency, most=2 if len(qs) == 1 else 1)
    assert 1 < worst <= allowed
    if len(qs) == 1:  # a step has range epsilon; at the median two rows attain it
        assert spread <= allowed
        assert qs != HALF or spread == allowed


@pytest.mark.full
@pytest.mark.parametrize("adjacency", ["replace_one", "add_or_remove_one"])
def test_the_joint_law_with_three_rows(adjacency):
    worst, spread, allowed = worst_ratios(QUARTER, adjacency, most=3)
    assert 1 < worst <= spread <= allowed


@pytest.mark.theorem("docs/theory/groups.md, Theorem 2", exact=True, sharp=True)
def test_a_row_that_changes_its_group_costs_more_than_99_percent_of_epsilon():
    each = Quantiles(qs=HALF, epsilon=4.0, method="independent", adjacency="replace_one")
    asked = GroupedQuantiles(names=NAMES, quantiles=each)
    (rate,) = asked.drawn.rates

    def chance(values):
        weights = [math.exp(power) for power in exponents(values, HALF[0], rate, size=2)]
        return weights[0] / sum(weights)

    before, after = ([1, 1, 1, 0], [0, 0, 0]), ([1, 1, 1], [0, 0, 0, 0])
    (a, b), (other_a, other_b) = (map(chance, parts) for parts in (before, after))
    loss = math.log(a * (1 - b) / (other_a * (1 - other_b)))
    assert 0.99 * 4.0 < loss <= asked.guarantee.epsilon(delta=0) == 4.0


@pytest.mark.theorem("docs/theory/groups.md, Theorem 3", exact=True, sharp=True)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_or_remove_one"])
def test_the_counts_of_all_groups_move_as_far_as_their_noise_allows_for(adjacency):
    named, kinds = parse_names(NAMES), [*KINDS, (-1, "a"), (9, "b")]

    def fates(rows):
        values, groups = np.array([value for value, _ in rows], dtype=np.int64), [group for _, group in rows]
        parts = columns_by_group(Column(values, domain_size=SIZE), groups, named)
        return np.concatenate([part.fates() for part in parts])

    kinds.sort()
    data = [rows for n in range(3) for rows in itertools.combinations_with_replacement(kinds, n)]
    counts, moves = {rows: fates(rows) for rows in data}, 0
    for rows, kind in itertools.product(data, kinds):
        others = [(*rows, kind)]
        if adjacency == "replace_one":
            others = [(*rows[:i], kind, *rows[i + 1 :]) for i in range(len(rows))]
        for other in (tuple(sorted(other)) for other in others):
            if other in counts:
                moves = max(moves, int(np.abs(counts[rows] - counts[other]).sum()))
    assert CellCounts(epsilon=0.5, adjacency=adjacency).scale == Fraction(moves) / Fraction(1, 2)


def test_a_row_in_two_groups_breaks_the_bound():
    _, spread, allowed = worst_ratios(QUARTER, "add_or_remove_one", parts=twice)
    assert spread > allowed


def test_rates_for_rows_replaced_within_a_group_break_the_bound():
    plan = Quantiles(qs=QUARTER, epsilon=1, method="independent", adjacency="replace_one")
    _, spread, allowed = worst_ratios(QUARTER, "replace_one", plan=plan)
    assert spread > allowed


def test_random_epsilons_are_never_above_the_charge():
    rng = np.random.default_rng(7)
    for epsilon in [0.1, 0.3, 1.0 + 2.0**-52, *np.exp(rng.uniform(-19, 13, 40))]:
        for method in ("independent", "recursive", "joint", "tree"):
            asked = Quantiles(qs=[0.2, 0.5, 0.7], epsilon=epsilon, method=method, adjacency="replace_one")
            whole = GroupedQuantiles(names=NAMES, quantiles=asked)
            assert whole.drawn.adjacency is Adjacency.ADD_OR_REMOVE_ONE
            assert 2 * Fraction(whole.drawn.epsilon) <= epsilon_used(float(epsilon))
            one, both = whole.drawn.guarantee, whole.guarantee
            assert both.adjacency is Adjacency.REPLACE_ONE
            assert 2 * one.pure_epsilon <= both.pure_epsilon <= epsilon * (1 + 2.0**-40)


ROWS, GROUPS = np.arange(4000) % 1000, np.array(["north", "south", "east", ""] * 1000)
FIXED = {"names": ["north", "south"], "qs": [0.5, 0.25, 0.5], "epsilon": 2.0, "lower": 0, "upper": 999}


@pytest.mark.cases(2)
@pytest.mark.parametrize("method", ["independent", "recursive", "joint", "tree", "least_bound"])
def test_each_group_has_the_answers_of_its_own_rows(method):
    values = np.where(GROUPS == "south", ROWS // 2, ROWS)
    found = quantiles_by_group(values, GROUPS, **FIXED, method=method, random=keyed_source(1))
    assert list(found.value) == ["north", "south"]
    assert np.allclose(found.value["north"], [500, 250, 500], atol=80)
    assert np.allclose(found.value["south"], [250, 125, 250], atol=80)
    assert found.guarantee.epsilon(delta=0) == 2.0
    assert min(found.rank_errors(0.05)["north"]) > min(found.groups["north"].rank_errors(0.05))


def test_other_groups_missing_cells_and_their_order_change_nothing():
    kept = np.isin(GROUPS, ["north", "south"])
    every = quantiles_by_group(ROWS, GROUPS, **FIXED, method="independent", random=keyed_source(2)).value
    assert (
        every
        == quantiles_by_group(ROWS[kept], GROUPS[kept], **FIXED, method="independent", random=keyed_source(2)).value
    )
    spaced = [None if g == "" else f" {g} " for g in GROUPS]
    assert every == quantiles_by_group(ROWS, spaced, **FIXED, method="independent", random=keyed_source(2)).value


def test_names_are_read_as_categories():
    codes = np.tile([1, 2], 500)
    options = {"qs": [0.5], "epsilon": 1.0, "domain_size": 1000}
    found = [
        quantiles_by_group(np.arange(1000), cells, names=names, **options, random=keyed_source(3)).value
        for cells, names in [(codes, [1, 2]), (codes.astype(str), [True, "2.0"]), (codes.astype(float), ["1", 2.0])]
    ]
    assert [list(each) for each in found] == [[1, 2], [True, "2.0"], ["1", 2.0]]
    assert len({tuple(map(tuple, each.values())) for each in found}) == 1


def test_text_by_group():
    grades, groups = ["low", "high", "high"] * 300, ["x", "x", "y"] * 300
    categories = {"categories": ["low", "middle", "high"], "epsilon": 2.0, "random": keyed_source(1)}
    found = quantiles_by_group(grades, groups, names=["x", "y"], qs=[0.1, 0.9], **categories).value
    assert found == {"x": ["low", "high"], "y": ["high", "high"]}


def test_a_ledger_pays_once_and_a_refusal_charges_nothing(tmp_path):
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        budget = ledger.create_budget("b", epsilon=3.0)
        found = quantiles_by_group(ROWS, GROUPS, **FIXED, spender=budget, label="by region")
        assert found.receipt == found.groups["north"].receipt is not None
        assert budget.remaining().epsilon == pytest.approx(1.0)
        with pytest.raises(BudgetError):
            quantiles_by_group(ROWS, GROUPS, **FIXED, spender=budget)
        assert budget.remaining().epsilon == pytest.approx(1.0)


@pytest.mark.full
def test_a_group_costs_what_the_whole_does():
    plan = {"qs": [0.5], "epsilon": 1.0, "method": "slice", "delta": 1e-6}
    whole = GroupedQuantiles(names=["a", "b", "c"], quantiles=Quantiles(**plan)).guarantee
    assert whole.epsilon(delta=1e-6) == Quantiles(**plan).guarantee.epsilon(delta=1e-6)
    replaced = Quantiles(qs=[0.1, 0.5], epsilon=1.0, adjacency="replace_one")
    assert GroupedQuantiles(names=["a"], quantiles=replaced).guarantee.epsilon(delta=1e-6) == quantiles(
        [1.0], qs=[0.1, 0.5], epsilon=1.0, adjacency="replace_one", method="joint", lower=0, upper=1
    ).guarantee.epsilon(delta=1e-6)


WRONG = {
    "names must be a list of groups": {"names": "north"},
    "is not empty": {"names": []},
    "is not empty and": {"names": [1, "1.0"]},
    "has no blank": {"names": ["north", " "]},
    "a group is named by": {"names": [["north"]]},
    "one entry for each row": {"groups": GROUPS[:-1]},
    "groups must be one column": {"groups": ROWS.astype("M8[s]")},
    "groups: give the group": {"groups": None},
    "groups: need values in memory": {"values": lambda: iter([ROWS])},
    "weights and assume_sorted": {"weights": ROWS},
    "take neither": {"assume_sorted": True, "values": np.sort(ROWS)},
    "'slice' has no price": {"method": "slice", "delta": 1e-6, "adjacency": "replace_one"},
    "epsilon must be": {"epsilon": 2.0**-29, "adjacency": "replace_one"},
    "units must be 1": {"units": 2},
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_arguments_are_refused_before_anything_is_charged(message, tmp_path):
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        budget = ledger.create_budget("b", epsilon=3.0)
        with pytest.raises(ArgumentError, match=message):
            quantiles_by_group(**{"values": ROWS, "groups": GROUPS, **FIXED, "spender": budget, **WRONG[message]})
        assert budget.remaining().epsilon == pytest.approx(3.0)


def test_a_plan_is_of_quantiles():
    with pytest.raises(TypeError, match="quantiles must be of type Quantiles"):
        GroupedQuantiles(names=["a"], quantiles=0.5)


@pytest.mark.parametrize("count", [8, 99])
def test_replaced_rows_are_priced_by_the_shares_of_levels_that_are_drawn(count):
    """Twice the share of each level, as a replaced row is in two groups. The shares depend on epsilon."""
    qs = [Fraction(k, count + 1) for k in range(1, count + 1)]
    fades = 0
    for epsilon in (0.1, 0.3, 0.5, *(0.03 * count**2 / 1000 * part for part in (0.9, 1.1, 1.9, 2.0, 2.1))):
        plan = Quantiles(qs=qs, epsilon=epsilon, method="recursive", adjacency="replace_one")
        asked = GroupedQuantiles(names=["a", "b"], quantiles=plan)
        drawn = {
            cut.level: rate / cut_rate(cut.share, Fraction(1), Adjacency.ADD_OR_REMOVE_ONE)
            for cut, rate in zip(asked.drawn.cuts, asked.drawn.rates, strict=True)
        }
        shares = [2.0 * float(share) for share in drawn.values()]
        fades += len(set(shares)) > 1
        truth = compose(*[bounded_range(epsilon=share, adjacency="replace_one") for share in shares])
        assert asked.guarantee.epsilon(1e-3) >= truth.epsilon(1e-3) * (1 - 1e-9)
    assert fades
