"""The command line in a process of its own, and studies as TOML."""

import subprocess
import sys


def dpselect(*arguments, cwd=None, state=None):
    import os

    environment = dict(os.environ)
    if state is not None:
        environment["XDG_STATE_HOME"] = str(state)
    return subprocess.run(
        [sys.executable, "-c", "from dpselect.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        check=False,
    )
