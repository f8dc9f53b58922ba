"""Checkpoints of a training: a killed one continues to the same bytes, and draws nothing a second time.

Batches and noise of a step come from streams of their own, which the key of the training and the number of the step
determine. So a checkpoint holds no key and no state of a stream: only the number of steps that are done, the weights,
the optimizer and torch's own generators. It is sealed under the key, which also says whose it is.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

from dpselect.decoding.arrays import check_archive
from dpselect.decoding.limits import ACCOUNTANT
from dpselect.errors import ArgumentError, ContentError, missing_extra
from dpselect.randomness import RandomSource
from dpselect.storage.durable import FLAGS, create_private, erase, sync_folder

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

try:
    import torch
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

__all__ = ["Checkpoints"]

SECONDS: Final = 10.0
"""Between two checkpoints, at least."""
_SEAL: Final = 32
_taking: Final = threading.Lock()
_held_here: Final[set[Path]] = set()
"""The trainings of this process that have a file. The locks of a process do not exclude its own threads."""


class Checkpoints:
    """The checkpoint of one training, in a folder that trainings may share.

    The file can be read by its owner only. It holds weights that no one else may see, and is erased when the training
    is done. It belongs to one process at a time. Another one with the same key, such as a worker that a search takes
    for dead, trains from the beginning and keeps nothing. Both give the same bytes.

    Args:
        folder: it must exist.
        random: the source of the training. It must be keyed, as that of a trial is, or nothing could continue.

    Raises:
        ArgumentError: for a source that draws from the system.
    """

    def __init__(self, folder: str | Path, random: RandomSource) -> None:
        if not random.replayable:
            raise ArgumentError(
                "checkpoints: a training continues only with the key that it began with. Give random=, the source of a "
                "trial or one of keyed_source, or leave checkpoints out"
            )
        if not Path(folder).is_dir():
            raise ArgumentError("checkpoints must be a folder that exists")
        self._key = random.spawn("checkpoint seal").bits(256).to_bytes(32, "big")
        self._path = Path(folder) / f"training-{hashlib.sha256(self._key).hexdigest()[:32]}.ckpt"
        self._part = self._path.with_suffix(".part")
        self._lock = self._path.with_suffix(".lock")
        self._last = time.monotonic()
        self._descriptor: int | None = None
        self.held = self._hold()
        """Whether the file is this training's."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the file, and leave it."""
        if self._descriptor is not None:
            self._lock.unlink(missing_ok=True)
            os.close(self._descriptor)
        if self.held:
            _held_here.discard(self._lock)
        self.held, self._descriptor = False, None

    def load(self, public: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the last state that was saved, or None.

        Args:
            public: the numbers that the training was begun with.

        Raises:
            ContentError: for a file that is damaged or was changed.
            ArgumentError: if the training was begun with other numbers.
        """
        if not self.held:
            return None
        erase(self._part)  # of a process that was killed while it wrote or erased
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return None
        seal, archive = content[:_SEAL], content[_SEAL:]
        if not hmac.compare_digest(seal, self._sealed(archive)):
            raise ContentError("checkpoints: this training's file was changed or is damaged: erase it to begin again")
        check_archive(archive, ACCOUNTANT, self._path.name)
        found: Mapping[str, Any] = torch.load(io.BytesIO(archive), map_location="cpu", weights_only=True)
        if found["public"] != dict(public):
            raise ArgumentError(
                "checkpoints: this training was begun with other settings. Continue with those, or erase its file"
            )
        return found

    def save(self, public: Mapping[str, Any], state: Callable[[], Mapping[str, Any]]) -> None:
        """Save what `state()` gives, unless the last time is shorter ago than `SECONDS`."""
        if not self.held or time.monotonic() - self._last < SECONDS:
            return
        written = io.BytesIO()
        torch.save({"public": dict(public), **state()}, written)
        archive = written.getvalue()
        erase(self._part)
        create_private(self._part, self._sealed(archive) + archive)
        os.replace(self._part, self._path)
        sync_folder(self._path.parent)
        self._last = time.monotonic()

    def erase(self) -> None:
        """Erase the file, if there is one.

        It gets another name first: a process that is killed while it erases leaves no damaged checkpoint.
        """
        if not self.held:
            return
        with suppress(FileNotFoundError):
            os.replace(self._path, self._part)
        erase(self._part)

    def _hold(self) -> bool:
        """Take the lock, which ends with the process. False if another training has it."""
        with _taking:
            if self._lock not in _held_here and (fcntl is None or self._take()):
                _held_here.add(self._lock)
                return True
        warnings.warn(
            "checkpoints: another training with this key has the file. This one begins at the start and keeps none. "
            "Give each training a source of its own, or end the other one",
            stacklevel=4,
        )
        return False

    def _take(self) -> bool:
        while True:
            self._descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | FLAGS, 0o600)
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # unlike flock, no child inherits it
                if os.path.samestat(os.fstat(self._descriptor), os.stat(self._lock)):
                    return True
            except FileNotFoundError:  # its holder was done between the two calls: try again
                pass
            except OSError:
                os.close(self._descriptor)
                self._descriptor = None
                return False
            os.close(self._descriptor)

    def _sealed(self, archive: bytes) -> bytes:
        return hmac.digest(self._key, archive, "sha256")
