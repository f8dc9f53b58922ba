"""The commands by name, each in the file of its name: a file is imported when its command is run or asked for help."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from dpselect.errors import ArgumentError

__all__ = ["COMMANDS", "EXAMPLES", "Commands", "Later", "group"]

COMMANDS: Final[Mapping[str, str]] = {
    "init": "Draft a study from the names and types of a table's columns. No row is read.",
    "tune": "Train a private model from a study file. Write the model, its report and its model card.",
    "predict": "Predict with a released model. Write a CSV file with one prediction for each row of your table.",
    "export": "Export a released model for other programs.",
    "report": "Write report.html and model-card.md again from a release. Read no private row and spend nothing.",
    "account": "Print the epsilon of one private run, of a search that keeps the best run, or of a past search.",
    "plan": "Choose the distribution of the number of runs, and the noise of one run, for your budget or goal.",
    "quantile": "Release private quantiles of a column, such as its median.",
    "audit": "Try to show that a mechanism leaks more than it claims. An audit never proves that it does not.",
    "ledger": "Manage budgets that several people and programs spend from one durable record.",
    "holdout": "Score many submissions on the same held-out labels, with certified confidence intervals.",
    "gate": "Test again and again whether a candidate is better than the incumbent. Each answer is one bit.",
}
"""What each command does: the first line of its own help."""

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "init": ("dpselect init new.csv --label species --to draft.toml",),
    "tune": (
        "dpselect tune --check study.toml",
        "dpselect tune --forecast study.toml",
        "dpselect tune study.toml --output found",
        "dpselect tune --schema",
    ),
    "predict": (
        "dpselect predict found/model.npz new.csv --to predictions.csv",
        "dpselect predict found/model.npz new.csv --keep species --probabilities",
    ),
    "export": (
        "dpselect export found/model.npz --to model.onnx",
        "dpselect export found/model.npz --to model.joblib",
    ),
    "report": ("dpselect report found",),
    "account": (
        "dpselect account --base gaussian:noise_multiplier=4 --repetitions harmonic:limit=20 --delta 1e-6",
        "dpselect account --base pure:epsilon=0.1 --repetitions grid:count=10 --delta 0 --json",
        "dpselect account --sweep sweep.csv --delta 1e-5 --report sweep.md",
    ),
    "plan": (
        "dpselect plan --base pure:epsilon=1 --delta 0 --expected-quantile 0.7",
        "dpselect plan --base gaussian --repetitions harmonic:limit=20 --epsilon 2 --delta 1e-6",
    ),
    "quantile": ("dpselect quantile people.csv --column income --q 0.5 --epsilon 1 --lower 0 --upper 1e6",),
    "audit": (
        "dpselect audit mechanism:noisy_count --data 6 --neighbour 5 --claim pure:epsilon=0.5 --draws 20000 --key 1",
    ),
    "ledger create": (
        "dpselect ledger create budget.db --budget team --epsilon 3 --delta 1e-6",
        "dpselect ledger create budget.db --budget ada --epsilon 1 --parent team",
    ),
    "ledger show": ("dpselect ledger show budget.db",),
    "ledger verify": ("dpselect ledger verify budget.db",),
    "ledger export": ("dpselect ledger export budget.db record.jsonl",),
    "ledger import": ("dpselect ledger import record.jsonl copy.db",),
    "holdout plan": ("dpselect holdout plan --questions 1000 --answers 10 --rows 10000",),
    "holdout create": ("dpselect holdout create labels.csv --to pets.holdout --questions 100",),
    "holdout score": ("dpselect holdout score guesses.csv --holdout pets.holdout --claim 0.87",),
    "holdout status": ("dpselect holdout status pets.holdout",),
    "holdout serve": ("dpselect holdout serve pets.holdout my.gate --listen 127.0.0.1:8080",),
    "holdout invite": ("dpselect holdout invite Ada --questions 100 --answers 3",),
    "holdout revoke": ("dpselect holdout revoke Ada",),
    "holdout submit": ("dpselect holdout submit guesses.csv --to https://example.org/boards/pets --claim 0.87",),
    "gate plan": ("dpselect gate plan --tasks 500 --consultations 20",),
    "gate create": (
        "dpselect gate create incumbent.csv --to my.gate --consultations 20 --bound-failure-probability 0.05",
    ),
    "gate ask": (
        "dpselect gate ask candidate.csv --gate my.gate --stake 0.01",
        "dpselect gate ask candidate.csv --gate my.gate --content model.bin",
    ),
    "gate advise": ("dpselect gate advise incumbent.csv candidate.csv --tasks 500 --purse 0.05",),
    "gate status": ("dpselect gate status --gate my.gate",),
    "gate certify": ("dpselect gate certify --gate my.gate --to answers.json",),
    "gate verify": ("dpselect gate verify answers.json --gate my.gate",),
    "gate retire": ("dpselect gate retire --gate my.gate",),
}
"""For `--help`, by the words of the command.

The tests run them all, in this order, in a folder that holds the files they name.
"""


class Later(TyperCommand):
    """A command that is known by its name and one line, until it is run, completed or asked for help."""

    @cached_property
    def loaded(self) -> Any:
        """The command itself, or the group, with examples below its help."""
        assert self.name is not None
        room = import_module(f"dpselect.cli.{self.name}")
        public = vars(room)
        app = public.get(f"{self.name}_app")
        if app is None:
            app = typer.Typer(add_completion=False)
            app.command()(public[self.name])
        found: Any = typer.main.get_command(app)
        found.epilog = _examples(self.name)
        if isinstance(found, TyperGroup):
            for inner, command in found.commands.items():
                command.epilog = _examples(f"{self.name} {inner}")
        return found

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        """The context of the command itself."""
        return self.loaded.make_context(*arguments, **settings)


class Commands(TyperGroup):
    """The commands of `dpselect`, none of them imported."""

    def __init__(self, **settings: Any) -> None:
        """As for every group, but for its commands."""
        super().__init__(**{**settings, "commands": {name: Later(name, help=line) for name, line in COMMANDS.items()}})

    def resolve_command(self, context: Any, arguments: list[str]) -> Any:
        """The command of the first word. `reproduce`, a command until 0.2, is answered with the one to type now."""
        if arguments[:1] == ["reproduce"]:
            raise ArgumentError("'reproduce' is no longer a command: run 'python -m papers PAPER' in the source tree")
        return super().resolve_command(context, arguments)


def group(name: str) -> typer.Typer:
    """A command with commands below it."""
    return typer.Typer(name=name, help=COMMANDS[name], no_args_is_help=True, add_completion=False)


def _examples(words: str) -> str | None:
    """The text below the help of the command of these words."""
    shown = EXAMPLES.get(words, ())
    # an empty line between lines, or the help would run them together
    return "\n\n".join(["Example:" if len(shown) == 1 else "Examples:", *shown]) if shown else None
