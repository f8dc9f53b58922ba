"""The settings of DP-SGD that a run has, found among its columns by their usual names or by those that are given."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dpselect.errors import ArgumentError
from dpselect.integrations.sweeps.sweep import RecordedRun, Scalar
from dpselect.tables.header import absent

__all__ = ["ROLES", "Roles", "parse_columns"]

ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    "noise_multiplier": ("noise_multiplier", "noise_mult", "dp_noise_multiplier", "dp_noise_mult"),
    "sampling_rate": ("sampling_rate", "sample_rate", "sampling_probability", "sampling_prob"),
    "batch_size": ("batch_size", "train_batch_size", "expected_batch_size", "logical_batch_size", "lot_size"),
    "dataset_size": (
        *("dataset_size", "data_size", "train_size", "train_set_size", "training_set_size", "num_examples", "n_train"),
        *("num_train_examples", "num_train", "num_train_samples", "train_samples"),
    ),
    "steps": ("steps", "num_steps", "n_steps", "training_steps", "train_steps", "num_train_steps"),
    "epochs": ("epochs", "num_epochs", "n_epochs", "max_epochs", "train_epochs", "training_epochs", "num_train_epochs"),
    "clipping": (
        *("max_grad_norm", "max_per_sample_grad_norm", "l2_norm_clip", "l2_clip", "clip_norm", "clipping_norm"),
        *("clipping_threshold", "clipping_bound"),
    ),
    "epsilon": ("target_epsilon", "dp_epsilon", "privacy_epsilon"),
    "delta": ("target_delta", "dp_delta", "privacy_delta"),
}
"""The usual names of each setting. Names that often mean something else (`sigma`, `epsilon`, `epoch`) are absent."""

_ACCUMULATING: Final = frozenset(
    {
        *("gradient_accumulation_steps", "grad_accumulation_steps", "accumulation_steps", "accumulate_grad_batches"),
        *(
            "grad_accum_steps",
            "world_size",
            "num_devices",
            "devices",
            "num_gpus",
            "n_gpus",
            "num_replicas",
            "num_nodes",
        ),
    }
)
"""Settings above 1 that make a step's batch larger than `batch_size` says."""
_RESULTS: Final = frozenset({"metric", "metrics", "summary", "tags", "results", "last_result", "_wandb"})
_PREFIX: Final = re.compile(r"^(params?|config|hparams?|user_attrs?)_")
_NUMBER: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,4})?", re.ASCII)
_LONGEST: Final = 40


def parse_columns(text: str | None) -> dict[str, str]:
    """The names or numbers that `ROLE=COLUMN,ROLE=COLUMN` gives. Raises `ArgumentError`.

    >>> parse_columns("noise_multiplier=sigma,dataset_size=60000")
    {'noise_multiplier': 'sigma', 'dataset_size': '60000'}
    """
    found: dict[str, str] = {}
    for part in filter(None, (text or "").split(",")):
        role, equals, column = (each.strip() for each in part.partition("="))
        role = role.replace("-", "_")
        if role not in ROLES or not equals or not column or role in found:
            known = ", ".join(ROLES)
            raise ArgumentError(f"columns must be ROLE=COLUMN or ROLE=NUMBER, each role once, of {known}, got {part!r}")
        found[role] = column
    return found


@dataclass(frozen=True)
class Roles:
    """The columns of each setting, the numbers that are given in place of a column, and which roles are given."""

    columns: Mapping[str, tuple[str, ...]]
    numbers: Mapping[str, float]
    accumulating: tuple[str, ...]
    given: frozenset[str]

    @classmethod
    def among(cls, there: Sequence[str], given: Mapping[str, str]) -> Roles:
        """Find the columns. Raises `ArgumentError` for a name that no column has."""
        columns, numbers = dict[str, tuple[str, ...]](), dict[str, float]()
        parts = {name: _last_part(name) for name in there}
        for role, usual in ROLES.items():
            if role not in given:
                columns[role] = tuple(name for name, part in parts.items() if part in usual)
                continue
            wanted = given[role]
            named = [name for name in there if name == wanted] or [
                name for name, part in parts.items() if part == wanted
            ]
            if len(named) > 1:
                raise ArgumentError(f"columns: {role}={wanted} may be one of {', '.join(named)}. Give the whole name")
            if named:
                columns[role] = tuple(named)
            elif _NUMBER.fullmatch(wanted):
                numbers[role] = float(wanted)
            else:
                raise ArgumentError(f"columns: {role}: {absent([wanted], there)}")
        accumulating = tuple(name for name, part in parts.items() if part in _ACCUMULATING)
        return cls(columns, numbers, accumulating, frozenset(given))

    def has(self, role: str) -> bool:
        """Whether a column or a number is known for it."""
        return role in self.numbers or bool(self.columns.get(role))

    def value(self, run: RecordedRun, role: str) -> float | None:
        """The number that a run has for a role, or None. Raises `ArgumentError` for two, or for a text."""
        if role in self.numbers:
            return self.numbers[role]
        found = dict[str, float]()
        for name in self.columns.get(role, ()):
            if name in run.rewritten:
                raise ArgumentError(
                    f"sweep: run {run.name!r} had several values of {name!r}: its cost cannot be stated"
                )
            number = _number(run, name, run.values.get(name))
            if number is not None:
                found[name] = number
        if len(set(found.values())) > 1:
            names = " and ".join(found)
            raise ArgumentError(f"columns: run {run.name!r} has two values for {role}, in {names}. Give {role}=COLUMN")
        return next(iter(found.values()), None)

    def accumulates(self, run: RecordedRun) -> str | None:
        """The column that shows that a step took several batches, or None."""
        for name in self.accumulating:
            value = run.values.get(name)
            if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
                continue
            if name in run.rewritten or (value is not None and not isinstance(value, bool) and float(value) > 1.0):
                return name
        return None

    def found(self) -> Iterator[tuple[str, str]]:
        """Each role and the columns or the number that it is read from."""
        for role in ROLES:
            if role in self.numbers:
                yield role, f"{self.numbers[role]:.12g} (given)"
            elif self.columns.get(role):
                yield role, ", ".join(self.columns[role])


def _last_part(name: str) -> str:
    """The last part of a path, without the prefix of a tool. Empty for a result.

    >>> _last_part("config/dp.noise-multiplier"), _last_part("param_clf__steps"), _last_part("metrics.epochs")
    ('noise_multiplier', 'steps', '')
    """
    parts = re.split(r"[./:]|__", re.sub(r"[-\s]+", "_", name.strip().lower()))
    return "" if parts[0] in _RESULTS else _PREFIX.sub("", parts[-1])


def _number(run: RecordedRun, name: str, value: Scalar) -> float | None:
    if value is None or (isinstance(value, str) and value.strip().lower() in ("", "none", "null", "nan")):
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    text = str(value).strip() if isinstance(value, str) else None
    if isinstance(value, bool) or (text is not None and not (len(text) <= _LONGEST and _NUMBER.fullmatch(text))):
        raise ArgumentError(f"sweep: run {run.name!r} has no number in {name!r}, but {str(value)[:_LONGEST]!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ArgumentError(f"sweep: run {run.name!r} has no finite number in {name!r}")
    return number
