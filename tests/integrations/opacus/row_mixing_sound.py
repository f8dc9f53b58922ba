"""Sound modules: no row reaches another one."""

import torch
from opacus.layers import DPGRU, DPLSTM, DPRNN, DPMultiheadAttention
from torch import nn
from torch.nn import functional as F

from tests.integrations.opacus.row_mixing_entries import (
    SOUND,
    Body,
    images,
    register,
    sequences,
    sound,
    words,
)

sound()(Body)


@sound()
def one_layer():
    return nn.Linear(4, 3)


@sound()
def with_dropout():
    return nn.Sequential(nn.Linear(4, 9), nn.Tanh(), nn.Dropout(0.5), nn.Linear(9, 3))


@sound()
def alpha_dropout():
    return nn.Sequential(nn.Linear(4, 9), nn.SELU(), nn.AlphaDropout(0.2), nn.Linear(9, 3))


@sound(images)
def dropout_of_channels():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Dropout2d(0.3), nn.Flatten(), nn.Linear(144, 3))


@sound()
class FunctionalDropout(Body):
    def mix(self, hidden):
        return F.dropout(hidden, 0.3, training=self.training)


@sound()
class NoiseAdded(Body):
    def mix(self, hidden):
        return hidden + 0.1 * torch.randn_like(hidden)


@sound()
class DepthDropped(Body):
    """Stochastic depth, one draw for the batch."""

    def mix(self, hidden):
        return hidden if torch.rand(()) < 0.5 else torch.relu(hidden)


@sound()
class RowsDropped(Body):
    """Stochastic depth, one draw a row."""

    def mix(self, hidden):
        return hidden * torch.empty(len(hidden), 1, dtype=hidden.dtype).bernoulli_(0.8)


@sound(images)
def convolutions():
    layers = nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4, 3)
    return nn.Sequential(*layers)


@sound(lambda: images(8, 4))
def grouped_convolutions():
    layers = nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.Conv2d(4, 8, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(8, 3))


@sound(lambda: sequences(4, 9))
def convolution_of_one_axis():
    return nn.Sequential(nn.Conv1d(4, 5, 3, dilation=2), nn.ReLU(), nn.Flatten(), nn.Linear(25, 3))


@sound(lambda: (torch.rand(20, 1, 4, 4, 4), torch.arange(20) % 3))
def convolution_of_three_axes():
    return nn.Sequential(nn.Conv3d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))


@sound(images)
def transposed_convolution():
    return nn.Sequential(nn.ConvTranspose2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(200, 3))


@sound(images)
def group_norm():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))


@sound(images)
def instance_norm():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.InstanceNorm2d(4, affine=True), nn.Flatten(), nn.Linear(144, 3))


@sound()
def layer_norm():
    return nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.GELU(), nn.Linear(6, 3))


@sound()
def rms_norm():
    return nn.Sequential(nn.Linear(4, 6), nn.RMSNorm(6), nn.SiLU(), nn.Linear(6, 3))


@sound()
class OwnRootMeanSquare(Body):
    """In float32 inside, as in language models."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(6, 6, bias=False)

    def mix(self, hidden):
        whole = hidden.float()
        return self.scale((whole * torch.rsqrt(whole.pow(2).mean(-1, keepdim=True) + 1e-6)).type_as(hidden))


class Recurrent(nn.Module):
    kind, settings = DPLSTM, {}

    def __init__(self):
        super().__init__()
        self.recurrent = self.kind(4, 6, batch_first=True, **self.settings)
        self.last = nn.Linear(12 if self.settings.get("bidirectional") else 6, 3)

    def forward(self, inputs):
        return self.last(self.recurrent(inputs)[0][:, -1])


for kind, settings in (
    *((DPLSTM, {}), (DPGRU, {}), (DPRNN, {})),
    *((DPLSTM, {"num_layers": 2, "dropout": 0.2}), (DPGRU, {"bidirectional": True})),
):
    label = f"{kind.__name__} {settings}"
    register(SOUND, sequences, name=label)(type(label, (Recurrent,), {"kind": kind, "settings": settings}))


@sound(sequences)
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = DPMultiheadAttention(4, 2, batch_first=True, dropout=0.1)
        self.norm, self.last = nn.LayerNorm(4), nn.Linear(4, 3)

    def forward(self, inputs):
        return self.last(self.norm(inputs + self.attention(inputs, inputs, inputs)[0]).mean(1))


@sound(sequences)
class ScaledAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.three, self.last = nn.Linear(4, 12), nn.Linear(4, 3)

    def forward(self, inputs):
        query, key, value = self.three(inputs).chunk(3, dim=-1)
        return self.last(F.scaled_dot_product_attention(query, key, value, is_causal=True).mean(1))


@sound(words)
class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(11, 6, padding_idx=0), nn.Linear(6, 3)

    def forward(self, inputs):
        mask = (inputs != 0).unsqueeze(-1)
        return self.last((self.words(inputs) * mask).sum(1) / mask.sum(1).clamp(min=1))


@sound(words)
class PaddingInTheMean(nn.Module):
    """Opacus gives padding a gradient, which is of that row anyway."""

    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(11, 6, padding_idx=0), nn.Linear(6, 3)

    def forward(self, inputs):
        return self.last(self.words(inputs).mean(1))


@sound(words)
class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places, self.last = nn.Embedding(11, 6), nn.Embedding(5, 6), nn.Linear(6, 3)

    def forward(self, inputs):
        places = torch.arange(inputs.shape[1]).expand_as(inputs)
        return self.last(torch.tanh(self.words(inputs) + self.places(places)).mean(1))


@sound(words)
class OneHot(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(55, 3)

    def forward(self, inputs):
        return self.last(F.one_hot(inputs, 11).to(self.last.weight.dtype).flatten(1))


@sound(lambda: ((torch.rand(20, 1, 6, 6) * 255).to(torch.uint8), torch.arange(20) % 3))
class BytesOfImages(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(36, 3)

    def forward(self, inputs):
        return self.last(inputs.to(self.last.weight.dtype).flatten(1) / 255.0)


@sound()
class Adapter(nn.Module):
    """Low rank beside a frozen layer; its second part starts at zero."""

    def __init__(self):
        super().__init__()
        self.frozen = nn.Linear(4, 3).requires_grad_(False)
        self.down, self.up = nn.Linear(4, 2, bias=False), nn.Linear(2, 3, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, inputs):
        return self.frozen(inputs) + self.up(self.down(inputs))


@sound(images)
def frozen_part():
    front = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU()).requires_grad_(False)
    return nn.Sequential(front, nn.Flatten(), nn.Linear(144, 3))


@sound()
def zeros():
    module = nn.Linear(4, 3)
    nn.init.zeros_(module.weight)
    nn.init.zeros_(module.bias)
    return module


@sound()
class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4), nn.GELU()) for _ in range(3))
        self.last = nn.Linear(4, 3)

    def forward(self, inputs):
        for block in self.blocks:
            inputs = inputs + block(inputs)
        return self.last(inputs)


@sound()
class LayerUsedThrice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.last = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, inputs):
        for _ in range(3):
            inputs = torch.tanh(self.layer(inputs))
        return self.last(inputs)


@sound()
class TiedWeights(nn.Module):
    """Two layers with one weight: Opacus adds their gradients."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3)
        self.second.weight = self.first.weight

    def forward(self, inputs):
        return self.last(torch.tanh(self.second(torch.tanh(self.first(inputs)))))


@sound()
class OwnParameter(nn.Module):
    """A module of one's own with a bare parameter: Opacus computes its gradients with vmap."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(4, 3) - 0.5)

    def forward(self, inputs):
        return torch.einsum("ni,ij->nj", inputs, self.weight)


@sound()
class Experts(nn.Module):
    """A mixture whose gate is of each row."""

    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(4, 2), nn.ModuleList(nn.Linear(4, 3) for _ in range(2))

    def forward(self, inputs):
        shares = self.gate(inputs).softmax(dim=1)
        return sum(shares[:, k : k + 1] * expert(inputs) for k, expert in enumerate(self.experts))


@sound(lambda: (torch.rand(20, 10), torch.arange(20) % 3))
class TwoInputs(nn.Module):
    """Two inputs side by side in one tensor."""

    def __init__(self):
        super().__init__()
        self.one, self.other, self.last = nn.Linear(6, 5), nn.Linear(4, 5), nn.Linear(5, 3)

    def forward(self, inputs):
        return self.last(torch.relu(self.one(inputs[:, :6])) * torch.sigmoid(self.other(inputs[:, 6:])))


@sound(sequences)
class TransposedAndBack(nn.Module):
    """Axes are exchanged where no parameter is."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, inputs):
        return self.last(torch.tanh(self.first(inputs)).transpose(0, 1).cumsum(0).mean(0))


@sound(sequences)
class StepsSorted(Body):
    def mix(self, hidden):
        return hidden.sort(dim=1).values.mean(1)


@sound()
class CallsCounted(Body):
    """A count of calls tells nothing of rows."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def mix(self, hidden):
        self.calls += 1
        return hidden


@sound()
class FrozenBatchNorm(Body):
    """Of another training: statistics and scale stay."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6).requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()
        return self

    def mix(self, hidden):
        return self.norm(hidden)


@sound()
class FixedScale(Body):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.full((6,), 0.5))

    def mix(self, hidden):
        return hidden * self.scale


@sound()
class NormalisedRows(Body):
    def mix(self, hidden):
        return F.normalize(hidden, dim=1)


@sound()
class PerRowNoisePermutation(Body):
    """Features are permuted, rows are not."""

    def mix(self, hidden):
        return hidden[:, torch.randperm(hidden.shape[1])]


@sound(lambda: (torch.rand(20, 4, dtype=torch.float64), torch.arange(20) % 3))
def in_doubles():
    return Body().double()
