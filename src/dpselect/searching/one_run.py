"""One run: the settings as they are, with all of the total."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpselect.repetitions import Fixed
from dpselect.searching.design import Design, DesignPrice, PriceRequest, search_design

__all__ = ["SingleRun"]


@search_design("one-run")
@dataclass(frozen=True, kw_only=True)
class SingleRun(Design):
    """One run."""

    whole: ClassVar[str] = "run"
    draws: ClassVar[bool] = False

    def price(self, request: PriceRequest) -> DesignPrice:
        """The noise of one run with the whole total."""
        return request.searched(Fixed(count=1), 1.0)
