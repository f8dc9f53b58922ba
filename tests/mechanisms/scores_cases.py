"""Privacy losses of score mechanisms for all moves of the scores."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np


def neighbour_moves(count: int, monotonic: bool) -> np.ndarray:
    """All moves of the scores by whole steps: by -1, 0 or 1 each, or by 0 or 1 each."""
    return np.array(list(itertools.product((0, 1) if monotonic else (-1, 0, 1), repeat=count)), dtype=float)


def losses(law: Callable[..., Any], q: np.ndarray, rate: float, monotonic: bool) -> np.ndarray:
    """log P/P' of every output (last axis) for every neighbour, both directions."""
    moved = np.stack([law(q + move, rate) for move in neighbour_moves(len(q), monotonic)])
    ratio = np.log(moved) - np.log(law(q, rate))
    return np.concatenate((ratio, -ratio))
