"""Whether this process is a child that is being started, and so runs the script of its parent a second time.

A child that `multiprocessing` starts by "spawn" or "forkserver" runs the parent's script from the top before it does
its own work. A script without `if __name__ == "__main__":` would reserve, draw and release once more in each child.
So anything that charges, draws from system entropy or searches asks here first.
"""

from __future__ import annotations

import sys
from types import FrameType

from dpselect.errors import StartingProcessError

__all__ = ["HOW_TO_START", "refuse_while_starting"]

HOW_TO_START = (
    'put what the script does below `if __name__ == "__main__":`, or use n_jobs= or JoblibExecutor(workers=2), whose '
    "processes do not run the script"
)


def refuse_while_starting(what: str) -> None:
    """Raise `StartingProcessError` in a child process that is being started. `what` is a noun phrase for the message.

    >>> refuse_while_starting("a search")
    """
    if _flagged() or _preloaded():
        raise StartingProcessError(
            f"{what} was called in a child process that is being started. Such a process runs the parent's script from "
            f"the top, and what the script pays and releases would be paid and released again: {HOW_TO_START}"
        )


def _flagged() -> bool:
    """Whether multiprocessing (or loky, which shares its flag) says so. It asks itself so, before it starts a child."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and vars(process.current_process()).get("_inheriting", False)


def _preloaded() -> bool:
    """Whether a fork server is importing modules that its children are to find there. It has no flag for those."""
    if "multiprocessing.forkserver" not in sys.modules:
        return False
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__name__") == "multiprocessing.forkserver":
            # `main` alone is the server's own; in a child `_serve_one` is above it
            return frame.f_code.co_name == "main"
        frame = frame.f_back
    return False
