"""Learn a one-dimensional halfspace from count queries only: no row leaves the database.

A halfspace in one dimension is a rule "dose > c". Two counts of rows say how wrong a c is,

    missed(c) = reactions at doses up to c        false_alarms(c) = no reaction at doses above c

and the score -max(missed, false_alarms) is quasi-concave: the first term falls with c, the second rises. One row moves
it by at most one, and always in the same direction when it is added. So `maximize_quasi_concave` draws a nearly best c
among two billion doses with about 100 count queries, where `learn_threshold` needs the column. If some c is right
about all rows, the c drawn is wrong about fewer than log(doses/beta)/epsilon rows on either side, except with
probability beta.

    python examples/halfspace_1d.py

One patient is one row, which is added or removed. The data are synthetic: reactions begin above 730,000,000 nanograms.
How many queries are made, and which, depends on the data: the log of the database is not to be published.
"""

from __future__ import annotations

import math
import sqlite3

import numpy as np

from dpselect.ordered.interior_points import RisingAndFalling, maximize_quasi_concave
from dpselect.privacy import Release
from dpselect.randomness import RandomSource

DOSES = 2_000_000_000
TRUE_LIMIT = 730_000_000
EPSILON = 0.5


def synthetic_patients(rows: int = 20_000, seed: int = 1) -> sqlite3.Connection:
    """A table patient(dose, reaction) with an index."""
    generator = np.random.default_rng(seed)
    doses = generator.integers(0, DOSES, rows)
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE patient (dose INTEGER, reaction INTEGER)")
    database.executemany(
        "INSERT INTO patient VALUES (?, ?)", [(dose, int(dose > TRUE_LIMIT)) for dose in doses.tolist()]
    )
    database.execute("CREATE INDEX by_dose ON patient (reaction, dose)")
    return database


def score_of(database: sqlite3.Connection) -> RisingAndFalling:
    """-max(missed, false alarms) as the smaller of a rising and a falling function."""

    def count(condition: str, limit: int) -> int:
        found = database.execute(f"SELECT COUNT(*) FROM patient WHERE {condition}", (limit,)).fetchone()
        return int(found[0])

    return RisingAndFalling(
        rising=lambda limit: -count("reaction = 0 AND dose > ?", limit),
        falling=lambda limit: -count("reaction = 1 AND dose <= ?", limit),
    )


def main(random: RandomSource | None = None) -> Release:
    """Run the example; returns the release."""
    release = maximize_quasi_concave(
        score_of(synthetic_patients()),
        lower=0,
        upper=DOSES - 1,
        epsilon=EPSILON,
        monotonic=True,
        random=random,
    )
    wrong = math.log(DOSES / 0.01) / EPSILON
    print(f"reactions above a dose of {release.value:,}")
    print(f"price: epsilon {release.guarantee.pure_epsilon:g}")
    print(f"wrong about fewer than {wrong:.0f} rows on either side, except with probability 0.01")
    return release


if __name__ == "__main__":
    main()
