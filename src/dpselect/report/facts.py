"""The public facts about a search that a report shows, as JSON-able numbers.

Everything here is a function of the guarantees, the public distribution and the record of a budget. All are fixed
before a run begins, so nothing can depend on the number of runs that was drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpselect.accounting import best_of
from dpselect.errors import BoundUnavailableError
from dpselect.privacy import Guarantee, compose, worst_of
from dpselect.privacy.promises import promise, promises
from dpselect.repetitions import Repetitions
from dpselect.repetitions.quality import quality_of

__all__ = ["search_facts"]

_FORMAT = 1
_ROWS = (2, 10)
"""Rows of one person for which a price is shown."""
_MOST_COUNTS = 120  # of the law's probabilities: a plot has no room for more


def search_facts(
    *,
    parts: Sequence[Guarantee],
    search: Guarantee,
    law: Repetitions,
    delta: float,
    bounds: Guarantee | None = None,
    cells: Guarantee | None = None,
    final: Guarantee | None = None,
    budget: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The guarantee, the cost of other ways, and the quality of the distribution of the number of runs.

    `parts` are the guarantees of one run, training first, one for each part of the data. `search` is that of the whole
    search. Its parts for private bounds of columns, counts of cells and a second stage are `bounds`, `cells` and
    `final`. `budget` is the ledger's before and after, if there is one. An infinite epsilon is None.
    """
    parts = promises("parts", parts)
    search = promise("search", search)
    beside = {}
    if bounds is not None:
        beside["bounds of columns, bought"] = promise("bounds", bounds)
    if cells is not None:
        beside["counts of cells"] = promise("cells", cells)
    if final is not None:
        beside["the second stage, one run on all rows"] = promise("final", final)
    single = worst_of(*parts)
    lower, epsilon = search.epsilon_bracket(delta)
    return {
        "format": _FORMAT,
        "epsilon": epsilon,
        "epsilon_lower": lower,
        "delta": delta,
        "rows": {str(rows): _finite(_of_rows(search, rows, delta)) for rows in _ROWS},
        "curve": _curve(single, search, epsilon=epsilon, delta=delta),
        "costs": _costs(parts, search, law, beside, delta=delta),
        "law": _law_facts(law),
        "budget": None if budget is None else dict(budget),
    }


def _of_rows(search: Guarantee, rows: int, delta: float) -> float:
    """The epsilon of a person with several rows: from the Renyi curve of a search, whose profile takes seconds."""
    if search.gaussian_mu is not None or search.renyi_curve is None or search.failure > 0.0:
        return search.of_rows(rows).epsilon(delta)
    return replace(replace(search, profile=None).of_rows(rows), profile=None).epsilon(delta)


def _curve(single: Guarantee, search: Guarantee, *, epsilon: float, delta: float) -> dict[str, Any]:
    """Delta at each epsilon for one run and for the search. The stated point is on the curve.

    A point of the optimal bound takes about 0.1 s, more for laws of hundreds of runs: as many as the eye needs.
    """
    grid = np.unique(np.append(np.linspace(0.0, 1.4 * epsilon or 1.0, 15), epsilon))
    return {
        "epsilon": grid.tolist(),
        "one_run": np.clip(single.delta(grid), 0.0, 1.0).tolist(),
        "search": np.clip(search.delta(grid), 0.0, 1.0).tolist(),
        "log": delta > 0.0,
    }


def _costs(
    parts: Sequence[Guarantee], search: Guarantee, law: Repetitions, beside: Mapping[str, Guarantee], *, delta: float
) -> list[dict[str, Any]]:
    """Epsilon of this search and of other ways to pay, at the same delta.

    Compositions count training alone, not the scores: the least that they would cost. They are of numbers of runs that
    the public law names.
    """
    costs = [_cost(label, guarantee, delta, "run") for label, guarantee in beside.items()]
    costs += [
        _cost("one run alone", worst_of(*parts), delta, "run"),
        _cost("this search", search, delta, "search"),
    ]
    try:
        renyi = worst_of(*[best_of(part, law, bound="renyi") for part in parts])
        published = compose(renyi, *beside.values())
        costs.append(_cost("the same search, by the published Renyi bound", published, delta, "other"))
    except BoundUnavailableError:
        pass  # a law or a base without that bound
    for name, count in (("mean", math.ceil(law.mean - 1e-9)), ("99th percentile", law.quantile(0.99))):
        runs = max(1, count)
        label = f"{runs} run{'s' if runs > 1 else ''} one by one, the law's {name}"
        costs.append(_cost(label, compose(*[parts[0]] * runs, *beside.values()), delta, "composition"))
    return costs


def _cost(label: str, guarantee: Guarantee, delta: float, kind: str) -> dict[str, Any]:
    epsilon = guarantee.epsilon(delta)
    return {"label": label, "kind": kind, "epsilon": _finite(epsilon)}


def _finite(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None


def _law_facts(law: Repetitions) -> dict[str, Any]:
    most = min(law.quantile(0.999), _MOST_COUNTS)
    chances = np.logspace(-3, 0, 46)
    return {
        "description": dict(law.describe()),
        "mean": law.mean,
        "runs_50": law.quantile(0.5),
        "runs_99": law.quantile(0.99),
        "limit": law.limit,
        "minimum": law.minimum,
        **quality_of(law).describe(),
        "probabilities": [float(law.pmf(k)) for k in range(most + 1)],
        "chances": chances.tolist(),
        "success": [float(law.success_probability(float(p))) for p in chances],
    }
