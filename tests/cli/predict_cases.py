"""The command `predict`, and its errors."""

from typer.testing import CliRunner

from dpselect.cli.app import app, in_flags


def predict(*arguments):
    return CliRunner().invoke(app, ["predict", *arguments])


def refused(*arguments):
    error = predict(*arguments).exception
    assert error is not None
    return in_flags(str(error), ["predict"])
