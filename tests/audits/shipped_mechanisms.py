"""Every public mechanism of this library, as subjects of an audit, and why the other callables that draw are not here.

`drawing_callables()` finds what takes a random source, so a new mechanism that is neither in `SHIPPED` nor in `EXEMPT`
fails a test (`tests/audit/test_shipped.py`).
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

from dpselect.audit import Subject
from tests.audits.shipped import ENTRIES, Shipped
from tests.root import ROOT

__all__ = ["EXEMPT", "ROOMS", "SHIPPED", "drawing_callables", "shipped"]

ROOMS = (
    "accounting",
    "adaptive",
    "holdout",
    "integrations.optuna",
    "integrations.sklearn",
    "learners",
    "ledger",
    "mechanisms",
    "ordered",
    "privacy",
    "randomness",
    "repetitions",
    "selection",
    "study",
    "tuning",
)


def _entries() -> tuple[Shipped, ...]:
    """Those of each file `shipped_*.py` below `tests`: a new one is found by its name."""
    for path in sorted((ROOT / "tests").rglob("shipped_*.py")):
        importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return tuple(ENTRIES)


SHIPPED = _entries()

_ABSTRACT = "an interface"
_PRIMITIVE = "has no data and no price; what it is for is here, and its law has tests of its own"
_PUBLIC_DRAW = "draws from a public law and sees no data"
_CANDIDATE = "makes a candidate, whose price is the caller's; the selections that run candidates are here"

EXEMPT: dict[str, str] = {
    "adaptive.EffectiveRounds": "promises nothing to a row (its releases say so)",
    "holdout.SavedAnalysis": "`adaptive.AdaptiveAnalysis` kept on disk",
    "integrations.optuna.IndependentTrial": _PUBLIC_DRAW,
    "integrations.optuna.rehearse": "runs on data that were made up",
    "integrations.optuna.PrivatePruner": "the noise of NoisyCount, which is audited",
    "integrations.sklearn.PrivateSearchCV": "seconds a draw; `tuning.tune` with priced scores, which is audited",
    "learners.PublicValidation": "sees public rows only",
    "mechanisms.Mechanism": _ABSTRACT,
    "ordered.Column": "values and what is public of them: draws only where ties are, for what is audited",
    "ordered.median": "`ordered.quantile` at one half, and audited there",
    "randomness.RandomSource": _PRIMITIVE,
    "randomness.geometric": _PRIMITIVE,
    "randomness.keyed_source": _PRIMITIVE,
    "randomness.resolve": "draws nothing",
    "randomness.system_source": _PRIMITIVE,
    "repetitions.Repetitions": _ABSTRACT,
    "selection.SelectBest": "`selection.select_best` calls it",
    "selection.Selector": _ABSTRACT,
    "study.load_study": "reads a study file",
    "study.run_study": "runs `tune`",
    "tuning.Categorical": _PUBLIC_DRAW,
    "tuning.IntegerUniform": _PUBLIC_DRAW,
    "tuning.LogUniform": _PUBLIC_DRAW,
    "tuning.Space": _PUBLIC_DRAW,
    "tuning.Uniform": _PUBLIC_DRAW,
    "tuning.split_rows": "draws a public split; what is private about subsets is priced in `tune_on_subset`",
    "tuning.tune": "audited from end to end by `dpselect.audit.tuner`",
}
"""Public callables that draw and have no audit here, each with the reason."""


def shipped(name: str) -> Subject:
    """The subject of an entry, by its name. Raises `KeyError`.

    >>> shipped("counts_with_laplace_noise").claim.pure_epsilon
    1.0
    """
    return {entry.name: entry for entry in SHIPPED}[name].make()


def drawing_callables() -> list[str]:
    """The public callables of the rooms that take a random source or hand one on, as "room.name".

    By their signatures, those of their methods, and their source: some draw with a source that they keep, or pass one
    on among other options.
    """
    return sorted(
        f"{room}.{name}"
        for room in ROOMS
        for name, value in _public(room)
        if callable(value) and (_hands_on_a_source(value) or any(_takes_a_source(part) for part in _parts(value)))
    )


def _public(room: str) -> Iterator[tuple[str, Any]]:
    try:
        module = importlib.import_module(f"dpselect.{room}")
    except ImportError:  # an extra that is not installed
        return iter(())
    return ((name, getattr(module, name)) for name in module.__all__)


def _parts(value: Any) -> Iterator[Any]:
    """A function, or the public methods of a class."""
    if not inspect.isclass(value):
        yield value
        return
    for name, member in inspect.getmembers(value, callable):
        if not name.startswith("_") or name in ("__init__", "__call__"):
            yield member


def _takes_a_source(function: Any) -> bool:
    try:
        return "random" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _hands_on_a_source(value: Any) -> bool:
    try:
        return re.search(r"\brandom=|\bresolve\(|\bRandomSource\(", inspect.getsource(value)) is not None
    except (OSError, TypeError):
        return False
