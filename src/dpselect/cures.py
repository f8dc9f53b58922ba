"""Lines to write in place of a wrong value: each error that has such a line gets it from here.

A cure begins with "write", and what follows works when it is pasted. Cures show names, limits and examples. They show a
given value only if the error does: that of a public argument.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

__all__ = [
    "EXAMPLES",
    "example",
    "meant_value",
    "near_file",
    "write_instance",
    "write_number",
    "write_one_of",
    "write_text",
]

EXAMPLES: Final[Mapping[str, str]] = {
    "base": "pure_dp(epsilon=1.0)",
    "batch_size": "64",
    "bounds": "(0, 100)",
    "claim": "0.8",
    "classes": "[0, 1]",
    "clip_norm": "1.0",
    "consultations": "20",
    "count": "10",
    "dataset_size": "60000",
    "delta": "1e-6",
    "epochs": "10",
    "epsilon": "1.0",
    "epsilons": "[0.1, 0.2]",
    "expected_batch_size": "64",
    "failure_probability": "0.05",
    "gamma": "0.1",
    "guarantee": "pure_dp(epsilon=1.0)",
    "label": '"first release"',
    "label_bounds": "(0, 100)",
    "learning_rate": "0.1",
    "limit": "30",
    "lower": "0",
    "max_grad_norm": "1.0",
    "max_positives": "1",
    "mean": "10",
    "n_jobs": "2",
    "objective": "lambda params, random: (0.0, params)",
    "name": '"ada"',
    "nominal_rows": "1000",
    "noise_multiplier": "4.0",
    "orders": "[2, 4]",
    "param_distributions": '{"learning_rate": [0.1, 1.0]}',
    "probability": "0.5",
    "q": "0.5",
    "qs": "[0.25, 0.5, 0.75]",
    "queries": "100",
    "questions": "100",
    "repetitions": "Harmonic(limit=30)",
    "rho": "0.1",
    "sampling_rate": "0.01",
    "scale": "1.0",
    "sensitivity": "1",
    "space": '{"learning_rate": LogUniform(0.01, 1.0)}',
    "stake": '"all"',
    "steps": "100",
    "threshold": "10",
    "trials": "10",
    "upper": "100",
    "validation_fraction": "0.2",
}
"""A value that does, by our argument. A name that is not here has none that means anything."""

_VALUES: Final[Mapping[str, str]] = {
    "acc": "accuracy",
    "add": "add_or_remove_one",
    "add-remove": "add_or_remove_one",
    "add_remove": "add_or_remove_one",
    "bounded": "replace_one",
    "change_one": "replace_one",
    "decision-tree": "boosted-trees",
    "exp": "exponential",
    "float": "number",
    "int": "integer",
    "joblib": "loky",
    "lightgbm": "boosted-trees",
    "linear-regression": "least-squares",
    "logistic-regression": "dp-sgd",
    "mae": "absolute-error",
    "mlp": "dp-sgd",
    "mse": "squared-error",
    "grid": "portfolio",
    "halving": "two-stage",
    "processes": "process",
    "random-forest": "boosted-trees",
    "rdp": "renyi",
    "remove": "add_or_remove_one",
    "replace": "replace_one",
    "str": "text",
    "string": "text",
    "substitute": "replace_one",
    "unbounded": "add_or_remove_one",
    "xgboost": "boosted-trees",
}
"""Values of other libraries, and ours."""


_INSTANCES: Final[Mapping[str, str]] = {
    "Execution": "Execution(constant_runs=True)",
    "Executor": "JoblibExecutor(workers=2)",
    "GateRules": "GateRules(margin=0.01)",
    "Guarantee": EXAMPLES["base"],
    "HoldoutRequest": 'HoldoutRequest(metric="accuracy", questions=100, answers=10, failure_probability=0.05)',
    "Ledger": 'Ledger.open("budget.db")',
    "RandomSource": "dpselect.randomness.keyed_source(1), for a test",
    "Repetitions": EXAMPLES["repetitions"],
    "SearchStore": 'SearchStore(path="search.store")',
    "Spender": 'Ledger.open("budget.db").budget("team")',
}
"""How an object of a class is made, by the name of the class."""


def near_file(path: str | os.PathLike[str]) -> str:
    """The end of an error for a file that is not there: one with a similar name, or the only ones of its kind.

    Names of files are public. Nothing is read.
    """
    wanted = Path(path)
    try:
        there = [each.name for each in wanted.parent.iterdir()] if wanted.name else []
    except OSError:
        return ""
    near = [name for name in there if wanted.stem and Path(name).stem == wanted.stem]
    near = near or get_close_matches(wanted.name, there, n=1, cutoff=0.75)
    near = near or [name for name in sorted(there) if wanted.suffix and name.endswith(wanted.suffix)][:2]
    if len(near) != 1:
        return ""
    return f". Did you mean {str(near[0] if wanted.is_absolute() else wanted.parent / near[0])!r}?"


def example(name: str) -> str | None:
    """`name=value` with a value that does, or None.

    >>> example("delta")
    'delta=1e-6'
    """
    return f"{name}={EXAMPLES[name]}" if name in EXAMPLES else None


def write_text(name: str) -> str:
    """The end of an error for an argument that needs any value of its kind, or nothing.

    >>> write_text("label")
    '. Write label="first release"'
    """
    return f". Write {name}={EXAMPLES[name]}" if name in EXAMPLES else ""


def write_instance(name: str, *kinds: type) -> str:
    """The end of an error for an argument that must be of one of these classes, or nothing."""
    if name == "where":
        return '. Write where="budget.db"'
    made = next((_INSTANCES[kind.__name__] for kind in kinds if kind.__name__ in _INSTANCES), None)
    return "" if made is None else f". Write {name}={made}"


def write_one_of(name: str, given: object, known: Iterable[str]) -> str:
    """The end of an error for a choice: the name that was meant, or the first one.

    >>> write_one_of("adjacency", "replace", ["add_or_remove_one", "replace_one"])
    ". Write adjacency='replace_one'"
    """
    choices = list(known)
    near = meant_value(given, choices) or choices[0]
    if name.startswith("--"):
        return f". Write {name} {near}"
    return f". Write {name}={near!r}" if name.isidentifier() else f". Write {near!r}"


def meant_value(given: object, known: Iterable[str]) -> str | None:
    """The one of some names that another one stands for or is similar to, or None.

    >>> meant_value("acc", ["auc", "accuracy"]), meant_value("dpsgd", ["dp-sgd"]), meant_value("x", ["dp-sgd"])
    ('accuracy', 'dp-sgd', None)
    """
    choices, told = list(known), str(given)[:40]
    for name in (told.lower(), told.lower().replace("_", "-")):
        if _VALUES.get(name) in choices:
            return _VALUES[name]
    return next(iter(get_close_matches(told, choices, n=1, cutoff=0.5)), None)


def write_number(name: str, value: object, *, whole: bool, lowest: _End = None, highest: _End = None) -> str:
    """The end of an error for a number: the one that was meant, or one that fits, or nothing.

    Args:
        name: the argument.
        value: what was given in its place, public.
        whole: whether it must be an integer.
        lowest: the lower end, and whether it is excluded.
        highest: the upper end, and whether it is excluded.

    Returns:
        Such as `. Write q=0.5`, or an empty text.

    >>> write_number("q", 50, whole=False, lowest=(0, False), highest=(1, False))
    '. Write q=0.5'
    """
    if not name.removeprefix("--").replace("-", "_").isidentifier():
        return ""
    equals = " " if name.startswith("--") else "="
    for text in _candidates(name, value, whole, lowest, highest):
        try:
            number = float(text)
        except ValueError:
            continue
        if (not whole or number.is_integer()) and _within(number, lowest, highest):
            return f". Write {name}{equals}{text}"
    return ""


_End = tuple[float, bool] | None


def _candidates(name: str, value: object, whole: bool, lowest: _End, highest: _End) -> Iterable[str]:
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        text = value.strip()
        share = re.fullmatch(r"(\d{1,3}(?:\.\d+)?) ?%", text)
        yield f"{float(share[1]) / 100:g}" if share else text if len(text) < 20 else ""
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < math.inf:
        if highest is not None and highest[0] <= 1 < value <= 100 and name not in ("delta", "sampling_rate"):
            yield f"{value / 100:g}"  # per cent
        if whole and abs(value) < 1e15:
            yield str(round(value))
    yield EXAMPLES.get(name.removeprefix("--").replace("-", "_"), "")
    for end in (lowest, highest):
        if end is not None and abs(end[0]) < 1e300:
            yield f"{end[0]:g}"
    low, high = (end[0] if end is not None else None for end in (lowest, highest))
    if low is not None and high is not None and abs(high - low) < 1e300:
        yield f"{(low + high) / 2:g}"
    yield "1"


def _within(number: float, lowest: _End, highest: _End) -> bool:
    if not math.isfinite(number):
        return False
    above = lowest is None or number > lowest[0] or (number == lowest[0] and not lowest[1])
    return above and (highest is None or number < highest[0] or (number == highest[0] and not highest[1]))
