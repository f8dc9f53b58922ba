"""What a study writes: the model, facts.json, report.html and release.json, atomically, release.json last."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError

import dpselect
from dpselect.errors import StudyError
from dpselect.report import render_page
from dpselect.storage.durable import write_atomically
from dpselect.study.price import Price
from dpselect.tuning import TuneResult

__all__ = [
    "FACTS",
    "MODEL",
    "RELEASE",
    "REPORT",
    "check_folder",
    "describe_release",
    "remake_report",
    "write_model",
    "write_release",
]

MODEL, FACTS, REPORT, RELEASE = "model.npz", "facts.json", "report.html", "release.json"


def check_folder(folder: Path, *, resume: bool, make: bool = True) -> None:
    """Make the output folder, unless told not to; raises `StudyError` if it cannot be written or holds a release."""
    if make:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StudyError(f"output.folder {str(folder)!r} cannot be made: {error.strerror}") from None
    place = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise StudyError(f"output.folder {str(folder)!r} is not writable")
    if (folder / RELEASE).exists() and not resume:
        raise StudyError(f"output.folder {str(folder)!r} already holds a release: choose another folder")


def describe_release(
    name: str,
    result: TuneResult,
    price: Price,
    *,
    declare_score: bool,
    ledger: bool = False,
    test: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The content of release.json: the winner's parameters, the guarantee, versions; nothing about other runs.

    With `ledger` also the receipt of the reservation, for `dpselect ledger verify --receipt`; `test` says how the model
    does on public rows.
    """
    found = result.value is not None
    return {
        "study": name,
        "found": found,
        "parameters": dict(result.params) if result.params is not None else None,
        "score": result.score if declare_score else None,
        "model": MODEL if found else None,
        "test": test,
        "guarantee": price.search.describe(delta=price.delta),
        "replayable": result.replayable,
        "receipt": asdict(result.receipt) if ledger and result.receipt is not None else None,
        "versions": {"dpselect": dpselect.__version__},
    }


def write_model(folder: Path, model: bytes) -> Path:
    """Write the model, which comes first, atomically and synced; returns where it is."""
    write_atomically(folder / MODEL, model)
    return folder / MODEL


def write_release(folder: Path, release: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Write the other files likewise; calling it again with the same arguments changes nothing."""
    page = render_page(release, facts)
    write_atomically(folder / FACTS, _json(facts))
    write_atomically(folder / REPORT, page.encode())
    write_atomically(folder / RELEASE, _json(release))


def remake_report(folder: Path, output: Path | None = None) -> Path:
    """Make the page of a release again, from release.json and facts.json alone; returns where it is.

    Raises `StudyError` when the folder holds no release, or one that this version cannot read.
    """
    release, facts = (_read(folder, name) for name in (RELEASE, FACTS))
    try:
        page = render_page(release, facts)
    except (LookupError, TypeError, ValueError, AttributeError, UndefinedError):
        raise StudyError(f"{str(folder)!r}: {RELEASE} and {FACTS} are not a release of this version") from None
    place = folder / REPORT if output is None else output
    write_atomically(place, page.encode())
    return place


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()


def _read(folder: Path, name: str) -> dict[str, Any]:
    try:
        content = json.loads((folder / name).read_text(encoding="utf-8"))
    except OSError:
        raise StudyError(f"{str(folder)!r} holds no {name}: it is not the folder of a release") from None
    except ValueError:
        raise StudyError(f"{str(folder / name)!r} is not JSON") from None
    if not isinstance(content, dict):
        raise StudyError(f"{str(folder / name)!r} is not the {name} of a release")
    return content
