"""Lines to write in place of a wrong key or value of a study: each is a line of TOML that works when it is pasted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from dpselect.cures import EXAMPLES, write_one_of
from dpselect.foreign_names import meant

__all__ = ["instead", "needed", "of_a_kind"]

_EXAMPLES: Final[Mapping[str, str]] = {
    "bounds": "[0, 100]",
    "budget": '"team"',
    "classes": '["no", "yes"]',
    "delta": "1e-5",
    "distribution": '"harmonic"',
    "epsilon": "3.0",
    "folder": '"release"',
    "fraction": "0.2",
    "label": '"target"',
    "label_bounds": "[0, 100]",
    "ledger": '"budget.db"',
    "name": '"my-study"',
    "nominal_rows": "1000",
    "source": '"people.csv"',
    "workers": "2",
}
"""Values that do, by key."""
_TABLES: Final[Mapping[str, str]] = {
    "budget": "privacy",
    "column": "data.columns",
    "columns": "data.columns",
    "dataset": "data",
    "distribution": "repetitions",
    "dp": "privacy",
    "estimator": "learner",
    "features": "data.columns",
    "hyperparameters": "space",
    "label": "data",
    "law": "repetitions",
    "model": "learner",
    "params": "space",
    "search_space": "space",
    "source": "data",
    "train": "learner",
    "trials": "repetitions",
    "tuning": "search",
}
"""Tables of other tools, and ours."""
_KEYS: Final[Mapping[str, str]] = {
    "batch_size": "sampling_rate",
    "dtype": "kind",
    "eps": "epsilon",
    "epochs": "steps",
    "file": "source",
    "n_jobs": "workers",
    "path": "source",
    "range": "bounds",
    "target": "label",
    "target_delta": "delta",
    "target_epsilon": "epsilon",
    "type": "kind",
}
"""Keys of other tools, and ours, beside those of arguments."""
_UNITS: Final[Mapping[str, str]] = {"batch_size": "0.1", "epochs": "100"}
"""Keys that count in another unit: the value of ours that does, as no one's own is known."""


def instead(key: str, value: Any, known: Iterable[str], *, of: str = "") -> str:
    """The error for a key that a table, or a learner `of` a study, does not have: the line to write, or the keys."""
    names = sorted(known)
    if key in ("lower", "upper", "min", "max") and "bounds" in names:
        return f"unknown key{of}. Write bounds = [0, 100] with both ends"
    if _TABLES.get(key, "").partition(".")[0] in names and isinstance(value, Mapping):
        inner = next((f".{name}" for name, part in value.items() if isinstance(part, Mapping)), "")
        return f"unknown table. Write [{_TABLES[key]}{inner}]"
    if key in ("seed", "random_state"):
        return f"unknown key{of}; leave it out: anyone who knows a seed knows the noise"
    listed = _KEYS.get(key) if _KEYS.get(key) in names else "folder" if key == "path" and "folder" in names else None
    ours = listed or meant(key, names)
    if ours is None:
        return f"unknown key{of}; there are {', '.join(names)}"
    return f"unknown key{of}. Write {ours} = {_UNITS.get(key) or _toml(value) or _EXAMPLES.get(ours, '...')}"


def needed(key: str) -> str:
    """The end of an error for a key that must be there."""
    return f". Write {key} = {_EXAMPLES[key]}" if key in _EXAMPLES else ""


def of_a_kind(key: str, value: Any, said: str) -> str:
    """The end of an error for a value of a wrong kind or size, by what the schema's library says of it."""
    choices = re.findall(r"'([^']+)'", said) if said.startswith("must be '") else []
    if choices:
        return f". Write {key} = {json.dumps(write_one_of('', value, choices).rpartition(' ')[2].strip(chr(39)))}"
    if isinstance(value, str) and "list" in said and "," in value:
        return f". Write {key} = {json.dumps([part.strip() for part in value.split(',')])}"
    if isinstance(value, (int, float)) and 1 < value <= 100 and "less than 1" in said and key != "delta":
        return f". Write {key} = {value / 100:g}"
    if "table" in said:
        choices = value if isinstance(value, list) else [value]
        plain = all(isinstance(choice, (str, int, float)) for choice in choices) and len(choices) < 20
        return f'. Write {{ distribution = "categorical", choices = {json.dumps(choices)} }}' if plain else ""
    shown = _EXAMPLES.get(key) or EXAMPLES.get(key)
    return f". Write {key} = {shown}" if shown else ""


def _toml(value: Any) -> str:
    """A value as a study writes it, or nothing for what takes more than a line."""
    if isinstance(value, (str, bool, int, float)) or (
        isinstance(value, list) and all(isinstance(part, (str, int, float)) for part in value)
    ):
        text = json.dumps(value)
        return text if len(text) < 80 else ""
    return ""
