"""Step 6 of a study: the model that was found, and of a search in two stages the run on all rows that makes it.

The same at every call, so that it can be called again after a crash.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpselect.study.bounds import known_columns
from dpselect.study.candidates import PortfolioCandidate
from dpselect.study.model_file import model_bytes
from dpselect.study.opened import Opened
from dpselect.tuning import TuneResult

__all__ = ["Refitted", "refit"]


@dataclass(frozen=True, repr=False)
class Refitted:
    """What is released: which way of training, with the columns as they were trained, the file, a figure's cells."""

    chosen: PortfolioCandidate
    content: bytes
    cells: NDArray[np.int64] | None


def refit(opened: Opened, result: TuneResult) -> Refitted | None:
    """The model that the value of a search stands for; None where nothing was found."""
    if result.value is None:
        return None
    settled, price = opened.priced.settled, opened.priced.price
    weights, cells = result.value, None
    if price.purchase is not None:
        *weights, limits = weights
        settled = settled.with_columns(known_columns(price.purchase, settled.columns, limits))
    if settled.shows_score:
        *weights, last = weights
        cells = np.asarray(last, dtype=np.int64)
    chosen, noise = PortfolioCandidate(result.params or {}, settled.recipe), price.noise
    if price.portfolio is not None:
        place, *weights = weights
        chosen, noise = settled.candidates[int(place)], price.portfolio.noises[int(place)]
    if price.second is not None:
        stage = replace(price.second, recipe=replace(price.second.recipe, columns=settled.columns))
        rows = opened.rows.with_columns(settled.columns)
        chosen, noise = PortfolioCandidate(stage.carried(chosen.parameters), stage.recipe), stage.noise
        weights = stage.trained(chosen.parameters, (rows.features, rows.labels), weights[0].tobytes())
        if weights is None:
            return None
    parameters = chosen.parameters if price.portfolio is None else {}
    return Refitted(chosen, model_bytes(chosen.recipe, noise=noise, parameters=parameters, weights=weights), cells)
