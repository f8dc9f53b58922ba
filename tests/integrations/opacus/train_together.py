"""One of several processes that train together, over gloo.

Run as `python -m tests.integrations.opacus.train_together FOLDER RANK COUNT JSON`. The JSON holds settings of the plan,
`key` (None draws one), `kept` (the folder of checkpoints), `die` (a kill in that step), `first_rows` (places of the
rows that come first), `looks` (early stopping), and settings of one rank under its number. The weights go to
FOLDER/weights-RANK, or what was raised to FOLDER/raised-RANK.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from datetime import timedelta
from pathlib import Path

import torch

from dpselect.integrations.opacus import PrivateTraining, checkpoints
from dpselect.learners import EarlyStopping, PrivateValidation
from dpselect.randomness import keyed_source

STEPS = 6


def network():
    return torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Dropout(0.3), torch.nn.Linear(16, 3))


def optimizer_of(die):
    class Adam(torch.optim.Adam):
        steps = 0

        def step(self, closure=None):
            self.steps += 1
            if self.steps == die:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().step(closure)

    def make(parameters):
        optimizer = Adam(parameters, lr=0.1)
        return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)

    return make


def rows(count=60):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(count, 4, generator=generator), torch.randint(0, 3, (count,), generator=generator)


def train(*, key=1, die=None, kept=None, loader=False, first_rows=(), looks=False, **settings):
    plan = {"noise_multiplier": 2.0, "sampling_rate": 0.4, "steps": STEPS, "max_grad_norm": 0.5}
    plan |= {"expected_batch_size": 20.0, "max_physical_batch_size": 4, **settings}
    if looks:  # it stops at the second one
        score = PrivateValidation(*rows(30), nominal_rows=30, epsilon=0.5)
        rule = EarlyStopping(stops=[2, 4, STEPS], score=score, rule=lambda scores: len(scores) == 2)
        plan["early_stopping"] = rule
    places = [*first_rows, *(place for place in range(60) if place not in first_rows)]
    data = [part[places] for part in rows()]
    data = [torch.utils.data.TensorDataset(*data)] if loader else data
    module = PrivateTraining(**plan).fit(
        network,
        optimizer_of(die),
        torch.nn.CrossEntropyLoss(reduction="none"),
        *data,
        random=None if key is None else keyed_source(key),
        checkpoints=kept,
    )
    return torch.cat([part.detach().flatten() for part in module.parameters()])


def main(folder: Path, rank: int, count: int, asked: dict) -> None:
    torch.set_num_threads(1)
    checkpoints.SECONDS = 0.0
    mine = {name: value for name, value in asked.items() if not name.isdigit()} | asked.get(str(rank), {})
    group = {"init_method": f"file://{folder}/meeting", "timeout": timedelta(seconds=60)}
    torch.distributed.init_process_group("gloo", rank=rank, world_size=count, **group)
    try:
        torch.save(train(distributed=True, **mine), folder / f"weights-{rank}")
    except Exception as error:
        (folder / f"raised-{rank}").write_text(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4]))
