"""The pool of trained runs that Figure 7's searches draw from; kept in a file where training takes hours."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect import __version__
from dpselect.reproduce.table import Context
from dpselect.reproduce.tuning_rdp_networks import Trainer

__all__ = ["trained_pool"]

_FILE = "tuning-rdp-pool.json"


def trained_pool(chosen: Trainer, context: Context) -> NDArray[np.float64]:
    """The accuracies of all runs, ascending; a search draws a learning rate and one of its runs.

    Every run draws from a source of its own. So an interrupted pool goes on where it was, with the accuracies that it
    would have had, if the trainer names its data and the context has a folder to keep them in.
    """
    kept = None if chosen.data is None or context.folder is None else context.folder / _FILE
    settings = {
        "made by": f"dpselect {__version__}",
        "model": chosen.what,
        "data": chosen.data,
        "guarantee": chosen.guarantee.terms,
        "draws": context.random.spawn("pool").bits(64),
    }
    found = _read(kept, settings)
    names = {f"{rate:.6g} {run}": rate for rate in chosen.rates for run in range(chosen.runs)}
    for at, (name, rate) in enumerate(names.items()):
        if name not in found:
            context.progress(f"Figure 7, training {at + 1} of {len(names)}")
            found[name] = chosen.accuracy(rate, context.random.spawn(name))
            if kept is not None:
                new = kept.with_suffix(".new")
                new.write_text(json.dumps({"settings": settings, "accuracies": found}) + "\n", encoding="utf-8")
                os.replace(new, kept)
    return np.sort([found[name] for name in names])


def _read(path: Path | None, settings: dict[str, Any]) -> dict[str, float]:
    """What was kept with the same settings; nothing otherwise."""
    if path is None or not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["settings"] == json.loads(json.dumps(settings)):
            return {str(name): float(value) for name, value in content["accuracies"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        pass  # not ours, or cut short
    return {}
