"""Sums of clipped gradients: against plain autograd row by row, in both modes, with rows that are not finite."""
# ruff: noqa: E402

import copy

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from dpselect.errors import ArgumentError
from dpselect.integrations.opacus.clipping import (
    MODES,
    clip_factors,
    clipped_sums,
    refuse_other_norms,
    without_row_gradients,
)
from dpselect.integrations.opacus.synthetic_rows import SyntheticRows

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore:Full backward hook")
LOSS = torch.nn.CrossEntropyLoss(reduction="none")
CLIP = 0.3
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def images():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3), torch.nn.GroupNorm(1, 3), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(48, 4)
    )


def words():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Embedding(9, 5),
        torch.nn.Linear(5, 6),
        torch.nn.LayerNorm(6),
        torch.nn.Flatten(),
        torch.nn.Linear(18, 4),
    )


NETWORKS = {
    "images": (images, lambda count: torch.randn(count, 1, 6, 6)),
    "words": (words, lambda count: torch.randint(0, 9, (count, 3))),
}


def row_by_row(module, inputs, targets, clip):
    """Clipped and summed in float64, one row after the other."""
    module = copy.deepcopy(module).double()
    totals = [torch.zeros_like(parameter) for parameter in module.parameters()]
    for k in range(len(inputs)):
        row = inputs[k : k + 1]
        module.zero_grad()
        LOSS(module(row.double() if row.is_floating_point() else row), targets[k : k + 1]).sum().backward()
        gradients = [parameter.grad for parameter in module.parameters()]
        norm = torch.stack([each.norm() for each in gradients]).norm()
        if norm.isfinite():
            for total, each in zip(totals, gradients, strict=True):
                total += each * (clip / norm).clamp(max=1.0)
    return totals


def found(mode, module, inputs, targets, clip=CLIP):
    module = copy.deepcopy(module).train()
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    return clipped_sums(mode, module, parameters, LOSS, clip)(inputs, targets)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("clip", [0.3, 1e9])
def test_sums_are_those_of_clipped_rows(mode, network, clip, device):
    make, draw = NETWORKS[network]
    module, inputs, targets = make().to(device), draw(5).to(device), torch.tensor([0, 1, 2, 3, 1], device=device)
    for one, other in zip(
        found(mode, module, inputs, targets, clip), row_by_row(module, inputs, targets, clip), strict=True
    ):
        tolerance = 1e-4 if device == "cpu" else 4e-3
        assert torch.allclose(one.double(), other, rtol=tolerance, atol=tolerance * float(other.abs().max()))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_a_row_that_is_not_finite_counts_zero(mode, value):
    module, inputs, targets = images(), torch.randn(4, 1, 6, 6), torch.tensor([0, 1, 2, 3])
    without = found(mode, module, inputs, targets)
    spoilt = torch.cat([inputs, torch.full((1, 1, 6, 6), value)]), torch.cat([targets, torch.tensor([1])])
    moved = sum(float((a - b).norm() ** 2) for a, b in zip(found(mode, module, *spoilt), without, strict=True)) ** 0.5
    assert moved <= CLIP * (1 + 1e-5)
    if value != 1e30:
        assert moved < 1e-6
    nothing = found(mode, module, spoilt[0][4:], spoilt[1][4:])
    assert all(bool(each.isfinite().all()) for each in nothing)


def test_factors():
    norms = torch.tensor([0.0, 0.1, 0.3, 3.0, float("nan"), float("inf")])
    factors = clip_factors(norms, 0.3)
    assert factors[[0, 1, 4, 5]].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert (factors * norms)[2:4].max() <= 0.3
    assert 0.0999 < factors[3] <= 0.1


class Tied(torch.nn.Module):
    """One matrix, used twice by hand."""

    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(4, 4)
        self.two = torch.nn.Linear(4, 4)
        self.two.weight = self.one.weight

    def forward(self, inputs):
        return self.two(torch.tanh(self.one(inputs)))


def test_norms_that_ghost_clipping_does_not_know_are_refused():
    rows = SyntheticRows(torch.randn(7, 4), torch.arange(7) % 4)
    refuse_other_norms(torch.nn.Linear(4, 4), LOSS, rows)
    with pytest.raises(ArgumentError, match="ghost clipping"):
        refuse_other_norms(Tied(), LOSS, rows)


def test_wrong_norms_of_a_layer_are_found(monkeypatch):
    """A mutation of Opacus's formula for linear layers, of one row by 2 %."""
    from opacus.grad_sample import GradSampleModuleFastGradientClipping as Ghost

    kept = Ghost.NORM_SAMPLERS[torch.nn.Linear]

    def wrong(layer, activations, backprops):
        norms = kept(layer, activations, backprops)
        return {parameter: norm * (1 + 0.02 * (torch.arange(len(norm)) == 3)) for parameter, norm in norms.items()}

    monkeypatch.setitem(Ghost.NORM_SAMPLERS, torch.nn.Linear, wrong)
    with pytest.raises(ArgumentError, match="not those of this module"):
        refuse_other_norms(torch.nn.Linear(4, 4), LOSS, SyntheticRows(torch.randn(7, 4), torch.arange(7) % 4))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_parameters_of_16_bits_are_refused(dtype):
    module = torch.nn.Linear(4, 4).to(dtype)
    with pytest.raises(ArgumentError, match="autocast"):
        clipped_sums("hooks", module, list(module.parameters()), LOSS, 1.0)


class Autocast(torch.nn.Linear):
    def forward(self, inputs):
        with torch.autocast(inputs.device.type, dtype=torch.bfloat16):
            return super().forward(inputs)


@pytest.mark.parametrize("device", DEVICES)
def test_bfloat16_inside_the_module(device):
    """By rows' gradients it stays within the clipping norm; by norms alone it is refused."""
    module, inputs = Autocast(4, 4).to(device), torch.randn(1, 4, device=device)
    targets = torch.tensor([1], device=device)
    sums = found("hooks", module, inputs, targets, 0.01)
    assert sum(float(each.double().norm() ** 2) for each in sums) ** 0.5 <= 0.01 * (1 + 1e-6)
    assert {each.dtype for each in sums} == {torch.float32}
    with pytest.raises(ArgumentError, match="autocast"):
        found("ghost", module, inputs, targets, 0.01)


@pytest.mark.parametrize("mode", MODES)
def test_nothing_raw_is_left(mode):
    module = torch.nn.Linear(4, 4).train()
    sums = clipped_sums(mode, module, list(module.parameters()), LOSS, 1.0)
    sums(torch.randn(3, 4), torch.arange(3))
    sums.remove()
    without_row_gradients(module)
    assert all(vars(parameter) == {} and parameter.grad is None for parameter in module.parameters())
    assert not module._forward_hooks
    assert not module._backward_hooks
