"""Gradients of rows as products: their norms and sums against those that are held, and what has none."""
# ruff: noqa: E402

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from dpselect.errors import ArgumentError
from dpselect.integrations.opacus.row_gradients import (
    CANCELLED,
    EmbeddingGradients,
    GhostModule,
    HeldGradients,
    LinearGradients,
    _ghost,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore:Full backward hook")
FACTORS = torch.tensor([0.5, 1.0, 0.0, 0.25], dtype=torch.float64)
COUNTED = torch.tensor([True, True, False, True])


def linear(positions, seed=1):
    generator = torch.Generator().manual_seed(seed)
    outputs, inputs = (torch.randn(4, positions, width, generator=generator) for width in (5, 6))
    return LinearGradients(outputs, inputs), torch.einsum("npo,npi->noi", outputs, inputs), outputs, inputs


def embedding(seed=1):
    generator = torch.Generator().manual_seed(seed)
    outputs, places = torch.randn(4, 7, 5, generator=generator), torch.randint(0, 3, (4, 7), generator=generator)
    held = torch.zeros(4, 9, 5)
    for row in range(4):
        held[row].index_add_(0, places[row], outputs[row])
    return EmbeddingGradients(outputs, places, 9), held, outputs, torch.ones(4, 7, 1)


@pytest.mark.parametrize("made", [linear(1), linear(2), linear(9), embedding()], ids=["1", "2", "9", "embedding"])
def test_products_are_the_gradients(made):
    """A norm is above the gradient's by the share of its terms exactly, and nothing else."""
    ghost, held, outputs, inputs = made
    terms = (outputs.double().norm(dim=2) * inputs.double().norm(dim=2)).sum(dim=1)
    exact = held.double().flatten(1).norm(dim=1)
    share = 0.0 if outputs.shape[1] == 1 else CANCELLED
    assert torch.allclose(ghost.norms(), torch.hypot(exact, share * terms), rtol=1e-6)
    assert bool((ghost.norms() >= exact * (1 - 1e-7)).all())
    assert bool((ghost.norms() >= share * terms).all())
    expected = torch.einsum("n,n...->...", FACTORS.float(), held)
    assert torch.allclose(ghost.weighted_sum(FACTORS, None), expected, atol=1e-6)
    plain = HeldGradients(held.flatten(1))
    assert torch.allclose(plain.weighted_sum(FACTORS, None).view_as(expected), expected, atol=1e-6)
    assert torch.allclose(plain.norms().double(), exact)


@pytest.mark.parametrize("make", [lambda: linear(1), lambda: linear(9), embedding])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_row_that_does_not_count_adds_nothing(make, value):
    ghost, held, outputs, _ = make()
    outputs[2] = value
    expected = torch.einsum("n,n...->...", FACTORS.float()[COUNTED], held[COUNTED])
    assert torch.allclose(ghost.weighted_sum(FACTORS, COUNTED), expected, atol=1e-6)
    assert ghost.norms().isfinite().tolist() == COUNTED.tolist()


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.small, self.wide = torch.nn.Embedding(9, 6), torch.nn.Linear(6, 2), torch.nn.Linear(6, 30)
        self.norm, self.again = torch.nn.LayerNorm(6), torch.nn.Linear(6, 6)

    def forward(self, places):
        rows = self.again(self.again(self.norm(self.words(places))))
        return torch.cat([self.small(rows), self.wide(rows)], dim=2).sum(dim=(1, 2))


def test_which_layers_hold_gradients():
    """Those of which a row's gradient is small, those that are called twice, and other kinds."""
    module = Layers().train()
    hooked = GhostModule(module)
    hooked(torch.randint(0, 9, (3, 5))).sum().backward()
    names = {name for name, parameter in module.named_parameters() if parameter in hooked.ghosts}
    assert names == {"words.weight", "wide.weight", "wide.bias"}
    assert isinstance(hooked.ghosts[module.wide.bias], HeldGradients)
    held = {name for name, parameter in module.named_parameters() if parameter.grad_sample is not None}
    assert held == {name for name, _ in module.named_parameters()} - names
    assert all(parameter._forward_counter == 0 for parameter in module.parameters())
    hooked.remove_hooks()


def test_a_device_without_float64_is_named():
    class Elsewhere:
        device = torch.device("mps")

    with pytest.raises(ArgumentError, match="mps"):
        _ghost(torch.nn.Linear(2, 2), None, None, Elsewhere())
