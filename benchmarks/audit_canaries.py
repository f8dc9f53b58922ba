"""How often the one-run audit catches DP-SGD with too little noise, by how much too little and how many guesses.

    python -m benchmarks.audit_canaries [--runs 100]

600 canaries with a column each, four full-batch steps, claimed noise multiplier 4, confidence 0.99. Less than a
minute of processor time.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

from dpselect.audit.one_run import OneRunAudit, label_scores
from dpselect.learners import DPSGDClassifier
from dpselect.privacy import dp_sgd
from dpselect.randomness import RandomSource, keyed_source

CANARIES, CLAIMED, STEPS = 600, 4.0, 4
CLAIM = dp_sgd(noise_multiplier=CLAIMED, sampling_rate=1.0, steps=STEPS)


def train(noise: float, source: RandomSource, rows: np.ndarray, labels: np.ndarray) -> DPSGDClassifier:
    model = DPSGDClassifier(
        noise_multiplier=noise,
        sampling_rate=1.0,
        steps=STEPS,
        learning_rate=0.01,
        averaged_share=0.0,
        nominal_rows=CANARIES / 2,
        classes=[0, 1],
        random=source,
    )
    return model.fit(rows, labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    print("| noise, of what is claimed | guesses | caught | median measured epsilon | claimed | at most measurable |")
    print("|---|---|---|---|---|---|")
    for share in (1.0, 0.5, 0.25, 0.125, 0.01):
        for side in (30, 100, 300):
            found = []
            for run in range(runs):
                source = keyed_source(f"{share} {side} {run}")
                audit = OneRunAudit(
                    name="DP-SGD",
                    train=partial(train, share * CLAIMED, source.spawn("trainer")),
                    score=label_scores,
                    canary_rows=np.eye(CANARIES),
                    canary_labels=np.ones(CANARIES),
                    claim=CLAIM,
                    inside=side,
                    outside=side,
                )
                found.append(audit.run(random=source.spawn("coins")))
            caught = sum(one.violated for one in found)
            middle = float(np.median([one.epsilon_lower for one in found]))
            print(
                f"| {share:g} | {2 * side} | {caught} of {runs} | {middle:.2f} "
                f"| {found[0].claimed_epsilon:.2f} | {found[0].epsilon_limit:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
