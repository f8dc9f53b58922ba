"""The guarantee of a privacy engine: read from its optimizer and loader, and what is refused."""
# ruff: noqa: E402

import math
import warnings

import numpy as np
import pytest

opacus = pytest.importorskip("opacus")

from dpselect.errors import ArgumentError
from dpselect.integrations.opacus import engine_guarantee
from dpselect.privacy import dp_sgd
from tests.integrations.opacus.training_cases import descent, rows, torch

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore:Full backward hook")


def made_private(**options):
    module = torch.nn.Linear(4, 3)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*rows(100)), batch_size=10)
    settings = {"noise_multiplier": 1, "max_grad_norm": 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, optimizer, loader = opacus.PrivacyEngine(accountant="rdp").make_private(
            module=module, optimizer=descent(module.parameters()), data_loader=loader, **{**settings, **options}
        )
    return optimizer, loader


def test_an_engines_guarantee():
    found = engine_guarantee(*made_private(), steps=30, size_is_public=True)
    # a uniform of 24 bits is below the single-precision number next to 0.1 a little more often than with rate 0.1
    drawn = math.ceil(float(np.float32(0.1)) * 2**24) / 2**24
    assert dp_sgd(noise_multiplier=1.0, sampling_rate=drawn, steps=30).epsilon(1e-5) <= found.epsilon(1e-5)
    exact = dp_sgd(noise_multiplier=1.0, sampling_rate=0.1, steps=30).epsilon(1e-5)
    assert exact < found.epsilon(1e-5) < 1.0001 * exact
    layers = made_private(max_grad_norm=[1.0, 0.5], clipping="per_layer")
    assert engine_guarantee(*layers, steps=30, size_is_public=True).epsilon(1e-5) == found.epsilon(1e-5)


def test_ghost_clipping_of_opacus_is_refused():
    """A row of a text whose terms cancel adds ten times the clipping norm."""
    module = torch.nn.Linear(1, 1, bias=False)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*rows(100)), batch_size=10)
    ghost = {"criterion": torch.nn.MSELoss(), "grad_sample_mode": "ghost", "noise_multiplier": 1, "max_grad_norm": 1.0}
    made = opacus.PrivacyEngine(accountant="rdp").make_private(
        module=module, optimizer=descent(module.parameters()), data_loader=loader, **ghost
    )
    wrapped, optimizer, _, loader = made
    with pytest.raises(ArgumentError, match="ghost clipping of Opacus is refused"):
        engine_guarantee(optimizer, loader, steps=30, size_is_public=True)
    (wrapped(torch.full((1, 2, 1), 1e6)) * torch.tensor([[[1.0], [-(1 - 1e-5)]]])).sum().backward()
    clipped = float(module.weight.grad.abs()) * float(wrapped.get_clipping_coef())
    assert clipped > 9.0


ADAPTIVE = {
    "clipping": "adaptive",
    "target_unclipped_quantile": 0.5,
    "clipbound_learning_rate": 0.2,
    "max_clipbound": 2.0,
    "min_clipbound": 0.1,
    "unclipped_num_std": 5.0,
}


def test_the_loader_of_a_memory_manager_is_named():
    """Its batches are Poisson samples anyway: it is the loader of `make_private` that says at which rate."""
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    optimizer, loader = made_private()
    cut = BatchMemoryManager(data_loader=loader, max_physical_batch_size=2, optimizer=optimizer)
    with cut as cut_up, pytest.raises(ArgumentError, match="BatchMemoryManager"):
        engine_guarantee(optimizer, cut_up, steps=30, size_is_public=True)
    assert engine_guarantee(optimizer, loader, steps=30, size_is_public=True).epsilon(delta=1e-5) > 0.0


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"poisson_sampling": False}, "Poisson"),
        (ADAPTIVE, "adaptive clipping"),
        ({"noise_multiplier": 0.0}, "noise_multiplier"),
    ],
)
def test_an_engine_whose_training_has_no_such_guarantee(options, match):
    with pytest.raises(ArgumentError, match=match):
        engine_guarantee(*made_private(**options), steps=30, size_is_public=True)


def test_the_number_of_rows_must_be_declared_public():
    optimizer, loader = made_private()
    with pytest.raises(ArgumentError, match="size_is_public"):
        engine_guarantee(optimizer, loader, steps=30, size_is_public=False)
    with pytest.raises(TypeError, match="make_private"):
        engine_guarantee(optimizer.original_optimizer, loader, steps=30, size_is_public=True)
