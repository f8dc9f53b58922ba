"""Ways to accept a candidate, replayed on the answers of published models: over-fitting, and what is gained.

    git clone https://github.com/modestyachts/CIFAR-10.1
    python -m benchmarks.replay --data CIFAR-10.1 --labels LABELS.npy [--replays 200] [--tasks 2000]

The data are those of a study of over-fitting by reuse (Recht, Roelofs, Schmidt, Shankar 2018, arXiv 1806.00451; MIT
licence), read where they lie: what 30 published models answer to the 10,000 test images of CIFAR-10, which all of them
had been compared on for years, and to 2,000 new ones (CIFAR-10.1, version 6). LABELS.npy has the 10,000 test labels in
their usual order.

In each replay `tasks` of the 10,000 images are held out, as many are the searcher's own, and the others say what a
system is worth. There are 100 experiments. 29 are the models that the searcher has not tried yet, in random order; the
others change what leads: a random tenth of all images is answered by one of the models tried before. So most of what is
asked is hardly better or worse, as in a search by hand. The ways to accept are those of
`python -m benchmarks.gate --only loop`.

`accepted`: candidates that led. `not better`: those of them that are not better than what they replaced, on the images
that are neither held out nor the searcher's. `over-fitting`: the last leader's share of correct predictions on the
held-out images less that on those. `improvement`: its share on those, and on the new ones, less that of the first
model. Means over replays, with their standard errors for the last three; seeds are fixed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.gate import ASKS, FAILURE, WAYS, Loop, log_tails

Right = NDArray[np.bool_]


def right_answers(data: Path, labels: Path) -> Right:
    """Which model is right on which image: the 10,000 that were reused, then the 2,000 new ones."""
    truth = np.load(labels), np.load(data / "datasets" / "cifar10.1_v6_labels.npy")
    rows = []
    for path in sorted((data / "model_predictions" / "original_predictions").glob("*.json")):
        answers = (
            json.loads(path.read_text()),
            json.loads((data / "model_predictions/v6_predictions" / path.name).read_text()),
        )
        rows.append(np.concatenate([np.asarray(given) == known for given, known in zip(answers, truth, strict=True)]))
    return np.array(rows)


class Replay(Loop):
    """The loop of `benchmarks.gate`, whose experiments are published models and mixtures of them.

    A system is its worth, its outcomes on the searcher's images and on the held-out ones, and those on all images.
    """

    def __init__(self, right: Right, reused: int, random: np.random.Generator, tails: NDArray[Any]) -> None:
        self.tasks = len(tails) - 1
        super().__init__(0.0, random, tails)
        self.reused, self.right, self.accepted = reused, random.permutation(right), 0
        order = random.permutation(reused)
        self.own, self.held_out, self.rest = np.split(order, [self.tasks, 2 * self.tasks])
        self.tried, self.left = 1, ASKS
        self.incumbent = self.built = self.first = self.system(self.right[0])

    def system(self, right: Right) -> tuple[Any, ...]:
        return float(right[self.rest].mean()), right[self.own], right[self.held_out], right

    def experiment(self) -> tuple[Any, ...]:
        untried = len(self.right) - self.tried
        self.left -= 1
        if self.random.random() * (self.left + 1) < untried:
            self.tried += 1
            return self.system(self.right[self.tried - 1])
        other = self.right[self.random.integers(self.tried)]
        return self.system(np.where(self.random.random(other.size) < 0.1, other, self.built[3]))

    def take(self, candidate: tuple[Any, ...]) -> None:
        super().take(candidate)
        self.accepted += 1

    def found(self) -> tuple[float, ...]:
        """What the table says of this replay."""
        first, last = self.first[3], self.incumbent[3]
        gains = [last[at].mean() - first[at].mean() for at in (self.rest, np.arange(self.reused, last.size))]
        return self.accepted, self.false, float(last[self.held_out].mean() - last[self.rest].mean()), *gains


def table(right: Right, reused: int, replays: int, tasks: int) -> str:
    """All ways as Markdown."""
    tails = log_tails(tasks)
    lines = [
        "| | accepted | not better | over-fitting | improvement | on the new images |",
        "|---|---|---|---|---|---|",
    ]
    for name, (step, fresh) in WAYS.items():
        if fresh:  # there are no further images
            continue
        rows = []
        for number in range(replays):
            one = Replay(right, reused, np.random.default_rng([19, number]), tails)
            for left in range(ASKS, 0, -1):
                if one.purse > 0.0:
                    step(one, left)
            rows.append(one.found())
        means, errors = np.mean(rows, axis=0), np.std(rows, axis=0) / replays**0.5
        shares = " | ".join(f"{mean:+.4f} ± {error:.4f}" for mean, error in zip(means[2:], errors[2:], strict=True))
        lines.append(f"| {name} | {means[0]:.1f} | {means[1]:.2f} | {shares} |")
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.replay", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--labels", type=Path, required=True)
    parser.add_argument("--replays", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=2000)
    options = parser.parse_args()
    right = right_answers(options.data, options.labels)
    reused = len(np.load(options.labels))
    print(f"{len(right)} models; {options.tasks} held-out images, {ASKS} experiments, failure probability {FAILURE}")
    table(right, reused, options.replays, options.tasks)


if __name__ == "__main__":
    main()
