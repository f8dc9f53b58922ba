"""Examples for `--help`. The tests run them all, in this order, in a folder that holds the files they name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["EXAMPLES", "examples_of"]

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
    "export": ("dpselect export found/model.npz --to model.joblib",),
    "report": ("dpselect report found",),
    "account": (
        "dpselect account --base gaussian:noise_multiplier=4 --repetitions harmonic:limit=20 --delta 1e-6",
        "dpselect account --base pure:epsilon=0.1 --repetitions grid:count=10 --delta 0 --json",
    ),
    "plan": (
        "dpselect plan --base pure:epsilon=1 --delta 0 --expected-quantile 0.7",
        "dpselect plan --base gaussian --repetitions harmonic:limit=20 --epsilon 2 --delta 1e-6",
    ),
    "quantile": ("dpselect quantile people.csv --column income --q 0.5 --epsilon 1 --lower 0 --upper 1e6",),
    "audit": (
        "dpselect audit mechanism:noisy_count --data 6 --neighbour 5 --claim pure:epsilon=0.5 --draws 20000 --key 1",
    ),
    "reproduce": ("dpselect reproduce output-dp --quick",),
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
"""By the words of the command."""


def examples_of(words: str) -> str | None:
    """What stands below the help of the command of these words."""
    shown = EXAMPLES.get(words, ())
    # an empty line between lines, or the help would run them together
    return "\n\n".join(["Example:" if len(shown) == 1 else "Examples:", *shown]) if shown else None
