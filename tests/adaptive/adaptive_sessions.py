"""An analysis of normal rows, and a spender that records: for the tests of sessions."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from dpselect.adaptive import (
    AdaptiveAnalysis,
)
from dpselect.errors import BudgetError
from dpselect.privacy import Guarantee, OutputGuarantee
from dpselect.privacy.release import Receipt
from dpselect.randomness import keyed_source


class Recorder:
    """A spender that records, and refuses after `limit` reservations."""

    def __init__(self, limit: int = 10**9) -> None:
        self.limit = limit
        self.reserved: list[tuple[str, Guarantee | OutputGuarantee]] = []
        self.settled: list[str] = []

    def reserve(self, guarantee: Guarantee | OutputGuarantee, *, label: str, identifier: str) -> Receipt:
        if len(self.reserved) >= self.limit:
            raise BudgetError("spent")
        self.reserved.append((identifier, guarantee))
        return Receipt(label, identifier, {})

    def settle(self, identifier: str, *, cell: Hashable | None = None) -> Receipt:
        self.settled.append(identifier)
        return Receipt("all", identifier, {})


def normal_rows(count: int = 60_000, mean: float = 0.3) -> np.ndarray:
    return np.random.default_rng(0).normal(mean, 1.0, count)


def analysis(data: Any = None, **changes: Any) -> AdaptiveAnalysis:
    settings: dict[str, Any] = {
        "queries": 5,
        "subsample_size": 20,
        "failure_probability": 0.05,
        "grid_size": 1001,
        "random": keyed_source(1),
    }
    return AdaptiveAnalysis(normal_rows() if data is None else data, **(settings | changes))
