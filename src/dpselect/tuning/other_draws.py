"""The random states of NumPy and Python within a trial: seeded from the trial's key, and restored afterwards.

A network's function may draw its first weights from `numpy.random`. An estimator without `random_state` may draw its
splits there. A trial that is run again, anywhere, then gives the same release. These generators can be predicted. No
noise may come from them, and no guarantee rests on them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

import numpy as np
from numpy.random.mtrand import get_bit_generator, set_bit_generator

from dpselect.privacy.boundary import SharedPatch
from dpselect.randomness import RandomSource

__all__ = ["seeded_draws"]


@cache
def _generator() -> np.random.BitGenerator:
    """One generator for all trials of this process: to make one takes longer than to seed it."""
    return np.random.MT19937(0)


def _keep() -> Callable[[], None]:
    numpys, pythons = get_bit_generator(), random.getstate()
    set_bit_generator(_generator())

    def restore() -> None:
        set_bit_generator(numpys)
        random.setstate(pythons)

    return restore


_kept: Final = SharedPatch(_keep)
"""Trials in threads share these states: they are restored after the last. What each of them draws is not determined."""


@contextmanager
def seeded_draws(source: RandomSource) -> Iterator[None]:
    """Seed `numpy.random` and `random` from the source within the block.

    >>> from dpselect.randomness import keyed_source
    >>> with seeded_draws(keyed_source(1)):
    ...     first = random.random(), np.random.rand()
    >>> with seeded_draws(keyed_source(1)):
    ...     print(first == (random.random(), np.random.rand()))
    True
    """
    drawn = source.spawn("other draws")
    with _kept:
        random.seed(drawn.bytes(32))
        np.random.seed(np.frombuffer(drawn.bytes(32), dtype=np.uint32))  # noqa: NPY002
        yield
