"""The key of a sealed store is outside the output folder. To wipe a store, dpselect destroys its key."""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import os
import stat
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from dpselect.errors import ArgumentError, StudyError
from dpselect.randomness import system_source
from dpselect.storage import durable

__all__ = ["KeyFile", "KeyPlace", "KeyVariable", "key_place", "state_folder"]

_KEY_BYTES = 32


class KeyPlace(ABC):
    """Keeps one key per study identifier."""

    variable: str | None
    """The environment variable that the operator must drop in the end, or None."""

    @abstractmethod
    def sought(self, identifier: str) -> str:
        """Return where a key is looked for, and what to do if it is missing."""

    @abstractmethod
    def check(self) -> None:
        """Raise `StudyError` if no key could be kept or found here."""

    @abstractmethod
    def create(self, identifier: str) -> bytes:
        """A fresh key, durable on return. Replaces one that was made before but never used."""

    @abstractmethod
    def load(self, identifier: str) -> bytes | None:
        """The key, or None if it is not there."""

    @abstractmethod
    def destroy(self, identifier: str) -> None:
        """Make the key unreadable, durably. Does nothing if it is not there."""


def state_folder() -> Path:
    """The per-user state folder: `$XDG_STATE_HOME/dpselect`, else `~/.local/state/dpselect`."""
    root = os.environ.get("XDG_STATE_HOME")
    return (Path(root) if root and Path(root).is_absolute() else Path.home() / ".local" / "state") / "dpselect"


@dataclass(frozen=True)
class KeyFile(KeyPlace):
    """A file named by the study's random identifier, mode 0600, in a folder of mode 0700."""

    folder: Path

    variable = None  # the tuner itself destroys the key

    def sought(self, identifier: str) -> str:
        """The file, which is on the host of its search."""
        return (
            f"it was sought in {self._path(identifier)}, on this host; it is in that folder of the host and the user "
            "that began the search: resume there, or copy the file. A search that is to move between hosts begins with "
            "key_variable=, which names an environment variable with the key"
        )

    def check(self) -> None:
        """Make the folder, private to its owner. Raises `StudyError` if that fails."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.name != "nt" and stat.S_IMODE(self.folder.stat().st_mode) & 0o077:
                self.folder.chmod(0o700)
        except OSError as error:
            raise StudyError(f"the key folder {self.folder} cannot be used: {error.strerror}") from None

    def create(self, identifier: str) -> bytes:
        """Write a new key. It is durable on return."""
        self.check()
        self.destroy(identifier)
        key = system_source().bytes(_KEY_BYTES)
        durable.create_private(self._path(identifier), key)
        return key

    def load(self, identifier: str) -> bytes | None:
        """Return the key, or None if there is none. Raises `StudyError` if others could have read it."""
        path = self._path(identifier)
        try:
            mode = path.lstat().st_mode
            if not stat.S_ISREG(mode) or (os.name != "nt" and stat.S_IMODE(mode) & 0o077):
                raise StudyError(f"the key file {path} is not private to its owner")
            key = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StudyError(f"the key file {path} cannot be read: {error.strerror}") from None
        if len(key) != _KEY_BYTES:
            raise StudyError(f"the key file {path} does not hold a key")
        return key

    def destroy(self, identifier: str) -> None:
        """Take the key out of its place, then overwrite, sync and unlink it."""
        # Moved first, so that a crash in between leaves no key in place rather than one that opens nothing.
        going = self.folder / f"{identifier}.going"
        with contextlib.suppress(FileNotFoundError):
            os.replace(self._path(identifier), going)
            durable.sync_folder(self.folder)
        durable.erase(going)

    def _path(self, identifier: str) -> Path:
        return self.folder / f"{identifier}.key"


@dataclass(frozen=True)
class KeyVariable(KeyPlace):
    """An environment variable with 32 random bytes in base64. The study names it, and the operator sets it.

    The key of one study is derived from it and from the study's identifier, so that one variable can serve several.
    """

    variable: str

    def sought(self, identifier: str) -> str:  # noqa: ARG002 - the protocol's
        """The variable."""
        return f"it was sought in the environment variable {self.variable} (key_variable)"

    def check(self) -> None:
        """Raise `StudyError` if the variable is missing or malformed."""
        if self._secret() is None:
            raise StudyError(f"the environment variable {self.variable} must hold the key of the sealed store")

    def create(self, identifier: str) -> bytes:
        """The study's key."""
        self.check()
        key = self.load(identifier)
        assert key is not None
        return key

    def load(self, identifier: str) -> bytes | None:
        """Return the study's key, or None if the variable is not set."""
        secret = self._secret()
        if secret is None:
            return None
        return hmac.new(secret, b"dpselect sealed store " + identifier.encode(), hashlib.sha256).digest()

    def destroy(self, identifier: str) -> None:  # noqa: ARG002 - the protocol's
        """Remove the variable from this process. The operator must drop it everywhere else."""
        os.environ.pop(self.variable, None)

    def _secret(self) -> bytes | None:
        text = os.environ.get(self.variable)
        if not text:
            return None
        try:
            secret = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            secret = b""
        if len(secret) != _KEY_BYTES:
            raise StudyError(f"the environment variable {self.variable} must hold 32 bytes in base64")
        return secret


def key_place(variable: str | None) -> KeyPlace:
    """The variable that the study names, or the per-user state folder."""
    if variable is None:
        return KeyFile(state_folder() / "keys")
    if not isinstance(variable, str) or not variable.isidentifier():
        raise ArgumentError(f"key_variable must name an environment variable, got {variable!r}")
    return KeyVariable(variable)
