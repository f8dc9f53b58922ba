"""Processes that serve the tuner: they do not heed Ctrl-C, and end when the process that started them is gone.

A tuner that is killed cannot end its workers. Those that it started would continue with their trials, and hold the
data, for as long as a trial takes.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time

__all__ = ["end_with_parent", "end_with_pipe", "leave_interrupts_to_the_tuner"]

_INTERVAL = 0.5


def leave_interrupts_to_the_tuner() -> None:
    """Ignore Ctrl-C, which goes to the whole process group: the tuner alone decides what it means."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def end_with_parent() -> None:
    """Kill this process soon after its parent is gone. Does nothing where processes are not given a new parent."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_INTERVAL)
        os.kill(os.getpid(), signal.SIGKILL)  # copies: ends with its parent

    if os.name != "nt":
        threading.Thread(target=watch, name="dpselect-parent", daemon=True).start()


def end_with_pipe(descriptor: int) -> None:
    """Kill this process and its group once no one holds the other end of a pipe that it reads from. POSIX only."""
    end = select.poll()
    end.register(descriptor, 0)  # hanging up is reported no matter what is asked for

    def watch() -> None:
        end.poll()
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, name="dpselect-pipe", daemon=True).start()
