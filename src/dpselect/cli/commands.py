"""The commands by name, each in the file of its name: a file is imported when its command is run or asked for help."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from dpselect.cli.examples import examples_of

__all__ = ["COMMANDS", "Commands", "Later"]

COMMANDS: Final[Mapping[str, str]] = {
    "init": "Draft a study from the names of a table's columns, and the types of its schema. No row is read.",
    "tune": "Search privately for the best model and write one release: the model, its report and its card.",
    "predict": "Predict with a released model: a CSV file with a row for each row of a table.",
    "export": "Export a released model: a file that joblib loads as a fitted estimator of scikit-learn.",
    "report": "Make report.html and model-card.md again, from what was released: no data are read, nothing is spent.",
    "account": "Print the epsilon of running a private mechanism a random number of times and keeping the best.",
    "plan": "Choose the law of the number of runs, and the noise of one run, for a total or for a goal.",
    "quantile": "Private quantiles of a column: values that are nearly at the ranks asked for, and what that costs.",
    "audit": "Try to show that a mechanism leaks more than it claims. It never proves that one does not.",
    "reproduce": "Rerun the figures and tables of a paper: the paper's value, ours and the optimal one, side by side.",
    "ledger": "Budgets that many people and programs spend from, on one durable record.",
    "holdout": "Held-out labels that may be asked about again and again, every answer certified.",
    "gate": "Is a candidate better than the incumbent? One bit an answer, however often it is asked.",
}
"""What each of them does, as the list of commands and completion say it: the first line of its own help."""


class Later(TyperCommand):
    """A command that is known by its name and one line, until it is run, completed or asked for help."""

    @cached_property
    def loaded(self) -> Any:
        """The command itself, or the group, with examples below its help."""
        assert self.name is not None
        room = import_module(f"dpselect.cli.{self.name}")
        app = getattr(room, f"{self.name}_app", None)
        if app is None:
            app = typer.Typer(add_completion=False)
            app.command()(getattr(room, self.name))
        found: Any = typer.main.get_command(app)
        for words, command in {self.name: found, **_within(self.name, found)}.items():
            command.epilog = examples_of(words)
        return found

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        """The context of the command itself."""
        return self.loaded.make_context(*arguments, **settings)


class Commands(TyperGroup):
    """The commands of `dpselect`, none of them imported."""

    def __init__(self, **settings: Any) -> None:
        """As for every group, but for its commands."""
        super().__init__(**{**settings, "commands": {name: Later(name, help=line) for name, line in COMMANDS.items()}})


def _within(name: str, group: Any) -> dict[str, Any]:
    return {f"{name} {inner}": command for inner, command in getattr(group, "commands", {}).items()}
