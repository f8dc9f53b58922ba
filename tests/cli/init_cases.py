"""The command `init`."""

from typer.testing import CliRunner

from dpselect.cli.app import app


def init(*arguments, **options):
    return CliRunner().invoke(app, ["init", *arguments], **options)
