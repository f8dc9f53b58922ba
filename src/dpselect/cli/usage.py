"""Wrong usage of the command line: an error that says what to type, from the command's own options and examples."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from dpselect.cli.commands import EXAMPLES
from dpselect.foreign_names import meant

__all__ = ["usage_text"]

_TRAINING: Final = "--base dp-sgd:noise_multiplier=1.0,sampling_rate=0.01,steps=1000"
_FLAGS: Final[Mapping[str, Mapping[str, str]]] = {
    "account": {
        **dict.fromkeys(
            ("noise_multiplier", "sigma", "noise"), f"write --base gaussian:noise_multiplier=4, or {_TRAINING}"
        ),
        **dict.fromkeys(("sample_rate", "steps", "epochs", "batch_size", "lot_size"), f"write {_TRAINING}"),
        **dict.fromkeys(("n_trials", "n_iter", "law", "runs"), "write --repetitions harmonic:limit=20"),
        **dict.fromkeys(
            ("epsilon", "target_epsilon"),
            "account computes it. To find the noise for an epsilon, write dpselect plan --base gaussian "
            "--repetitions harmonic:limit=20 --epsilon 3 --delta 1e-6",
        ),
    },
    "export": dict.fromkeys(("format", "output", "o"), "write --to model.onnx"),
    "init": {"target": "did you mean --label?", "epsilon": "did you mean --epsilon?"},
    "quantile": {
        **dict.fromkeys(("bounds", "range"), "write --lower 0 --upper 100"),
        **dict.fromkeys(("group_by", "groupby"), "write --by COLUMN, and --group NAME for each group"),
        "quantile": "did you mean --q?",
        "quantiles": "write --q 0.25 --q 0.5 --q 0.75",
    },
    "tune": {
        **dict.fromkeys(("dry_run", "validate"), "write --check, or --forecast"),
        **dict.fromkeys(
            ("epsilon", "delta", "budget", "noise_multiplier"),
            "leave it out: the study has it, under [privacy]",
        ),
        **dict.fromkeys(
            ("n_trials", "n_iter", "max_trials", "runs", "repetitions"),
            "leave it out: the study has the number of runs, under [repetitions]",
        ),
        "to": "did you mean --output?",
    },
    "predict": {"proba": "write --probabilities", "model": "the model is the first argument"},
}
"""Flags of other tools, by command, and what to type."""
_GENERAL: Final[Mapping[str, str]] = {"version": "write --version", "help": "write --help behind the command"}
"""Commands of other tools that are flags here."""
_SEED: Final = "leave it out: anyone who knows a seed knows the noise"
_SAME: Final[Mapping[str, str]] = {
    "output": "to",
    "o": "to",
    "out": "to",
    "neighbor": "neighbour",
    "alpha": "failure_probability",
}
"""Flags that have one name everywhere."""
_COMMANDS: Final[Mapping[str, str]] = {
    "train": "tune",
    "fit": "tune",
    "search": "tune",
    "check": "tune",
    "epsilon": "account",
    "compute": "account",
    "price": "account",
    "budget": "ledger",
    "median": "quantile",
    "balance": "show",
    "remaining": "show",
    "spent": "show",
    "info": "status",
    "show": "status",
    "submit": "ask",
    "compare": "ask",
    "list": "show",
    "status": "show",
    "new": "create",
}
"""Commands of other tools, and ours."""


def usage_text(error: Any) -> str:
    """Return the error for a command line, from the parser's error, and a line to type."""
    context = error.ctx
    words = "" if context is None else " ".join(context.command_path.split()[1:])
    flag = getattr(error, "option_name", None)
    if flag is not None and type(error).__name__ == "NoSuchOption":
        return f"there is no {flag}: {_instead(words, flag, context)}"
    parameter = getattr(error, "param", None)
    if type(error).__name__ == "MissingParameter" and parameter is not None:
        return _missing(words, parameter)
    if parameter is not None:
        return _refused(words, parameter, error.message)
    if type(error).__name__ == "NoSuchCommand" or "No such command" in error.message:
        return _no_command(words, error, context)
    return f"{error.message}{_as_in(words)}"


def _instead(words: str, flag: str, context: Any) -> str:
    """Return advice for a flag that a command does not have."""
    name = flag.lstrip("-").replace("-", "_")
    advice = _FLAGS.get(words, {}).get(name)
    if advice is not None:
        return advice
    ours = {
        option.name: next((opt for opt in option.opts if opt.startswith("--")), "")
        for option in context.command.params
        if option.param_type_name == "option"
    }
    if name in ("seed", "random_state") and "key" not in ours:
        return _SEED
    found = meant(_SAME.get(name, name), ours) or next((our for our in ours if our == _SAME.get(name)), None)
    if found is not None:
        return f"did you mean {ours[found]}?"
    return f"there are {', '.join(sorted(filter(None, ours.values())))}"


def _missing(words: str, parameter: Any) -> str:
    """The error for an option or an argument that is needed."""
    if parameter.param_type_name != "option":
        return f"{_shown(parameter)} is missing{_as_in(words)}"
    flag = next(opt for opt in parameter.opts if opt.startswith("--"))
    shown = _value(words, flag)
    return f"{flag} is missing. Write {flag} {shown}" if shown else f"{flag} is missing{_as_in(words)}"


def _shown(argument: Any) -> str:
    """The name of an argument without a flag, as the help writes it."""
    return str(argument.metavar or argument.name)


def _refused(words: str, parameter: Any, message: str) -> str:
    """The error for a value that cannot be read."""
    said = message[:1].lower() + message[1:].rstrip(".")
    said = said.replace("input should be ", "must be ").partition(", unable to parse")[0]
    if parameter.param_type_name != "option":
        return f"{_shown(parameter)} {said}"
    flag = next(opt for opt in parameter.opts if opt.startswith("--"))
    shown = _value(words, flag) or {"integer": "1", "number": "1.0"}.get(said.rpartition(" ")[2])
    return f"{flag} {said}" + (f". Write {flag} {shown}" if shown else "")


def _no_command(words: str, error: Any, context: Any) -> str:
    """The error for a command that does not exist."""
    typed = error.message.partition("'")[2].partition("'")[0]
    known = list(context.command.list_commands(context))
    found = _COMMANDS.get(typed) if _COMMANDS.get(typed) in known else None
    near = found or next(iter(get_close_matches(typed, known, n=1)), None)
    shown = f"did you mean {near}?" if near else _GENERAL.get(typed) or f"there are {', '.join(known)}"
    return f"there is no command {typed}{f' of {words}' if words else ''}: {shown}"


def _value(words: str, flag: str) -> str | None:
    """The value that a flag has in the examples of the command."""
    return next((after for one, after in _pairs(words) if one == flag), None)


def _pairs(words: str) -> Iterator[tuple[str, str]]:
    for example in EXAMPLES.get(words, ()):
        parts = shlex.split(example)
        yield from itertools.pairwise(parts)


def _as_in(words: str) -> str:
    """The end of an error: an example of the command."""
    shown = EXAMPLES.get(words, ())
    return f". Write as in `{shown[0]}`" if shown else ""
