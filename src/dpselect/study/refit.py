"""Step 6 of a study: the model that was found, of a search in two stages from one run more on all rows.

That run is made once its search has a winner and before anything is released. The model follows from what it gives
alone, so that it can be made again after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.study.bounds import known_columns
from dpselect.study.candidates import PortfolioCandidate
from dpselect.study.data import Rows
from dpselect.study.load import Opened
from dpselect.study.model_file import model_bytes
from dpselect.study.price import Priced
from dpselect.study.second_stage import SecondStage
from dpselect.study.validate import Settled
from dpselect.tuning import SharedRelease, TuneResult
from dpselect.tuning.trial import Objective, TwoStageObjective

__all__ = ["Refitted", "Withheld", "followed", "refit"]


@dataclass(frozen=True, repr=False)
class Refitted:
    """The released model: its candidate with the columns as they were trained, its file, and the counts of its score.

    `counts` are the noisy counts of the table's cells.
    """

    chosen: PortfolioCandidate
    content: bytes
    cells: NDArray[np.int64] | None
    counts: NDArray[np.int64] | None = None


@dataclass(frozen=True, repr=False)
class Withheld:
    """The release of a study whose cells cannot be read: the counts that show it."""

    counts: NDArray[np.int64]


def followed(opened: Opened, run: Objective | SharedRelease) -> Objective | SharedRelease | TwoStageObjective:
    """The runs of a study, and where its design has one the run on all rows after them."""
    return run if opened.priced.price.second is None else TwoStageObjective(run, partial(_last_run, opened))


def _last_run(opened: Opened, params: Mapping[str, Any], value: Any) -> tuple[Any, ...]:
    """The value of a run of the search with the weights of the run on all rows in the place of its key."""
    if _is_withheld(opened.priced, value):
        return tuple(value)
    key, *beside = value
    settled = _with_bounds(opened.priced, beside)
    stage = _second(opened.priced, settled)
    rows = opened.rows.with_columns(settled.columns) if isinstance(opened.rows, Rows) else opened.rows
    settings = stage.carried(PortfolioCandidate(params, settled.recipe).parameters)
    weights = stage.trained(settings, rows.all, key.tobytes())
    if weights is None:
        raise RuntimeError("the run on all rows failed")
    return (*weights, *beside)


def _is_withheld(priced: Priced, value: Sequence[Any]) -> bool:
    """Whether the counts, which stand last in the value of a run, say that there was nothing to train."""
    price = priced.price.cells
    return price is not None and bool(price.withheld(np.asarray(value[-1], dtype=np.int64)))


def _with_bounds(priced: Priced, value: list[Any]) -> Settled:
    """With the bounds that were bought, which stand last in the value of a run, but for counts of cells."""
    purchase, settled = priced.price.purchase, priced.settled
    if purchase is None:
        return settled
    limits = value[-1 if priced.price.cells is None else -2]
    return settled.with_columns(known_columns(purchase, settled.columns, limits))


def _second(priced: Priced, settled: Settled) -> SecondStage:
    second = priced.price.second
    assert second is not None
    return replace(second, recipe=replace(second.recipe, columns=settled.columns))


def refit(opened: Opened, result: TuneResult) -> Refitted | Withheld | None:
    """The model in the value of a search, None if nothing was found."""
    if result.value is None:
        return None
    price, weights, cells, counts = opened.priced.price, list(result.value), None, None
    settled = _with_bounds(opened.priced, weights)
    if price.cells is not None:
        withheld = _is_withheld(opened.priced, weights)
        counts = np.asarray(weights.pop(), dtype=np.int64)
        if withheld:
            return Withheld(counts)
    if price.purchase is not None:
        weights.pop()
    if settled.shows_score:
        cells = np.asarray(weights.pop(), dtype=np.int64)
    chosen, noise = PortfolioCandidate(result.params or {}, settled.recipe), price.noise
    if price.portfolio is not None:
        place = int(weights.pop(0))
        chosen, noise = settled.candidates[place], price.portfolio.noises[place]
    if price.second is not None:
        stage = _second(opened.priced, settled)
        chosen, noise = PortfolioCandidate(stage.carried(chosen.parameters), stage.recipe), stage.noise
    parameters = chosen.parameters if price.portfolio is None else {}
    content = model_bytes(chosen.recipe, noise=noise, parameters=parameters, weights=weights)
    return Refitted(chosen, content, cells, counts)
