"""Modules with mistakes: what they keep, share or tie between rows."""

import torch
from opacus.layers import DPGRU, DPLSTM, DPMultiheadAttention
from torch import nn
from torch.nn import functional as F

from tests.integrations.opacus.row_mixing_entries import (
    Body,
    images,
    mistake,
    sequences,
    words,
)


@mistake()
def centred_inputs():
    class Centred(Body):
        def forward(self, inputs):
            return super().forward(inputs - inputs.mean(dim=0))

    return Centred()


@mistake()
def batch_norm():
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 3))


@mistake()
def batch_norm_without_parameters():
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6, affine=False, track_running_stats=False), nn.Linear(6, 3))


@mistake()
class FunctionalBatchNorm(Body):
    def mix(self, hidden):
        return F.batch_norm(hidden, None, None, training=self.training)


@mistake()
class RunningMean(Body):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(6))

    def mix(self, hidden):
        self.mean = 0.9 * self.mean + 0.1 * hidden.detach().mean(dim=0)
        return hidden


@mistake()
class RowsCounted(Body):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    def mix(self, hidden):
        self.seen += len(hidden)
        return hidden


@mistake()
class LastInputsKept(Body):
    """In an attribute, from which it leaves with the pickled module."""

    def mix(self, hidden):
        self.cached = hidden.detach()
        return hidden


@mistake()
class ListKept(Body):
    def __init__(self):
        super().__init__()
        self.history = []

    def mix(self, hidden):
        self.history.append(float(hidden.detach().sum()))
        return hidden


@mistake()
class HiddenStateKept(Body):
    def __init__(self):
        super().__init__()
        self.state = torch.zeros(6)

    def mix(self, hidden):
        hidden = hidden + self.state.to(hidden.dtype)
        self.state = hidden.detach().mean(dim=0)
        return hidden


@mistake()
class CountUsed(Body):
    """The module changes from call to call."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def mix(self, hidden):
        self.calls += 1
        return hidden / self.calls


@mistake()
class InitialisedByRows(Body):
    def __init__(self):
        super().__init__()
        self.scale, self.ready = nn.Parameter(torch.ones(6)), False

    def mix(self, hidden):
        if not self.ready:
            self.scale.data, self.ready = 1.0 / (hidden.detach().std(dim=0) + 0.1), True
        return hidden * self.scale


@mistake(sequences)
class RecurrentOnAxis0(nn.Module):
    """`batch_first` forgotten: rows are taken for time."""

    def __init__(self):
        super().__init__()
        self.recurrent, self.last = DPLSTM(4, 6), nn.Linear(6, 3)

    def forward(self, inputs):
        return self.last(self.recurrent(inputs)[0][:, -1])


@mistake(sequences)
class AttentionOnAxis0(nn.Module):
    """`batch_first` forgotten: rows attend to rows."""

    def __init__(self):
        super().__init__()
        self.attention, self.last = DPMultiheadAttention(4, 2), nn.Linear(4, 3)

    def forward(self, inputs):
        return self.last(self.attention(inputs, inputs, inputs)[0].mean(1))


@mistake(sequences)
class TorchsAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.last = nn.MultiheadAttention(4, 2), nn.Linear(4, 3)

    def forward(self, inputs):
        return self.last(self.attention(inputs, inputs, inputs)[0].mean(1))


@mistake(sequences)
class StateCarried(nn.Module):
    """The recurrent state of the last batch begins the next."""

    def __init__(self):
        super().__init__()
        self.recurrent, self.last, self.state = DPGRU(4, 6, batch_first=True), nn.Linear(6, 3), None

    def forward(self, inputs):
        begin = None if self.state is None else self.state.mean(1, keepdim=True).expand(-1, len(inputs), -1)
        found, state = self.recurrent(inputs, None if begin is None else begin.contiguous())
        self.state = state.detach()
        return self.last(found[:, -1])


@mistake()
class ParameterOutside(Body):
    """A parameter that reaches the loss past the module it is of."""

    def forward(self, inputs):
        return F.linear(super().forward(inputs), self.last.weight @ self.last.weight.T)


@mistake()
class WeightUsedTwice(nn.Module):
    """Opacus sees the layer's own call alone."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.last = nn.Linear(4, 3)

    def forward(self, inputs):
        return self.last(self.inner(inputs) @ self.inner[0].weight)


@mistake()
class TwoViews(Body):
    """Siamese: two views of each row in one batch of twice the size."""

    def forward(self, inputs):
        one, other = super().forward(torch.cat([inputs, inputs.flip(1)])).chunk(2)
        return one * other


@mistake()
class Unused(Body):
    def __init__(self):
        super().__init__()
        self.forgotten = nn.Linear(2, 2)


@mistake()
class FrozenButUsedByRows(Body):
    """What mixes has no parameters of its own."""

    def __init__(self):
        super().__init__()
        self.first.requires_grad_(False)

    def mix(self, hidden):
        return hidden - hidden.mean(dim=0)


@mistake()
def spectral_norm():
    return nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 6)), nn.Linear(6, 3))


@mistake()
class FailsOnOneRow(Body):
    def forward(self, inputs):
        return super().forward(inputs).squeeze()


@mistake()
class GhostBatches(Body):
    def mix(self, hidden):
        return torch.cat([part - part.mean(dim=0) for part in hidden.split(4)])


@mistake()
class LargeBatchesOnly(Body):
    def mix(self, hidden):
        return hidden - hidden.mean(dim=0) if len(hidden) > 12 else hidden


@mistake()
class InTrainingOnly(Body):
    def mix(self, hidden):
        return hidden - hidden.mean(dim=0) if self.training else hidden


@mistake()
class StartsAtZero(Body):
    """At the first step nothing can be seen of what mixes."""

    def __init__(self):
        super().__init__()
        self.share = nn.Linear(6, 6, bias=False)
        nn.init.zeros_(self.share.weight)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.first.weight)
        nn.init.zeros_(self.first.bias)

    def mix(self, hidden):
        return hidden + self.share(hidden.mean(dim=0, keepdim=True).expand_as(hidden))


@mistake(words)
class WordsCentred(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(11, 6), nn.Linear(6, 3)

    def forward(self, inputs):
        found = self.words(inputs).mean(1)
        return self.last(found - found.mean(0))


@mistake()
class HalvedByAnEmptyRow(Body):
    """Some row of zeros, which stands for padding, changes the scale of all."""

    def forward(self, inputs):
        return super().forward(inputs * (0.5 if (inputs == 0).all(1).any() else 1.0))


@mistake(words)
class WordsHalvedByAnEmptyRow(nn.Module):
    """The same with indices."""

    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(11, 6), nn.Linear(6, 3)

    def forward(self, inputs):
        found = self.words(inputs).mean(1)
        return self.last(found * (0.5 if (inputs == 0).all(1).any() else 1.0))


@mistake(images)
class NormOfBatch2d(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution, self.last = nn.Conv2d(1, 4, 3), nn.Linear(4, 3)

    def forward(self, inputs):
        found = self.convolution(inputs)
        found = found / found.std(dim=(0, 2, 3), keepdim=True)
        return self.last(found.mean(dim=(2, 3)))


@mistake(words)
class CutToTheLongest(nn.Module):
    """Steps beyond the longest row of the batch are left out, and the mean is over what is left."""

    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(11, 6), nn.Linear(6, 3)

    def forward(self, inputs):
        return self.last(self.words(inputs[:, : int((inputs != 0).sum(1).max())]).mean(1))


@mistake()
class FilledWithTheMean(Body):
    """Missing numbers become the mean of the batch's."""

    def forward(self, inputs):
        return super().forward(torch.where(inputs.isnan(), inputs.nanmean(dim=0), inputs))


@mistake()
class RepeatsDropped(Body):
    """Of equal rows all but the first count nothing."""

    def mix(self, hidden):
        _, places = torch.unique(hidden, dim=0, return_inverse=True)
        first = torch.tensor([k == 0 or places[k] not in places[:k] for k in range(len(places))])
        return hidden * first[:, None]


@mistake()
class GradientsScaledTogether(Body):
    """A hook that divides gradients by the length of all of the batch's."""

    def mix(self, hidden):
        hidden.register_hook(lambda gradient: gradient / (gradient.norm() + 1e-3))
        return hidden
