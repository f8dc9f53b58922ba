"""Where a chain of entries ended, kept in a small file apart from the record itself.

Two slots are written in turn, so that an interrupted write leaves the other. A head is only ever replaced by a later
one, under the file's lock. It is on disk when the call returns. Both slots have their room on the disk before the first
of them is written, so that a disk that is full later does not keep a later head out (on file systems that copy what
they overwrite it may).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from dpselect.storage import durable

try:
    import fcntl
except ImportError:  # Windows: two processes at once may leave the earlier of two heads, which finds less
    fcntl = None  # type: ignore[assignment]

__all__ = ["HeadFile", "KeptHead"]

_SLOT = 1024
_PLACES = (0, 4096)  # on two pages, so that no single torn page holds both
_ROOM = _PLACES[1] + _SLOT
_LONGEST_PLACE = 400


@dataclass(frozen=True)
class KeptHead:
    """The last known entry of a chain. `place` shows people where the record was."""

    chain: str
    sequence: int
    head: str
    place: str


@dataclass(frozen=True)
class HeadFile:
    """The file that keeps the head of one chain."""

    path: Path

    def read(self) -> KeptHead | None:
        """Return the head that is kept, or None if there is no file or its creation was interrupted.

        Raises `OSError` when it cannot be read and `ValueError` when it is damaged.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | durable.FLAGS)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return _latest(descriptor)[0]
        except ValueError:
            if fcntl is None:
                raise
            fcntl.flock(descriptor, fcntl.LOCK_SH)  # not while it is being written
            return _latest(descriptor)[0]
        finally:
            os.close(descriptor)

    def advance(self, kept: KeptHead) -> None:
        """Keep this head unless a later one is kept. The next one has its room on return. Raises as `read`."""
        self.change(lambda known: None if known is not None and known.sequence >= kept.sequence else kept)

    def change(self, change: Callable[[KeptHead | None], KeptHead | None]) -> None:
        """Replace the kept head by the result of `change`, under the lock. None changes nothing. Raises as `read`."""
        with self._locked() as descriptor:
            _take_room(descriptor)
            known, place = _latest(descriptor)
            kept = change(known)
            if kept is not None:
                _write_at(descriptor, place, _written(kept))
            durable.sync_content(descriptor)  # what is known may have been written by a call that could not sync it

    @contextmanager
    def _locked(self) -> Iterator[int]:
        new = False
        try:
            descriptor = os.open(self.path, os.O_RDWR | durable.FLAGS)
        except FileNotFoundError:
            new = True
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | durable.FLAGS, 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
            if new:
                durable.sync_folder(self.path.parent)
        finally:
            os.close(descriptor)


def _take_room(descriptor: int) -> None:
    """Have the room of both slots on the disk: zeros, which read as a blank slot, where nothing was written yet."""
    size = os.fstat(descriptor).st_size
    if size < _ROOM:
        _write_at(descriptor, size, bytes(_ROOM - size))
        durable.sync(descriptor)


def _write_at(descriptor: int, place: int, content: bytes) -> None:
    """Write all of it: on a full disk a part may be written first, without an error."""
    os.lseek(descriptor, place, os.SEEK_SET)
    while content:
        content = content[os.write(descriptor, content) :]


def _written(kept: KeptHead) -> bytes:
    text = json.dumps({**asdict(kept), "place": kept.place[:_LONGEST_PLACE]}, sort_keys=True).encode("ascii")
    line = hashlib.sha256(text).hexdigest().encode("ascii") + b" " + text
    if len(line) > _SLOT:  # a place with many characters beyond ASCII
        return _written(KeptHead(kept.chain, kept.sequence, kept.head, ""))
    return line.ljust(_SLOT)


def _latest(descriptor: int) -> tuple[KeptHead | None, int]:
    """The later head of the two slots, and where the next one goes.

    The first slot is on disk before anything is written to the second: while that is blank, a first slot that cannot
    be read is one that was never finished.
    """
    found: list[tuple[KeptHead, int]] = []
    for place in _PLACES:
        os.lseek(descriptor, place, os.SEEK_SET)
        slot = os.read(descriptor, _SLOT).strip(b" \0")
        digest, _, text = slot.partition(b" ")
        if text and hashlib.sha256(text).hexdigest().encode("ascii") == digest:
            found.append((KeptHead(**json.loads(text)), place))  # decodes: a kilobyte of the state folder
    if not found:
        if slot:  # the second one
            raise ValueError("both of its slots are damaged")
        return None, _PLACES[0]
    latest, place = max(found, key=lambda pair: pair[0].sequence)
    return latest, _PLACES[1 - _PLACES.index(place)]
