"""The noise of every question, from one sealed key: asking again draws the same, no matter what happened in between."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpselect.randomness import RandomSource, keyed_source

__all__ = ["Draws", "class_codes", "fingerprint"]


def fingerprint(key: bytes, *parts: bytes) -> str:
    """A name for content that no one without the key can check a guess against."""
    digest = hmac.new(key, b"dpselect question", hashlib.sha256)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def class_codes(key: bytes, names: Sequence[str]) -> NDArray[np.uint64]:
    """Classes as numbers of one size, so that the size of what is sealed tells nothing about them.

    Two classes have the same number with probability 2**-64.
    """
    codes = {
        name: int(fingerprint(key, b"class", name.encode("utf-8", "surrogatepass"))[:16], 16) for name in set(names)
    }
    return np.array([codes[name] for name in names], dtype=np.uint64)


@dataclass(frozen=True, repr=False)
class Draws:
    """The source of the noise of one question.

    The same predictions get the same noisy score no matter what was claimed of them, so that no average over claims
    removes the noise. `run` numbers the thresholds: a new one for each answer that was given.
    """

    key: bytes
    predictions: str
    question: str
    run: int

    def cut(self) -> RandomSource:
        """For cutting the rows into blocks: the same for all questions."""
        return self._source("cut")

    def answer(self) -> RandomSource:
        """For the score of these predictions."""
        return self._source(f"answer {self.predictions}")

    def threshold(self) -> RandomSource:
        """For the threshold of this run of checks."""
        return self._source(f"threshold {self.run}")

    def check(self) -> RandomSource:
        """For this check in this run."""
        return self._source(f"check {self.run} {self.question}")

    def _source(self, label: str) -> RandomSource:
        return keyed_source(self.key).spawn(label)
