"""A stopwatch: from a checkout and an empty virtual environment to a private model of a table of one's own.

    python benchmarks/first_model.py

Types what the README says, on 6,000 made-up members of a gym (names of columns in no order, missing cells, a date, an
amount in text, yes and no), and prints every command and every line that is filled in, with its seconds and its
keystrokes. The last column adds typing at 200 keystrokes a minute.
"""

from __future__ import annotations

import csv
import datetime
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
A_MINUTE = 200
FILLED_IN = {
    'classes = ["FILL IN", "FILL IN"]': 'classes = ["stayed", "left"]',
    '"visits per month" = { bounds = ["FILL IN", "FILL IN"]': '"visits per month" = { bounds = [0, 31]',
    'fee = { bounds = ["FILL IN", "FILL IN"]': "fee = { bounds = [20, 60]",
    'joined = { bounds = ["FILL IN", "FILL IN"]': 'joined = { kind = "date", bounds = ["2021-01-01", "2025-12-31"]',
    '"has trainer" = { bounds = ["FILL IN", "FILL IN"], missing = "indicator" }': (
        '"has trainer" = { categories = ["yes", "no"] }'
    ),
    'distance_km = { bounds = ["FILL IN", "FILL IN"]': "distance_km = { bounds = [0, 30]",
    'club = { bounds = ["FILL IN", "FILL IN"], missing = "indicator" }': (
        'club = { categories = ["north", "west", "centre"] }'
    ),
    'nominal_rows = "FILL IN"': "nominal_rows = 6000",
    "# [validation]": "[validation]",
}
"""What a person types over the draft."""


def member(draw: random.Random) -> list[str]:
    visits, distance, trainer = max(0.0, draw.gauss(9.0, 5.0)), draw.expovariate(0.25), draw.random() < 0.3
    joined = datetime.date(2021, 1, 1) + datetime.timedelta(days=draw.randrange(1600))
    leaves = 1.2 - 0.25 * visits + 0.12 * distance - 0.9 * trainer + draw.gauss(0.0, 0.6) > 0.0
    return [
        "" if draw.random() < 0.05 else f"{visits:.0f}",
        draw.choice(["29.90", "39.90", "59.00"]),
        "" if draw.random() < 0.02 else joined.isoformat(),
        "yes" if trainer else "no",
        f"{distance:.2f}",
        draw.choice(["north", "west", "centre"]),
        "left" if leaves else "stayed",
    ]


def write_table(path: Path, rows: int, seed: int) -> None:
    names = ["visits per month", "fee", "joined", "has trainer", "distance_km", "club", "outcome"]
    draw = random.Random(seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *(member(draw) for _ in range(rows))])


def accuracy(answers: Path, truth: Path) -> float:
    with answers.open(encoding="utf-8") as first, truth.open(encoding="utf-8") as second:
        pairs = list(zip(csv.DictReader(first), csv.DictReader(second), strict=True))
    return sum(a["prediction"] == b["outcome"] for a, b in pairs) / len(pairs)


def main() -> None:
    seconds, keystrokes = 0.0, 0

    def line(text: str, took: float, typed: int) -> None:
        nonlocal seconds, keystrokes
        seconds, keystrokes = seconds + took, keystrokes + typed
        print(f"{took:7.1f} s {typed:5d} {seconds + 60.0 * keystrokes / A_MINUTE:7.1f} s  {text}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        subprocess.run(["git", "clone", "-q", str(ROOT), folder], check=True)
        write_table(here / "people.csv", 6000, seed=7)
        write_table(here / "new.csv", 2000, seed=8)
        shell = {**os.environ, "XDG_STATE_HOME": str(here / "state"), "PATH": f"{here}/.venv/bin:{os.environ['PATH']}"}
        shell.pop("PYTHONPATH", None)

        def typed(command: str) -> None:
            begun = time.perf_counter()
            subprocess.run(command, shell=True, check=True, cwd=here, env=shell, capture_output=True)
            line(command, time.perf_counter() - begun, len(command) + 1)

        print("command keystrokes  in all")
        typed(f"{Path(sys.executable).name} -m venv .venv && . .venv/bin/activate")
        typed("pip install .")
        typed("dpselect init people.csv --label outcome --to study.toml < /dev/null")
        study = here / "study.toml"
        for old, new in FILLED_IN.items():
            text = study.read_text(encoding="utf-8")
            assert text.count(old) == 1, old
            study.write_text(text.replace(old, new), encoding="utf-8")
            line(f"    {new}", 0.0, len(new))
        typed("dpselect tune --check study.toml")
        typed("dpselect tune study.toml")
        typed("dpselect predict release/model.npz new.csv --to predictions.csv")
        print(f"right for {accuracy(here / 'predictions.csv', here / 'new.csv'):.3f} of 2,000 new rows")


if __name__ == "__main__":
    main()
