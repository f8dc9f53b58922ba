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
_MOST = 1 << 44
_FROM_ZERO = modes.CTR(bytes(16))
Shape = int | tuple[int, ...]


def parse_shape(size: Shape) -> tuple[int, ...]:
    """The lengths of the axes. Raises `TypeError` or `ArgumentError`."""
    lengths = size if isinstance(size, tuple) else (size,)
    return tuple(integer("size", length, at_least=0, at_most=1 << 40) for length in lengths)


class BitStream(Unrepeatable):
    """Uniform bits, integers and words of one key: what a `RandomSource` makes everything else of."""

    __slots__ = ("__weakref__", "_buffer", "_key", "_lock", "_position", "_process", "_replayable", "_stream")

    def __init__(self, key: bytes | None) -> None:
        self._lock = threading.Lock()
        _sources.add(self)
        self._replayable = key is not None
        self._restart(os.urandom(32) if key is None else key)

    def _restart(self, key: bytes) -> None:
        self._key = key
        self._process = this_process()  # copies: takes a new key in a forked child
        self._stream: CipherContext | None = None  # made for the first draw, since many sources only give others
        self._buffer = b""
        self._position = 0

    def _next(self, count: int) -> bytes:
        if not self._replayable:
            refuse_while_starting("a draw from system entropy")
        if self._stream is None:
            self._stream = Cipher(algorithms.AES(self._key), _FROM_ZERO).encryptor()
        return self._stream.update(bytes(count))

    @property
    def replayable(self) -> bool:
        """Whether anyone who knows the key can repeat these draws. Such draws promise nothing to that person."""
        return self._replayable

    def bytes(self, count: int) -> bytes:
        """`count` uniform random bytes."""
        if type(count) is not int or not 0 <= count <= _MOST:  # fewer than none would wind the stream back
            count = integer("count", count, at_least=0, at_most=_MOST)
        with self._lock:
            if self._process is not this_process():  # copies: takes a new key in a forked child
                self._leave_parent()
            if count > _BUFFER:
                return self._next(count)
            start, end = self._position, self._position + count
            if end > len(self._buffer):
                self._buffer = self._buffer[start:] + self._next(_BUFFER)
                start, end = 0, count
            self._position = end
            return self._buffer[start:end]

    def _leave_parent(self) -> None:
        """In a forked child: a stream of its own, or where there can be none an error."""
        if self._replayable:
            raise ForkedSourceError(
                "this keyed random source was made before a fork and would repeat its parent's draws; "
                "make one in the child from `spawn(label)`'s key or use the spawn start method"
            )
        self._restart(os.urandom(32))

    def bits(self, count: int) -> int:
        """A uniform integer in [0, 2**count)."""
        if type(count) is not int or count < 0:
            count = integer("count", count, at_least=0)
        size = (count + 7) // 8
        return int.from_bytes(self.bytes(size), "little") >> (8 * size - count) if count else 0

    def below(self, bound: int) -> int:
        """An exactly uniform integer in [0, bound), by rejection."""
        bound = integer("bound", bound, at_least=1)
        width = (bound - 1).bit_length()
        while (drawn := self.bits(width)) >= bound:
            pass
        return drawn

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
