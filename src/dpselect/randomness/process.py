"""An identity of this process that no forked child shares. Process numbers will not do: they are used again.

A child that gets its ancestor's number would pass for its ancestor and repeat its draws. Numbers wrap, and every PID
namespace begins at 1. So the identity is an object, replaced in each child in two ways:

- `os.register_at_fork` covers every fork that Python knows of: `os.fork`, multiprocessing's "fork", `forkpty`,
  `subprocess` with a `preexec_fn`, and servers that call `PyOS_AfterFork_Child`.
- On Linux a page of memory that the kernel fills with zeros in every forked child (`MADV_WIPEONFORK`) covers forks by C
  code that tells Python nothing.

Children made by `vfork` or `posix_spawn` run another program and inherit nothing. A copy of a running virtual machine
is not noticed.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable
from typing import Final

__all__ = ["in_each_child", "this_process"]

_MADV_WIPEONFORK: Final = 18  # linux/mman.h; since Linux 4.14
_NO_ADVICE: Final = -1  # accepted by emulators alone, which accept every number and do nothing


class _Identity:
    """Compared with `is`. Never pickled, so that no other process can hold it."""

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = os.getpid()  # copies: the identity itself


def _wiped_page() -> mmap.mmap | bytearray:
    """A page whose first byte becomes 0 in a forked child, or a byte that stays 1 if the kernel has no such pages."""
    if sys.platform == "linux":
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if _advises(page, _MADV_WIPEONFORK) and not _advises(page, _NO_ADVICE):
            page[0] = 1
            return page
        page.close()
    return bytearray(b"\1")


def _advises(page: mmap.mmap, advice: int) -> bool:
    try:
        page.madvise(advice)
    except OSError:
        return False
    return True


_page = _wiped_page()
_identity = _Identity()


def this_process() -> object:
    """Return an object that is the same throughout this process, and another one in every child.

    >>> this_process() is this_process()
    True
    """
    # without such a page the number is compared: that is a call of the kernel, and takes longer than a draw
    if not _page[0] or (type(_page) is bytearray and _identity.number != os.getpid()):  # copies: the identity itself
        _renew()
    return _identity


def _renew() -> None:
    global _identity
    _identity = _Identity()
    _page[0] = 1


def in_each_child(renew: Callable[[], None]) -> None:
    """Call `renew` in every child that Python knows to be forked, before anything else runs there."""
    if sys.platform != "win32":
        os.register_at_fork(after_in_child=renew)


in_each_child(_renew)
