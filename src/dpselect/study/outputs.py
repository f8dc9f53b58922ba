"""What a study writes: the model, release.json and report.html, atomically, release.json last."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dpselect
from dpselect.errors import StudyError
from dpselect.repetitions import Repetitions
from dpselect.report import render_page
from dpselect.storage.durable import write_atomically
from dpselect.study.price import Price
from dpselect.tuning import TuneResult

__all__ = ["MODEL", "RELEASE", "REPORT", "check_folder", "describe_release", "write_release"]

MODEL, RELEASE, REPORT = "model.npz", "release.json", "report.html"


def check_folder(folder: Path, *, resume: bool) -> None:
    """Make the output folder; raises `StudyError` if it cannot be written or already holds a release."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StudyError(f"output.folder {str(folder)!r} cannot be made: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StudyError(f"output.folder {str(folder)!r} is not writable")
    if (folder / RELEASE).exists() and not resume:
        raise StudyError(f"output.folder {str(folder)!r} already holds a release: choose another folder")


def describe_release(
    name: str, result: TuneResult, price: Price, *, declare_score: bool, ledger: bool = False
) -> dict[str, Any]:
    """The content of release.json: the winner's parameters, the guarantee, versions; nothing about other runs.

    With `ledger` also the receipt of the reservation, for `dpselect ledger verify --receipt`.
    """
    found = result.value is not None
    return {
        "study": name,
        "found": found,
        "parameters": dict(result.params) if result.params is not None else None,
        "score": result.score if declare_score else None,
        "model": MODEL if found else None,
        "guarantee": price.search.describe(delta=price.delta),
        "replayable": result.replayable,
        "receipt": asdict(result.receipt) if ledger and result.receipt is not None else None,
        "versions": {"dpselect": dpselect.__version__},
    }


def write_release(
    folder: Path, release: Mapping[str, Any], *, model: bytes | None, price: Price, law: Repetitions
) -> None:
    """Write the files, each atomically and synced; calling it again with the same arguments changes nothing."""
    page = render_page(
        release,
        single=price.single,
        training=price.parts[0],
        search=price.search,
        law=law,
        epsilon=price.epsilon,
        delta=price.delta,
    )
    if model is not None:
        write_atomically(folder / MODEL, model)
    write_atomically(folder / REPORT, page.encode())
    write_atomically(folder / RELEASE, (json.dumps(release, indent=2, allow_nan=False) + "\n").encode())
