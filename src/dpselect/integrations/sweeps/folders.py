"""Folders that a tool left: what is in them, without following links."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from dpselect.decoding.limits import DecodingLimits, LimitError

__all__ = ["SETTING", "SETTINGS", "files_below", "folders_in", "is_plain_file"]

_MOST: Final = 200_000
"""Entries of one folder. More take minutes to read."""
_DEEPEST: Final = 8
SETTINGS: Final = DecodingLimits(size=4 << 20, depth=32, entries=100_000, finite=False)
"""One file of settings of one run."""
SETTING: Final = DecodingLimits(size=1 << 16)
"""One file that holds one setting."""


def folders_in(path: Path) -> list[Path]:
    """The folders in a folder, in the order of their names. Raises `LimitError` for too many entries, and `OSError`."""
    return [each for each in _entries(path) if each.is_dir() and not each.is_symlink()]


def files_below(path: Path, deepest: int = _DEEPEST) -> Iterator[Path]:
    """The files in a folder and in the folders below it. Nothing if there is no such folder. Raises `LimitError`."""
    if not path.is_dir() or path.is_symlink():
        return
    for each in _entries(path):
        if is_plain_file(each):
            yield each
        elif each.is_dir() and deepest:
            yield from files_below(each, deepest - 1)


def is_plain_file(path: Path) -> bool:
    """Whether it is a file, and no link to one."""
    return path.is_file() and not path.is_symlink()


def _entries(path: Path) -> list[Path]:
    found = list(islice(path.iterdir(), _MOST + 1))
    if len(found) > _MOST:
        raise LimitError(f"{path.name} has more than {_MOST} entries")
    return sorted(found)
