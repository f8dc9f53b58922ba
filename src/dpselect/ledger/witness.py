"""Which witness a ledger has: where its latest head is kept outside of it."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from dpselect.errors import ArgumentError
from dpselect.ledger.places import translated
from dpselect.ledger.refusals import UnwitnessedWarning
from dpselect.records.engines import is_server, shown_url
from dpselect.records.witness import FileWitness, FolderWitness, ServerWitness, Witness
from dpselect.storage import state_folder

__all__ = ["WitnessPlace", "witness_at"]

WitnessPlace = bool | str | os.PathLike[str]

_VARIABLE = "DPSELECT_LEDGER_WITNESS"


def witness_at(place: WitnessPlace, *, is_file: bool, timeout: float) -> Witness | None:
    """The witness that is asked for; True means the variable's, else the state folder for a ledger in a file.

    Raises `ArgumentError` for a place that is none.
    """
    if place is True:
        place = os.environ.get(_VARIABLE) or True
    if place is True:
        return FolderWitness(state_folder() / "ledgers", without=_warn) if is_file else None
    if place is False or place is None:
        return None
    place = os.fspath(place)
    if not isinstance(place, str) or not place:
        raise ArgumentError("witness must be True, False, a file, a folder, or a postgresql:// URL")
    if "://" in place:
        if not is_server(place):
            raise ArgumentError("witness: of URLs, only postgresql:// ones are known")
        with translated(shown_url(place)):
            return ServerWitness(place, timeout=timeout)
    path = Path(place).absolute()
    return FolderWitness(path) if path.is_dir() else FileWitness(path)


def _warn(reason: str) -> None:
    warnings.warn(
        f"{reason}. Nothing outside of the ledger knows how far it has come, so an older copy of it would not "
        f"be found. Set {_VARIABLE} to a folder that can be written, or pass witness=False",
        UnwitnessedWarning,
        stacklevel=2,
    )
