"""The bytes that everything is drawn from: AES-256 in counter mode, safe with threads and after a fork."""

from __future__ import annotations

import math
import os
import threading
import weakref

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from dpselect.errors import ForkedSourceError, integer
from dpselect.randomness.process import in_each_child, this_process
from dpselect.randomness.process_start import refuse_while_starting
from dpselect.randomness.session import Unrepeatable

__all__ = ["BitStream", "Shape", "parse_shape"]

_BUFFER = 1 << 12
_FIRST = 1 << 6
"""Bytes that a source of system entropy takes from there before it makes a stream: many draw a number or two."""
_MOST = 1 << 44
_SPARE = [8 - (k - 1).bit_length() if k else 8 for k in range(257)]
"""Bits of a byte that a number below k leaves. (255 draws of 0 on end have probability 1/256!.)"""
_FROM_ZERO = modes.CTR(bytes(16))
Shape = int | tuple[int, ...]


def parse_shape(size: Shape) -> tuple[int, ...]:
    """The lengths of the axes. Raises `TypeError` or `ArgumentError`."""
    lengths = size if isinstance(size, tuple) else (size,)
    return tuple(integer("size", length, at_least=0, at_most=1 << 40) for length in lengths)


class BitStream(Unrepeatable):
    """Uniform bits, integers and words of one key: what a `RandomSource` makes everything else of."""

    __slots__ = ("__weakref__", "_buffer", "_key", "_lock", "_position", "_process", "_stream")

    def __init__(self, key: bytes | None) -> None:
        self._lock = threading.Lock()
        _sources.add(self)
        self._restart(key)

    def _restart(self, key: bytes | None) -> None:
        self._key = key
        self._process = this_process()  # copies: begins again from system entropy in a forked child
        self._stream: CipherContext | None = None  # made when it is needed, since many sources only give others
        self._buffer = b""
        self._position = 0

    def _next(self, count: int) -> bytes:
        if self._key is None:
            refuse_while_starting("a draw from system entropy")
        if self._stream is None:
            key = os.urandom(32) if self._key is None else self._key
            self._stream = Cipher(algorithms.AES(key), _FROM_ZERO).encryptor()
        return self._stream.update(bytes(count))

    def _refill(self, needed: int) -> bytes:
        """Bytes for the buffer, at least as many as needed."""
        if self._key is not None or self._buffer or needed > _FIRST:
            return self._next(_BUFFER)
        refuse_while_starting("a draw from system entropy")
        return os.urandom(_FIRST)

    def _take(self, count: int) -> bytes:
        with self._lock:
            if self._process is not this_process():  # copies: begins again from system entropy in a forked child
                self._leave_parent()
            if count > _BUFFER:
                return self._next(count)
            start, end = self._position, self._position + count
            if end > len(self._buffer):
                self._buffer = self._buffer[start:] + self._refill(count)
                start, end = 0, count
            self._position = end
            return self._buffer[start:end]

    @property
    def replayable(self) -> bool:
        """Whether anyone who knows the key can repeat these draws. Such draws promise nothing to that person."""
        return self._key is not None

    def bytes(self, count: int) -> bytes:
        """`count` uniform random bytes."""
        if type(count) is not int or not 0 <= count <= _MOST:  # fewer than none would wind the stream back
            count = integer("count", count, at_least=0, at_most=_MOST)
        return self._take(count)

    def _leave_parent(self) -> None:
        """In a forked child: a stream of its own, or where there can be none an error."""
        if self._key is not None:
            raise ForkedSourceError(
                "this keyed random source was made before a fork and would repeat its parent's draws; "
                "make one in the child from `spawn(label)`'s key or use the spawn start method"
            )
        self._restart(None)

    def bits(self, count: int) -> int:
        """A uniform integer in [0, 2**count)."""
        if type(count) is not int or count < 0:
            count = integer("count", count, at_least=0)
        if not count:
            return 0
        size = (count + 7) >> 3
        return int.from_bytes(self._take(size), "little") >> 8 * size - count

    def below(self, bound: int) -> int:
        """An exactly uniform integer in [0, bound), by rejection."""
        if type(bound) is not int or bound < 1:
            bound = integer("bound", bound, at_least=1)
        if bound == 1:
            return 0
        width = (bound - 1).bit_length()
        size = (width + 7) >> 3
        spare = 8 * size - width
        while (drawn := int.from_bytes(self._take(size), "little") >> spare) >= bound:
            pass
        return drawn

    def unit_coins(self, most: float = math.inf) -> int:
        """How many coins of probability exp(-1) land heads before one lands tails, up to `most` of them.

        A coin lands heads if the least k >= 2 with a positive draw below k is odd (Canonne, Kamath, Steinke 2020,
        Algorithm 1). This takes the bytes that `below(2)`, `below(3)` and so on would take.
        """
        heads, k = 0, 2
        with self._lock:
            if self._process is not this_process():  # copies: begins again from system entropy in a forked child
                self._leave_parent()
            place = self._position
            while heads < most:
                if place == len(self._buffer):
                    self._buffer, self._position, place = self._refill(1), 0, 0
                drawn = self._buffer[place] >> _SPARE[k]
                place += 1
                if not drawn:
                    k += 1
                elif drawn < k:
                    if not k & 1:
                        break
                    heads, k = heads + 1, 2
            self._position = place
        return heads

    def words(self, size: Shape) -> NDArray[np.uint64]:
        """An array of uniform 64-bit words."""
        shape = parse_shape(size)
        return np.frombuffer(self.bytes(8 * math.prod(shape)), dtype="<u8").reshape(shape)


_sources: weakref.WeakSet[BitStream] = weakref.WeakSet()


def _renew_locks() -> None:
    """In a forked child a lock that another thread of the parent held would never be released."""
    for source in list(_sources):
        source._lock = threading.Lock()


in_each_child(_renew_locks)
