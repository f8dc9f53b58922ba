"""`dpselect` with a fixed key, whose trials wait for a file `go`, but for the first of all.

Run as a script in the folder of a study, with the arguments of the command line. Every attempt at a trial leaves a line
in the file `begun`.
"""

from __future__ import annotations

import functools
import os
import time
from pathlib import Path

import dpselect.study
import dpselect.study.run
from dpselect.cli import main
from dpselect.randomness import keyed_source

KEY = 5


class Waiting:
    """An objective that waits."""

    def __init__(self, objective, folder):
        self.objective = objective
        self.folder = str(folder)

    def __call__(self, params, random):
        folder = Path(self.folder)
        descriptor = os.open(folder / "begun", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, f"{sorted(params.items())}\n".encode())
        os.close(descriptor)
        try:
            os.close(os.open(folder / "first", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            while not (folder / "go").exists():
                time.sleep(0.02)
        return self.objective(params, random)


_made = dpselect.study.run.prepared


def waiting_objective(folder):
    """In the place of the function that makes a study's objective."""
    return lambda *public: Waiting(_made(*public), folder)


def waiting():
    """Put the key and the waiting objective in the place of the real ones, and run the command line."""
    dpselect.study.run.prepared = waiting_objective(Path.cwd())
    dpselect.study.run_study = functools.partial(dpselect.study.run_study, random=keyed_source(KEY))
    main()


if __name__ == "__main__":
    waiting()
