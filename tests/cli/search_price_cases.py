"""The command `account`, and what it prints."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from dpselect.cli.app import app

DELTA = 1e-6


def printed(*arguments):
    done = CliRunner().invoke(app, [*arguments, "--delta", str(DELTA), "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    return json.loads(done.stdout)


def account(*arguments):
    return printed("account", "--base", "laplace:scale=2", "--repetitions", "harmonic:limit=20", *arguments)
