"""The command `quantile` on a small table."""

from __future__ import annotations

from typer.testing import CliRunner

from dpselect.cli.app import app


def run(*arguments):
    result = CliRunner().invoke(app, ["quantile", *(str(argument) for argument in arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout
