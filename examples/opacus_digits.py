"""Tune a small convolutional network, trained with Opacus, on scikit-learn's digits: 50 runs on average, one price.

Needs `pip install "dpselect[torch]"`. Run it, kill it (`kill -9`) at any moment, and run it again with `--resume`: it
continues where it was and the price stays the same.

    python examples/opacus_digits.py --store search.db --model model.pt
    python examples/opacus_digits.py --store search.db --model model.pt --resume

Every fifth image scores the runs, the others train them: a row is in one of the two parts, so it pays the larger price.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from pathlib import Path

import torch
from sklearn.datasets import load_digits

from dpselect.integrations.opacus import PrivateTraining
from dpselect.mechanisms import discrete_laplace
from dpselect.privacy import Guarantee, pure_dp
from dpselect.randomness import RandomSource
from dpselect.repetitions import Harmonic, Repetitions
from dpselect.storage.durable import write_atomically
from dpselect.tuning import (
    Categorical,
    InlineExecutor,
    LogUniform,
    ProcessExecutor,
    SearchStore,
    Space,
    TuneResult,
    tune,
)

DELTA = 1e-5
NOMINAL_ROWS = 1440  # public: what the training part has, more or less
SCORE_EPSILON = 0.5
LAW = Harmonic(limit=318)  # 50 runs on average, never more than 318
TRAINING = {"noise_multiplier": 4.0, "sampling_rate": 0.2, "steps": 60}
SPACE = Space(
    {
        "learning_rate": LogUniform(0.1, 10.0),
        "momentum": Categorical([0.0, 0.5, 0.9]),
        "max_grad_norm": LogUniform(0.1, 3.0),
        "channels": Categorical([4, 8, 16]),
        "activation": Categorical(["relu", "tanh"]),
    }
)


def network(channels: int, activation: str) -> torch.nn.Module:
    """Two convolutions and a linear layer for 8 x 8 images."""
    bend = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh}[activation]
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, channels, 3, padding=1),
        bend(),
        torch.nn.AvgPool2d(2),
        torch.nn.Conv2d(channels, 2 * channels, 3),
        bend(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * channels, 10),
    )


def load() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Images in [0, 1], labels, and which rows score. A row's part depends on the row only, not on the others."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    return images, torch.tensor(digits.target), torch.arange(len(images)) % 5 == 0


def private_training(max_grad_norm: float = 1.0) -> PrivateTraining:
    """What every run has in common; the price does not depend on the clipping norm."""
    return PrivateTraining(
        **TRAINING, max_grad_norm=max_grad_norm, expected_batch_size=TRAINING["sampling_rate"] * NOMINAL_ROWS
    )


class Objective:
    """One run: train, count correct predictions on the scoring rows, add noise to the count."""

    def __init__(self) -> None:
        self.images, self.labels, self.scores = load()

    def __call__(self, params: dict[str, object], random: RandomSource) -> tuple[float, bytes]:
        model = private_training(params["max_grad_norm"]).fit(
            lambda: network(params["channels"], params["activation"]),
            lambda parameters: torch.optim.SGD(parameters, lr=params["learning_rate"], momentum=params["momentum"]),
            torch.nn.CrossEntropyLoss(reduction="none"),
            self.images[~self.scores],
            self.labels[~self.scores],
            random=random.spawn("training"),
        )
        with torch.no_grad():
            right = int((model(self.images[self.scores]).argmax(dim=1) == self.labels[self.scores]).sum())
        saved = io.BytesIO()
        torch.save(model.state_dict(), saved)
        return right + discrete_laplace(1 / SCORE_EPSILON, random.spawn("score")), saved.getvalue()


def parts() -> list[Guarantee]:
    """The price of one run for a training row, and for a scoring row."""
    return [private_training().guarantee, pure_dp(epsilon=SCORE_EPSILON)]


def search(
    *,
    law: Repetitions = LAW,
    store: Path | None = None,
    model: Path | None = None,
    resume: bool = False,
    workers: int = 0,
    random: RandomSource | None = None,
) -> TuneResult:
    """The whole search; prints what it costs, and what won."""

    def release(result: TuneResult) -> None:
        if model is not None and result.value is not None:
            write_atomically(model, result.value)

    result = tune(
        Objective(),
        space=SPACE,
        base=parts(),
        repetitions=law,
        store=SearchStore(path=store, resume=resume, payload_bytes=1 << 17),
        executor=ProcessExecutor(workers=workers) if workers else InlineExecutor(),
        random=random,
        release=release,
    )
    single = max(part.epsilon(DELTA) for part in parts())
    print(f"one run:          epsilon {single:.3f} at delta {DELTA:g}")
    print(f"the whole search: epsilon {result.guarantee.epsilon(DELTA):.3f} at delta {DELTA:g}")
    print(f"the winner:       {dict(result.params) if result.params else 'nothing was found'}")
    return result


def main() -> None:
    """Read the options and search."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--store", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--workers", type=int, default=0, help="processes; by default the runs are made in this one")
    options = parser.parse_args()
    begin = time.monotonic()
    result = search(store=options.store, model=options.model, resume=options.resume, workers=options.workers)
    print(
        f"took {time.monotonic() - begin:.0f} s", file=sys.stderr
    )  # for the operator: time tells of the number of runs
    if result.value is not None:
        print(f"the model:        {len(result.value)} bytes")


if __name__ == "__main__":
    main()
