"""A short private training of a module, its loss and its rows."""
# ruff: noqa: E402

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from dpselect.integrations.opacus import PrivateTraining
from dpselect.randomness import keyed_source

TRAINING = PrivateTraining(noise_multiplier=1, sampling_rate=0.5, steps=3, max_grad_norm=1, expected_batch_size=10)


def fit(entry, **options):
    make, loss, inputs, targets = entry
    return TRAINING.fit(
        make, lambda p: torch.optim.SGD(p, lr=0.1), loss, inputs, targets, random=keyed_source(1), **options
    )
