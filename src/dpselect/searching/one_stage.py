"""One stage: a secret number of runs draw their settings, and the best run is released."""

from __future__ import annotations

from dataclasses import dataclass

from dpselect.searching.design import Design, DesignPrice, PriceRequest, search_design

__all__ = ["OneStage"]


@search_design("one-stage")
@dataclass(frozen=True, kw_only=True)
class OneStage(Design):
    """The best of a random number of runs (Papernot and Steinke, "Hyperparameter tuning with Renyi DP", 2022)."""

    def price(self, request: PriceRequest) -> DesignPrice:
        """The noise of the runs with which the search meets the whole total."""
        return request.searched(request.repetitions, 1.0)
