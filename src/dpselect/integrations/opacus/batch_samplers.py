"""How the rows of each batch are drawn: Poisson samples, random allocation, or batches of fixed size.

A sampler is made of public numbers. It knows its price, and it draws each batch from a source and the number of its
step alone. So a training that continues draws the same batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError
from dpselect.privacy import Guarantee, dp_sgd, fixed_batches, random_allocation
from dpselect.randomness import RandomSource

__all__ = ["SAMPLINGS", "BatchSampler", "FixedBatches", "PoissonBatches", "RandomAllocation", "Sampling", "sampler_of"]

Sampling = Literal["poisson", "random-allocation", "fixed-batches"]
Places = NDArray[np.intp]

SAMPLINGS: Final[tuple[Sampling, ...]] = ("poisson", "random-allocation", "fixed-batches")
_ROUNDING: Final = 1e-9
_MOST: Final = 1e15
"""More rows or steps than anyone has."""


class BatchSampler(Protocol):
    """The public numbers of a sampler."""

    def guarantee(self, noise_multiplier: float, adjacency: str) -> Guarantee:
        """The price of the whole training."""
        ...

    def check(self, count: int) -> None:
        """Raise `ArgumentError` unless so many rows may be sampled. It raises only where the number is public."""
        ...

    def batches(self, count: int, random: RandomSource, done: int = 0) -> Iterator[Places]:
        """The places of the rows in each batch, in ascending order, after so many that are done."""
        ...


@dataclass(frozen=True)
class PoissonBatches:
    """Each row is in each batch with probability `rate`, independently."""

    rate: float
    steps: int

    def guarantee(self, noise_multiplier: float, adjacency: str) -> Guarantee:
        """The price of `dp_sgd`."""
        return dp_sgd(noise_multiplier=noise_multiplier, sampling_rate=self.rate, steps=self.steps, adjacency=adjacency)

    def check(self, count: int) -> None:
        """Any number of rows will do."""

    def batches(self, count: int, random: RandomSource, done: int = 0) -> Iterator[Places]:
        """One coin for each row in each step."""
        for step in range(done, self.steps):
            yield random.spawn(step).bernoulli(self.rate, count).nonzero()[0]


@dataclass(frozen=True)
class RandomAllocation:
    """Each row is in one batch of every epoch, which it draws uniformly."""

    steps_per_epoch: int
    epochs: int

    def guarantee(self, noise_multiplier: float, adjacency: str) -> Guarantee:
        """The price of `random_allocation`."""
        return random_allocation(
            noise_multiplier=noise_multiplier,
            steps_per_epoch=self.steps_per_epoch,
            epochs=self.epochs,
            adjacency=adjacency,
        )

    def check(self, count: int) -> None:
        """Any number of rows will do."""

    def batches(self, count: int, random: RandomSource, done: int = 0) -> Iterator[Places]:
        """For each epoch, the rows that drew its first step, its second one, and so on."""
        first, skipped = divmod(done, self.steps_per_epoch)
        for epoch in range(first, self.epochs):
            drawn = _uniform_below(self.steps_per_epoch, count, random.spawn(f"epoch {epoch}"))
            order = np.argsort(drawn, kind="stable")
            ends = np.searchsorted(drawn[order], np.arange(1, self.steps_per_epoch))
            yield from np.split(order, ends)[skipped if epoch == first else 0 :]


@dataclass(frozen=True)
class FixedBatches:
    """Each batch has `size` of the `rows` rows, drawn without replacement."""

    rows: int
    size: int
    steps: int

    def guarantee(self, noise_multiplier: float, adjacency: str) -> Guarantee:
        """The price of `fixed_batches`."""
        return fixed_batches(
            noise_multiplier=noise_multiplier,
            dataset_size=self.rows,
            batch_size=self.size,
            steps=self.steps,
            adjacency=adjacency,
        )

    def check(self, count: int) -> None:
        """The number of rows is public, and the price depends on it."""
        if count != self.rows:
            raise ArgumentError(
                f"inputs must have expected_batch_size / sampling_rate = {self.rows} rows for fixed-batches, got "
                f"{count}. Make sampling_rate the batch size over the number of rows"
            )

    def batches(self, count: int, random: RandomSource, done: int = 0) -> Iterator[Places]:
        """The first rows of a uniform order for each step."""
        for step in range(done, self.steps):
            yield np.sort(random.spawn(step).permutation(count)[: self.size])


def sampler_of(sampling: Sampling, *, sampling_rate: float, steps: int, batch_size: float) -> BatchSampler:
    """The sampler of this name.

    Args:
        sampling: one of `SAMPLINGS`.
        sampling_rate: the share of the rows that a batch has on average.
        steps: the number of batches.
        batch_size: the expected batch size, which is the size for fixed-batches.

    Raises:
        ArgumentError: for an unknown name, and for numbers that do not belong together.
    """
    if sampling == "poisson":
        return PoissonBatches(sampling_rate, steps)
    if sampling == "random-allocation":
        per_epoch = round(min(1.0 / sampling_rate, _MOST))
        if abs(per_epoch * sampling_rate - 1.0) > _ROUNDING or steps % per_epoch:
            raise ArgumentError(
                "sampling_rate must be 1 / the number of steps of an epoch for random-allocation, such as 1 / 50, and "
                f"steps a multiple of that number, got {sampling_rate!r} and {steps}"
            )
        return RandomAllocation(per_epoch, steps // per_epoch)
    if sampling == "fixed-batches":
        rows = round(min(batch_size / sampling_rate, _MOST))
        if batch_size != int(batch_size) or abs(rows * sampling_rate / batch_size - 1.0) > _ROUNDING:
            raise ArgumentError(
                "expected_batch_size must be an integer for fixed-batches, and sampling_rate that integer over the "
                f"number of rows, such as 64 / 1000, got {batch_size!r} and {sampling_rate!r}"
            )
        return FixedBatches(rows, int(batch_size), steps)
    said = f"sampling must be one of {', '.join(SAMPLINGS)}, got {sampling!r}"
    raise ArgumentError(said + write_one_of("sampling", sampling, SAMPLINGS))


def _uniform_below(bound: int, count: int, random: RandomSource) -> Places:
    """So many uniform integers from 0 to bound - 1, exactly: words past the last multiple are drawn again."""
    words = np.array(random.words(count))  # a copy: the source's own may be read-only
    last = np.uint64(2**64 - 2**64 % bound - 1)
    while (again := np.flatnonzero(words > last)).size:
        words[again] = random.words(again.size)
    return (words % np.uint64(bound)).astype(np.intp)
