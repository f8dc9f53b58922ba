"""Which small changes of a module do its tests miss? A run of Cosmic Ray over a copy of the committed tree.

    pip install cosmic-ray
    python -m benchmarks.mutations ledger/filters [--tests tests/test_ledger_filters.py ...] [--at-most 50]

Each mutant is one change of one place: a number, an operator, a comparison, a condition. Changes that say the same
twice, like ten wrong operators in one place, and those of annotations are left out. Without `--tests` those of
`TESTS` run, the quickest to fail first. Some seconds a mutant and one process: minutes to an hour a module. What
survived is printed as a difference; some of it is equivalent to the original, and a person says which.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = {
    "ledger/filters": ["tests/test_ledger_filters.py", "tests/test_ledger_audit.py", "tests/test_ledger_prices.py"],
    "study/split": ["tests/test_study_split.py", "tests/test_study_designs.py", "tests/test_training_scores.py"],
    "privacy/composition": [
        "tests/test_privacy_guarantee.py",
        "tests/test_privacy_guarantee_laws.py",
        "tests/test_privacy_losses.py",
        "tests/test_accounting_profile.py",
    ],
}
CHANGES = {
    *("NumberReplacer", "AddNot", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceTrueWithFalse"),
    *("ReplaceFalseWithTrue", "ZeroIterationForLoop", "ReplaceUnaryOperator_Delete_USub"),
    *("ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_Invert"),
    *(f"ReplaceBinaryOperator_{pair}" for pair in ("Mul_Div", "Div_Mul", "Add_Sub", "Sub_Add", "Pow_Mul")),
    *(f"ReplaceComparisonOperator_{a}_{a}E" for a in ("Lt", "Gt")),
    *(f"ReplaceComparisonOperator_{a}E_{a}" for a in ("Lt", "Gt")),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is")),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("In_NotIn", "NotIn_In")),
}
"""One or two changes a place."""


def keep(session: Path, at_most: int) -> int:
    """Leave out all other mutants of a session; how many are left, drawn with a fixed seed if they are too many."""
    with sqlite3.connect(session) as store:
        jobs = store.execute("SELECT job_id, operator_name FROM mutation_specs ORDER BY job_id").fetchall()
        kept = [job for job, operator in jobs if operator.removeprefix("core/") in CHANGES]
        kept = random.Random(1).sample(kept, min(at_most, len(kept)))
        others = [(job,) for job, _ in jobs if job not in set(kept)]
        for table in ("mutation_specs", "work_items"):
            store.executemany(f"DELETE FROM {table} WHERE job_id = ?", others)
    return len(kept)


def survivors(session: Path) -> list[str]:
    """The differences that no test saw."""
    query = "SELECT diff FROM work_results WHERE test_outcome = 'SURVIVED'"
    with sqlite3.connect(session) as store:
        return [diff for (diff,) in store.execute(query)]


def run(module: str, tests: list[str], at_most: int, folder: Path) -> tuple[int, list[str]]:
    """How many mutants there were, and the differences of those that survived."""
    tree = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "x", "-C", str(folder)], input=tree, check=True)
    command = shlex.join([sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *tests])
    settings, session = folder / "mutations.toml", folder / "mutations.sqlite"
    settings.write_text(
        f'[cosmic-ray]\nmodule-path = "src/dpselect/{module}.py"\ntimeout = 120.0\nexcluded-modules = []\n'
        f'test-command = {json.dumps(command)}\n[cosmic-ray.distributor]\nname = "local"\n'
    )
    paths = os.pathsep.join([str(folder / "src"), str(folder)])
    surroundings = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    before = subprocess.run(shlex.split(command), cwd=folder, env=surroundings, capture_output=True, text=True)
    if before.returncode:
        raise SystemExit(f"the tests fail without any change:\n{before.stdout[-2000:]}")
    for verb in ("init", "exec"):
        subprocess.run(["cosmic-ray", verb, settings.name, session.name], cwd=folder, env=surroundings, check=True)
        count = keep(session, at_most)
    return count, survivors(session)


def main() -> None:
    """Print the survivors of each module."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutations", description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="+", metavar="MODULE", help="such as ledger/filters")
    parser.add_argument("--tests", nargs="+", default=[], help="what pytest runs, in place of TESTS")
    parser.add_argument("--at-most", type=int, default=10**6, help="a sample of so many mutants of a module")
    asked = parser.parse_args()
    for module in asked.modules:
        with tempfile.TemporaryDirectory() as folder:
            count, survived = run(module, asked.tests or TESTS[module], asked.at_most, Path(folder))
        print(f"{module}: {len(survived)} of {count} mutants survived")
        print("\n".join(survived))


if __name__ == "__main__":
    main()
