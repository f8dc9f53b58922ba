"""The command line: `dpselect ...`."""

from dpselect.cli.app import main

__all__ = ["main"]
