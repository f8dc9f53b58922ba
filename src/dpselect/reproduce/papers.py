"""The papers by the names that the command line takes; each module is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from dpselect.errors import ArgumentError
from dpselect.reproduce.table import Paper

__all__ = ["PAPERS", "paper_named"]

PAPERS: Final = ("tuning-rdp", "private-selection", "output-dp", "stable-median", "reorder-slice-compute")


def paper_named(name: str) -> Paper:
    """The paper. Raises `ArgumentError` for a name that is not in `PAPERS`."""
    if name not in PAPERS:
        raise ArgumentError(f"paper must be one of {', '.join(PAPERS)}, got {name!r}")
    paper: Paper = import_module(f"dpselect.reproduce.{name.replace('-', '_')}").PAPER
    return paper
