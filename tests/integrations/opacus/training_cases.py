"""A small network, its rows, and a private training of one step."""
# ruff: noqa: E402

from collections import OrderedDict

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from dpselect.integrations.opacus import PrivateTraining

CLIP, DIVISOR = 0.5, 8.0


def linear():
    return torch.nn.Sequential(torch.nn.Linear(4, 40), torch.nn.Tanh(), torch.nn.Dropout(0.2), torch.nn.Linear(40, 3))


def descent(parameters):
    return torch.optim.SGD(parameters, lr=1.0)


def plan(**changes):
    settings = {"noise_multiplier": 2.0, "sampling_rate": 1.0, "steps": 1}
    return PrivateTraining(**{**settings, "max_grad_norm": CLIP, "expected_batch_size": DIVISOR, **changes})


def rows(count, seed=1):
    generator = np.random.default_rng(seed)
    inputs = torch.tensor(generator.normal(size=(count, 4)), dtype=torch.float32)
    return inputs, torch.tensor(generator.integers(0, 3, count))


def weights(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()]).double()


# saved states


HISTORY = [(1.0, 0.01, 500), (2.0, 0.01, 500)]


def state(mechanism="rdp"):
    return OrderedDict(history=HISTORY, mechanism=mechanism)
