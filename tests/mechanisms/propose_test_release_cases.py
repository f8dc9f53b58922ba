"""Mechanisms that test a distance first, and the delta that they need over all neighbours."""

from __future__ import annotations

import itertools
import math

import numpy as np

from dpselect.mechanisms import InterquantileRange, TrimmedMean
from dpselect.privacy import OutputGuarantee
from dpselect.privacy.output.oracle import output_delta
from tests.ledger.test_accounting import Mechanism


def multisets(universe, count):
    return list(itertools.combinations_with_replacement(universe, count))


def neighbours(rows, universe):
    """Sorted data with one row replaced."""
    return {tuple(sorted((*rows[:i], v, *rows[i + 1 :]))) for i in range(len(rows)) for v in universe} - {rows}


def changes(one, other):
    """How many rows must be replaced to turn one multiset into the other."""
    rest = list(other)
    for row in one:
        if row in rest:
            rest.remove(row)
    return len(rest)


def needed_delta(law, other, guarantee):
    """The oracle in both directions: the delta that the prices of a guarantee need."""
    outputs = list({**law, **other})
    cells = [guarantee.cell(output) for output in outputs]
    prices = {cell: guarantee.price(cell) for cell in cells}
    p, q = ([side.get(output, 0.0) for output in outputs] for side in (law, other))
    return max(output_delta(p, q, cells=cells, epsilons=prices), output_delta(q, p, cells=cells, epsilons=prices))


def audited_delta(law, mechanism, universe, count, reach, guarantee=None):
    """The largest delta needed over all pairs of neighbours."""
    priced = guarantee or mechanism.guarantee
    laws = {rows: law(mechanism, np.array(rows), reach) for rows in multisets(universe, count)}
    return max(needed_delta(laws[x], laws[y], priced) for x in laws for y in neighbours(x, universe) if x < y)


def trimmed_mean(**changes_):
    fixed = {"width": 1, "granularity": 1, "epsilon_test": 0.6, "epsilon_answer": 0.5, "delta": 0.15}
    return TrimmedMean(**{**fixed, **changes_})


def cheaper_versions(guarantee):
    """Every price lowered by a tenth, one at a time."""
    for cell, price in guarantee.table.items():
        prices = {**guarantee.table, cell: 0.9 * price}
        yield OutputGuarantee(cell=guarantee.cell, epsilons=prices, delta=guarantee.delta, adjacency="replace_one")


def interquantile_range(**changes_):
    fixed = {"granularity": 1, "epsilon_test": 0.6, "epsilon_answer": 0.5, "delta": 0.3, "ratio": 2.0, "steps": 2}
    return InterquantileRange(**{**fixed, **changes_})


class Laws(Mechanism):
    """A real mechanism on one pair of neighbours, for the games of the ledger's audit."""

    def __init__(self, mechanism, law, pair, reach):
        one, other = (law(mechanism, np.array(rows), reach) for rows in pair)
        outputs = list({**one, **other})
        # outputs with one ratio and one cell are one: the game is shorter and the same
        merged = {}
        for output in outputs:
            p, q = one.get(output, 0.0), other.get(output, 0.0)
            ratio = round(math.log(p / q), 9) if p and q else (p > 0, q > 0)
            key = (mechanism.guarantee.cell(output), ratio)
            merged[key] = tuple(map(sum, zip(merged.get(key, (0.0, 0.0)), (p, q), strict=True)))
        cells = [cell for cell, _ in merged]
        upper, lower = zip(*merged.values(), strict=True)
        super().__init__(upper, lower, cells, {}, mechanism.guarantee)
