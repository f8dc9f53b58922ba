"""One source that everything draws from: a cryptographic stream (AES-256 in counter mode), vectorised into NumPy.

The system source is keyed from the operating system's entropy and takes a fresh key after a fork. A keyed source
replays the same stream for the same key, so it refuses to draw in a forked child, where it would repeat its parent's
numbers. `spawn(label)` gives an independent stream that depends on the key and the label only, never on how much was
drawn before.

A child process that is being started, and so runs its parent's script again, may make a system source but not draw.
"""

from __future__ import annotations

import hashlib
import hmac
import operator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import integer, number
from dpselect.randomness.bulk_gaussian import discrete_gaussian_numbers
from dpselect.randomness.stream import BitStream, Shape

__all__ = ["RandomSource", "keyed_source", "resolve", "system_source"]


class RandomSource(BitStream):
    """A cryptographic random stream. Make one with `system_source()` or `keyed_source(key)`.

    It has no informative `repr`, cannot be copied or pickled, and is safe to share between threads. A keyed source
    repeats its draws when the same calls are made in the same order. The same bytes asked for in other portions may
    differ, since a large request does not use up the rest of small ones.

    Args:
        key: the AES key of the stream, as `keyed_source` derives it. None takes a secret one from system entropy.
    """

    __slots__ = ()

    def spawn(self, label: str | int) -> RandomSource:
        """An independent source that depends on this source's key and the label only.

        The child of a system source is fresh, so its label does not matter.
        """
        if self._key is None:
            return RandomSource(None)
        if isinstance(label, bool):
            raise TypeError("label must be a string or an integer")
        # a NumPy integer is the same label as the integer it equals; 1 and "1" are different labels
        name = (
            f"str:{label}".encode("utf-8", "surrogatepass")
            if isinstance(label, str)
            else f"int:{operator.index(label)}".encode()
        )
        return RandomSource(hmac.new(self._key, b"dpselect spawn " + name, hashlib.sha256).digest())

    def uniform(self, size: Shape) -> NDArray[np.float64]:
        """Uniform doubles on the odd multiples of 2**-53 in (0, 1), never 0 and never 1."""
        # 52 bits and the half: with 53 the sum would round, and 1 - 2**-54 to 1
        return ((self.words(size) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52

    def normal(self, size: Shape) -> NDArray[np.float64]:
        """Standard normal doubles: the discrete Gaussian on the multiples of 2**-58, exactly, rounded to doubles.

        Seen through a mesh of width h deviations the total variation distance to a standard normal is about
        2**-59 / h. Noise on a grid is better drawn as integers (`discrete_gaussian_array`).
        """
        return discrete_gaussian_numbers(Fraction(1 << 116), size, self).astype(np.float64) * 2.0**-58

    def exponential(self, size: Shape) -> NDArray[np.float64]:
        """Standard exponential doubles by inversion."""
        return -np.log(self.uniform(size))

    def laplace(self, size: Shape) -> NDArray[np.float64]:
        """Standard (scale one) Laplace doubles: an exponential with a random sign."""
        words = self.words(size)
        magnitude = -np.log(((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-63)
        return np.where(words & np.uint64(1), 1.0, -1.0) * magnitude

    def gamma(self, shape: int, size: Shape) -> NDArray[np.float64]:
        """Standard gamma doubles with an integer shape: a sum of `shape` exponentials."""
        shape = integer("shape", shape, at_least=1)
        dims = size if isinstance(size, tuple) else (size,)
        return np.sum(self.exponential((*dims, shape)), axis=-1)

    def bernoulli(self, probability: float, size: Shape) -> NDArray[np.bool_]:
        """Coins that land true with the given probability, up to 2**-64."""
        probability = number("probability", probability, at_least=0.0, at_most=1.0)
        if probability >= 1.0:
            return np.ones(size, dtype=bool)
        return self.words(size) < np.uint64(int(probability * 2.0**64))

    def permutation(self, count: int) -> NDArray[np.intp]:
        """A uniform order of 0 .. count-1: the ranks of independent 64-bit words, drawn again on a collision."""
        while True:
            words = self.words(count)
            order = np.argsort(words, kind="stable")
            if count < 2 or bool(np.all(np.diff(words[order]) > 0)):
                return order

    def __repr__(self) -> str:
        return f"<RandomSource {'keyed, replayable' if self.replayable else 'system entropy'}>"

    def __deepcopy__(self, memo: Any) -> RandomSource:  # copies: shared by clones
        # scikit-learn's clone() deep-copies parameters; a shared source keeps its draws distinct.
        return self


def system_source() -> RandomSource:
    """A source seeded from the operating system's entropy. It takes a fresh key after a fork."""
    return RandomSource(None)


def keyed_source(key: bytes | str | int) -> RandomSource:
    """Return a source that replays the same draws for the same key. For replay and tests only.

    Args:
        key: bytes, a string or an integer. Equal values of different types give different draws. Anyone who knows the
            key can repeat the draws.

    Raises:
        TypeError: if `key` is something else; a boolean is not an integer here.

    >>> keyed_source(7).bits(16) == keyed_source(7).bits(16)
    True
    """
    if not isinstance(key, (bytes, str, int)) or isinstance(key, bool):
        raise TypeError("key must be bytes, a string or an integer")
    kind = "bytes" if isinstance(key, bytes) else "str" if isinstance(key, str) else "int"
    material = key if isinstance(key, bytes) else str(key).encode("utf-8", "surrogatepass")
    return RandomSource(hashlib.sha256(b"dpselect key " + kind.encode() + b":" + material).digest())


def resolve(random: RandomSource | None) -> RandomSource:
    """Return the caller's source, or a fresh one from system entropy.

    Args:
        random: a source, or None for a fresh one.

    Raises:
        TypeError: if `random` is anything else, a NumPy generator or an integer seed among them. Those are not secret.
    """
    if random is None:
        return system_source()
    if not isinstance(random, RandomSource):
        raise TypeError(
            f"random must be a RandomSource or None, got {type(random).__name__}. Leave it out: noise from a seed "
            "that others know protects nothing. In a test, write random=dpselect.randomness.keyed_source(1)"
        )
    return random
