"""Sums of clipped gradients: against plain autograd row by row, by every rule, and with rows made to break them."""
# ruff: noqa: E402

import copy
import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from dpselect.errors import ArgumentError
from dpselect.integrations.opacus.clipping import (
    CLIPPINGS,
    MODES,
    ClippedSums,
    clipping_rule,
    refuse_other_norms,
    without_row_gradients,
)
from dpselect.integrations.opacus.row_gradients import HeldGradients, LinearGradients
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


def row_by_row(module, inputs, targets, clip, clipping="flat"):
    """Clipped and summed in float64, one row after the other."""
    module = copy.deepcopy(module).double()
    totals = [torch.zeros_like(parameter) for parameter in module.parameters()]
    for k in range(len(inputs)):
        row = inputs[k : k + 1]
        module.zero_grad()
        LOSS(module(row.double() if row.is_floating_point() else row), targets[k : k + 1]).sum().backward()
        gradients = [parameter.grad for parameter in module.parameters()]
        norms = [float(each.norm()) for each in gradients]
        norm = math.hypot(*norms)
        if math.isfinite(norm):
            for total, each, own in zip(totals, gradients, norms, strict=True):
                if clipping == "per_layer":
                    total += each * min(1.0, clip / math.sqrt(len(totals)) / own)
                else:
                    total += each * (clip / (norm + 0.01) if clipping == "automatic" else min(1.0, clip / norm))
    return totals


def hung(mode, module, clip=CLIP, clipping="flat", loss=LOSS):
    """A copy of the module in training, and what gives its sums."""
    module = copy.deepcopy(module).train()
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    return module, ClippedSums(mode, module, parameters, loss, clipping_rule(clipping, clip))


def found(mode, module, inputs, targets, clip=CLIP, clipping="flat", loss=LOSS):
    return hung(mode, module, clip, clipping, loss)[1](inputs, targets)


def distance(sums, others):
    return math.hypot(*(float((one.double() - other.double()).norm()) for one, other in zip(sums, others, strict=True)))


def length(sums):
    return distance(sums, [torch.zeros_like(each) for each in sums])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("clipping", CLIPPINGS)
@pytest.mark.parametrize("clip", [0.3, 1e9])
def test_sums_are_those_of_clipped_rows(mode, network, clip, clipping, device):
    make, draw = NETWORKS[network]
    module, inputs, targets = make().to(device), draw(5).to(device), torch.tensor([0, 1, 2, 3, 1], device=device)
    for one, other in zip(
        found(mode, module, inputs, targets, clip, clipping),
        row_by_row(module, inputs, targets, clip, clipping),
        strict=True,
    ):
        tolerance = 1e-4 if device == "cpu" else 4e-3
        assert torch.allclose(one.double(), other, rtol=tolerance, atol=tolerance * float(other.abs().max()))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("clipping", CLIPPINGS)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_a_row_that_is_not_finite_counts_zero(mode, clipping, value):
    module, inputs, targets = images(), torch.randn(4, 1, 6, 6), torch.tensor([0, 1, 2, 3])
    without = found(mode, module, inputs, targets, clipping=clipping)
    spoilt = torch.cat([inputs, torch.full((1, 1, 6, 6), value)]), torch.cat([targets, torch.tensor([1])])
    moved = distance(found(mode, module, *spoilt, clipping=clipping), without)
    assert moved <= CLIP * (1 + 1e-5)
    if value != 1e30:
        assert moved < 1e-6
    nothing = found(mode, module, spoilt[0][4:], spoilt[1][4:], clipping=clipping)
    assert all(bool(each.isfinite().all()) for each in nothing)


class Sums(torch.nn.Module):
    """Layers whose gradients are what a row chooses: input times target, for each position, and sums of targets."""

    def __init__(self):
        super().__init__()
        self.words, self.matrix = torch.nn.Embedding(3, 4), torch.nn.Linear(4, 5)

    def forward(self, rows):
        places = (rows[:, :, 0].abs() > 1.0).long()
        return torch.cat([self.words(places), self.matrix(rows)], dim=2)


def chosen(outputs, targets):
    return (outputs * targets).sum(dim=(1, 2))


def adversaries(count, seed=0):
    """Rows of all sizes, whose terms cancel or not, beside rows that give nothing or far too much."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(count, 8, 4, generator=generator).repeat_interleave(2, dim=1)
    targets = torch.randn(count, 16, 9, generator=generator)
    targets[::3, 1::2] = -targets[::3, ::2] * (1 + 10.0 ** -torch.randint(2, 8, (1, 8, 1), generator=generator))
    rows *= 10.0 ** torch.randint(-12, 13, (count, 1, 1), generator=generator)
    targets *= 10.0 ** torch.randint(-12, 13, (count, 1, 1), generator=generator)
    return rows, targets


@pytest.mark.theorem("docs/theory/clipped-sums.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.theorem("docs/theory/clipped-sums.md, Theorem 2", exact=True, sharp=True)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("clipping", [*CLIPPINGS, "norms"])
def test_one_row_moves_the_sum_by_at_most_the_clipping_norm(mode, clipping):
    """Also if it is replaced by another, by twice that. A row in the direction of the clipped ones attains it."""
    rule = ("per_layer", [0.1, 0.2, 0.1]) if clipping == "norms" else (clipping, CLIP)
    bound = math.hypot(0.1, 0.2, 0.1) if clipping == "norms" else CLIP
    _, sums = hung(mode, Sums(), rule[1], rule[0], chosen)
    rows, targets = adversaries(24)
    alone = [sums(rows[k : k + 1], targets[k : k + 1]) for k in range(len(rows))]
    assert max(length(each) for each in alone) <= bound * (1 + 1e-6)
    assert max(length(each) for each in alone) >= bound * 0.99  # a bound of 1 % less fails
    opposite = [distance(sums(rows[k : k + 1], -targets[k : k + 1]), each) for k, each in enumerate(alone)]
    assert bound * 1.98 <= max(opposite) <= 2 * bound * (1 + 1e-6)
    for k in range(8):  # rounding of float32 in company: a few millionths of the norm for each row
        kept = [j for j in range(8) if j != k]
        moved = distance(sums(rows[:8], targets[:8]), sums(rows[kept], targets[kept]))
        assert moved <= bound * (1 + 1e-4)


@pytest.mark.theorem("docs/theory/clipped-sums.md, Theorem 2", exact=True)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("clipping", CLIPPINGS)
def test_terms_that_cancel_hide_no_norm(mode, clipping):
    """Opacus 1.6 computes the norm 0 for this gradient of norm 10, and adds ten times the clipping norm."""
    matrix = torch.nn.Linear(20, 20, bias=False)
    rows, targets = torch.zeros(1, 2, 20), torch.zeros(1, 2, 20)
    rows[..., 0], targets[0, :, 0] = 1e6, torch.tensor([1.0, -(1 - 1e-5)])
    assert length(found(mode, matrix, rows, targets, 1.0, clipping, chosen)) <= 1.0
    words = torch.nn.Embedding(20, 20)
    targets[0, :, 0] = torch.tensor([1e8, -1e8 + 8])
    places = torch.zeros(1, 2, dtype=torch.long)
    assert length(found(mode, words, places, targets, 1.0, clipping, chosen)) <= 1.0


def test_products_beyond_float32_are_measured():
    """The squares of 1e-23 and of 1e19 are no numbers of float32. Their product is."""
    matrix = torch.nn.Linear(2, 2, bias=False)
    for mode in MODES:
        one = found(mode, matrix, torch.full((1, 1, 2), 1e-23), torch.full((1, 1, 2), 1e19), 1e-6, loss=chosen)
        assert 0.99e-6 <= length(one) <= 1e-6


def test_factors():
    norms = torch.tensor([0.0, 0.1, 0.3, 3.0, float("nan"), float("inf"), 1e30])
    (factors,) = clipping_rule("flat", 0.3).factors([norms])
    assert factors[[0, 1, 4, 5, 6]].tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert (factors * norms.double())[2:4].max() <= 0.3
    assert 0.0999 < factors[3] <= 0.1
    (factors,) = clipping_rule("automatic", 0.3).factors([norms])
    assert factors[0] == pytest.approx(30.0)
    assert (factors * norms.double())[:4].max() < 0.3


def test_bounds_of_layers():
    rule = clipping_rule("per_layer", 1.0)
    assert math.hypot(*rule.bounds(7)) <= rule.sensitivity == 1.0
    rule = clipping_rule("per_layer", [0.3, 0.4])
    assert rule.bounds(2) == [0.3, 0.4]
    assert 0.5 <= rule.sensitivity <= 0.5 * (1 + 1e-14)
    one, other = rule.factors([torch.tensor([3.0, 0.1]), torch.tensor([0.1, float("nan")])])
    assert one.tolist() == pytest.approx([0.1, 0.0], rel=1e-4)
    assert other.tolist() == [1.0, 0.0]
    with pytest.raises(ArgumentError, match="one for each trained parameter tensor: the module has 3, got 2"):
        hung("hooks", Sums(), [0.3, 0.4], "per_layer")


@pytest.mark.parametrize(
    ("clipping", "norm", "match"),
    [
        ("adaptive", 1.0, "Adaptive clipping has no price"),
        ("flat", [1.0, 1.0], "give several with"),
        ("per_layer", [], "got none"),
        ("per_layer", [1.0, 0.0], "max_grad_norm"),
        ("flat", 1e-25, "max_grad_norm"),
        ("automatic", float("inf"), "max_grad_norm"),
    ],
)
def test_rules_that_are_refused(clipping, norm, match):
    with pytest.raises(ArgumentError, match=match):
        clipping_rule(clipping, norm)


class Tied(torch.nn.Module):
    """One matrix, used twice by hand."""

    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(4, 4)
        self.two = torch.nn.Linear(4, 4)
        self.two.weight = self.one.weight

    def forward(self, inputs):
        return self.two(torch.tanh(self.one(inputs)))


class Twice(torch.nn.Module):
    """One layer, called twice."""

    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(4, 4)

    def forward(self, inputs):
        return self.one(torch.tanh(self.one(inputs)))


class Frozen(torch.nn.Module):
    """Only the bias of one layer is trained, and only the matrix of the other."""

    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.one.weight.requires_grad_(False)
        self.two.bias.requires_grad_(False)

    def forward(self, inputs):
        return self.two(torch.tanh(self.one(inputs)))


class Scaled(torch.nn.Linear):
    """A layer of another kind, with a further parameter."""

    def __init__(self):
        super().__init__(4, 4)
        self.scale = torch.nn.Parameter(torch.ones(4))

    def forward(self, inputs):
        return super().forward(inputs) * self.scale


@pytest.mark.parametrize("make", [Tied, Twice, Frozen, Scaled])
def test_ghost_clipping_of_other_layers(make):
    torch.manual_seed(2)
    module, rows = make(), SyntheticRows(torch.randn(7, 4), torch.arange(7) % 4)
    refuse_other_norms(module, LOSS, rows)
    hooks, ghost = (found(mode, module, rows.inputs, rows.targets) for mode in MODES)
    assert distance(hooks, ghost) <= 1e-5


@pytest.mark.parametrize("share", [0.98, 1.02])
@pytest.mark.parametrize("what", ["norms", "weighted_sum"])
def test_wrong_ghosts_are_found(monkeypatch, what, share):
    """Mutations by 2 %. A norm that is too large only clips more."""
    kept = getattr(LinearGradients, what)
    monkeypatch.setattr(LinearGradients, what, lambda *given: kept(*given) * share)
    rows = SyntheticRows(torch.randn(7, 4), torch.arange(7) % 4)
    if (what, share) == ("norms", 1.02):
        refuse_other_norms(torch.nn.Linear(4, 4), LOSS, rows)
        return
    with pytest.raises(ArgumentError, match="not those of this module"):
        refuse_other_norms(torch.nn.Linear(4, 4), LOSS, rows)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_parameters_of_16_bits_are_refused(dtype):
    with pytest.raises(ArgumentError, match="autocast"):
        hung("hooks", torch.nn.Linear(4, 4).to(dtype))


class Autocast(torch.nn.Linear):
    def forward(self, inputs):
        with torch.autocast(inputs.device.type, dtype=torch.bfloat16):
            return super().forward(inputs)


class AutocastInside(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, inputs):
        with torch.autocast(inputs.device.type, dtype=torch.bfloat16):
            return self.linear(inputs)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("module", [Autocast(4, 4), AutocastInside()])
def test_bfloat16_inside_the_module(mode, module, device):
    inputs, targets = torch.randn(1, 4, device=device), torch.tensor([1], device=device)
    sums = found(mode, module.to(device), inputs, targets, 0.01)
    assert 0.0099 <= length(sums) <= 0.01 * (1 + 1e-6)
    assert {each.dtype for each in sums} == {torch.float32}


def test_products_are_not_rounded_by_a_setting(monkeypatch):
    """A weaker precision of matrix products rounds each row by up to one part in 256, on some processors."""
    seen = []
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "medium")
    monkeypatch.setattr(torch, "set_float32_matmul_precision", seen.append)
    kept = HeldGradients.weighted_sum
    monkeypatch.setattr(HeldGradients, "weighted_sum", lambda *given: (seen.append("product"), kept(*given))[1])
    found("hooks", torch.nn.Linear(4, 4, bias=False), torch.randn(3, 4), torch.arange(3))
    assert seen == ["highest", "product", "medium"]


@pytest.mark.parametrize("mode", MODES)
def test_nothing_raw_is_left(mode):
    module, sums = hung(mode, torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Flatten()))
    sums(torch.randn(3, 4), torch.arange(3))
    assert sums._ghosts == {}
    sums.remove()
    without_row_gradients(module)
    assert all(vars(parameter) == {} and parameter.grad is None for parameter in module.parameters())
    assert not any(layer._forward_hooks or layer._backward_hooks for layer in module.modules())
