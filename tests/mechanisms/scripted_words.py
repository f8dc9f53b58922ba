"""A random source whose first words are given."""

from __future__ import annotations

import numpy as np

from dpselect.randomness import RandomSource


class Scripted(RandomSource):
    """The first words are given."""

    __slots__ = ("_given",)

    def __init__(self, key: str, words: list[int]) -> None:
        super().__init__(key.encode().ljust(32))
        self._given = words

    def words(self, size: int) -> np.ndarray:  # type: ignore[override]
        drawn, self._given = self._given[:size], self._given[size:]
        return np.array(drawn, dtype=np.uint64)
