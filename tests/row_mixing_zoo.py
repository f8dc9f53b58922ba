"""Modules and losses for private training: sound ones, and public mistakes in which a row reaches other rows.

Each entry makes (make_module, loss, inputs, targets). The rows stand for a user's; the probe sees their shapes alone.
"""

import random

import numpy as np
import torch
from opacus.layers import DPGRU, DPLSTM, DPRNN, DPMultiheadAttention
from torch import nn
from torch.nn import functional as F

EACH = nn.CrossEntropyLoss(reduction="none")
SOUND, MISTAKES = {}, {}


def vectors(width=4, classes=3):
    return torch.rand(20, width), torch.arange(20) % classes


def sequences(steps=5, width=4):
    return torch.rand(20, steps, width), torch.arange(20) % 3


def images(size=8, channels=1):
    return torch.rand(20, channels, size, size), torch.arange(20) % 3


def words(steps=5, size=11):
    return torch.arange(20 * steps).reshape(20, steps) % size, torch.arange(20) % 3


def register(zoo, data=vectors, loss=EACH, name=None):
    """Put a module class, a function of a batch or a maker of modules into a zoo."""

    def put(make):
        zoo[name or make.__name__] = lambda: (make, loss, *data())
        return make

    return put


def sound(*args, **settings):
    return register(SOUND, *args, **settings)


def mistake(*args, **settings):
    return register(MISTAKES, *args, **settings)


class Body(nn.Module):
    """A linear layer before and after `mix`."""

    def __init__(self, width=4, hidden=6, outputs=3):
        super().__init__()
        self.first, self.last = nn.Linear(width, hidden), nn.Linear(hidden, outputs)

    def mix(self, hidden):
        return hidden

    def forward(self, inputs):
        return self.last(self.mix(torch.tanh(self.first(inputs))))


def step(zoo, function, data=vectors):
    """A body whose hidden values go through a function of the whole batch."""
    kind = type(function.__name__, (Body,), {"mix": lambda self, hidden: function(hidden)})
    register(zoo, data)(kind)


# mistakes of modules


@mistake(lambda: sequences(50, 4))
class Transposed(nn.Module):
    """The example of the findings: rows on axis 1."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, inputs):
        return self.linear(inputs.transpose(0, 1)).mean(0)


@mistake(sequences)
class StepsFolded(nn.Module):
    """Every time step a row of its own for the linear layer."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, inputs):
        return self.linear(inputs.reshape(-1, 4)).reshape(len(inputs), -1, 3).mean(1)


@mistake(lambda: images(8, 3))
class ChannelsFolded(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution, self.last = nn.Conv2d(1, 2, 3), nn.Linear(6, 3)

    def forward(self, inputs):
        found = self.convolution(inputs.reshape(-1, 1, 8, 8)).mean(dim=(2, 3))
        return self.last(found.reshape(len(inputs), -1))


@mistake()
class PairsFolded(Body):
    """Two rows become one."""

    def forward(self, inputs):
        return super().forward(inputs.reshape(-1, 2, 4).sum(1)).repeat_interleave(2, dim=0)


@mistake(sequences)
class ReshapedForTransposed(Body):
    """`reshape(steps, rows)` where `transpose` was meant."""

    def mix(self, hidden):
        rows, steps, width = hidden.shape
        return hidden.reshape(steps, rows, width).mean(0)


def centred(hidden):
    return hidden - hidden.mean(dim=0)


def standardised(hidden):
    return (hidden - hidden.mean(dim=0)) / (hidden.std(dim=0, unbiased=False) + 1e-3)


def softmax_of_axis_0(hidden):
    return hidden.softmax(dim=0)


def sorted_rows(hidden):
    return hidden.sort(dim=0).values


def cumulated(hidden):
    return hidden.cumsum(dim=0)


def flipped(hidden):
    return hidden.flip(0)


def rolled(hidden):
    return hidden.roll(1, dims=0)


def shuffled(hidden):
    return hidden[torch.randperm(len(hidden))]


def rarely_shuffled(hidden):
    return hidden[torch.randperm(len(hidden))] if torch.rand(1) < 0.1 else hidden


def largest(hidden):
    return hidden / hidden.abs().max()


def clipped_by_the_batch(hidden):
    return hidden / hidden.norm().clamp(min=1.0)


def quantile(hidden):
    return hidden - hidden.quantile(0.9, dim=0)


def median_of_batch(hidden):
    return hidden - hidden.median(dim=0).values


def ranked(hidden):
    return hidden * hidden.argsort(dim=0).argsort(dim=0)


def attention_across(hidden):
    return torch.softmax(hidden @ hidden.T, dim=1) @ hidden


def einsum_over_rows(hidden):
    return torch.einsum("ni,mj->nj", hidden, hidden)


def einsum_gram(hidden):
    return torch.einsum("ni,nj,mj->mi", hidden, hidden, hidden)


def mixed_up(hidden):
    return 0.7 * hidden + 0.3 * hidden[torch.randperm(len(hidden))]


def mixed_by_beta(hidden):
    share = np.random.beta(0.4, 0.4)  # noqa: NPY002
    return share * hidden + (1 - share) * hidden.flip(0)


def pooled_over_rows(hidden):
    return hidden + F.adaptive_avg_pool1d(hidden.T, 1).T


def first_row_added(hidden):
    return hidden + hidden[:1]


def detached_mean(hidden):
    return hidden * (1.0 + hidden.detach().mean())


def nearest_neighbour(hidden):
    far = torch.cdist(hidden, hidden) + 1e6 * torch.eye(len(hidden), dtype=hidden.dtype)
    return hidden + hidden[far.argmin(dim=1)]


def divided_by_the_number(hidden):
    return hidden / len(hidden)


def masked_across(hidden):
    """The mask makes zeros of other rows' numbers, not of what is not finite."""
    return torch.eye(len(hidden), dtype=hidden.dtype) @ hidden


def shared_noise(hidden):
    return hidden + random.random() * hidden.mean(dim=0)


for each in (
    *(centred, standardised, softmax_of_axis_0, sorted_rows, cumulated, flipped, rolled, shuffled, rarely_shuffled),
    *(largest, clipped_by_the_batch, quantile, median_of_batch, ranked, attention_across, einsum_over_rows),
    *(einsum_gram, mixed_up, mixed_by_beta, pooled_over_rows, first_row_added, detached_mean, nearest_neighbour),
    *(divided_by_the_number, masked_across, shared_noise),
):
    step(MISTAKES, each)


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


# mistakes of losses


def loss_mistake(function):
    MISTAKES[function.__name__] = lambda: (Body, function, *vectors())
    return function


@loss_mistake
def mean_inside(outputs, targets):
    return F.cross_entropy(outputs, targets)


@loss_mistake
def mean_repeated(outputs, targets):
    return F.cross_entropy(outputs, targets).expand(len(outputs))


@loss_mistake
def divided_by_the_batch(outputs, targets):
    return EACH(outputs, targets) / len(outputs)


@loss_mistake
def in_batch_negatives(outputs, targets):
    return F.cross_entropy(outputs @ outputs.T, torch.arange(len(outputs)), reduction="none")


@loss_mistake
def supervised_contrast(outputs, targets):
    alike = (targets[:, None] == targets[None, :]).to(outputs.dtype)
    chances = F.log_softmax(F.normalize(outputs, dim=1) @ F.normalize(outputs, dim=1).T, dim=1)
    return -(alike * chances).sum(1) / alike.sum(1)


@loss_mistake
def wrong_axis(outputs, targets):
    return -outputs.log_softmax(dim=0).gather(1, targets[:, None])[:, 0]


@loss_mistake
def weighted_by_the_batch(outputs, targets):
    counts = torch.bincount(targets, minlength=3).to(outputs.dtype)
    return EACH(outputs, targets) / counts[targets]


@loss_mistake
def weights_normalised(outputs, targets):
    weights = EACH(outputs, targets).detach()
    return EACH(outputs, targets) * weights / weights.sum()


@loss_mistake
def hardest_only(outputs, targets):
    losses = EACH(outputs, targets)
    return losses * (losses >= losses.max())


@loss_mistake
def decorrelated(outputs, targets):
    centred = outputs - outputs.mean(dim=0)
    return EACH(outputs, targets) + (centred.T @ centred).pow(2).sum()


@loss_mistake
def pairs_ranked(outputs, targets):
    return F.relu(1.0 - outputs[:, 0] + outputs[:, 0].flip(0))


@loss_mistake
def broadcast(outputs, targets):
    """(rows, 1) against (rows,) makes every pair of rows."""
    return F.mse_loss(outputs[:, :1], targets.to(outputs.dtype), reduction="none").mean(1)


class QueueOfNegatives:
    def __init__(self):
        self.queue = torch.zeros(4, 3)

    def __call__(self, outputs, targets):
        losses = EACH(outputs, targets) + (outputs @ self.queue.T.to(outputs.dtype)).logsumexp(1)
        self.queue = torch.cat([self.queue, outputs.detach().float()])[-4:]
        return losses


class MovingScale:
    """Divides by a mean of earlier losses."""

    def __init__(self):
        self.mean = 1.0

    def __call__(self, outputs, targets):
        losses = EACH(outputs, targets)
        self.mean = 0.9 * self.mean + 0.1 * float(losses.detach().mean())
        return losses / self.mean


class KeepsLosses:
    """Changes nothing, and keeps them."""

    def __init__(self):
        self.history = []

    def __call__(self, outputs, targets):
        losses = EACH(outputs, targets)
        self.history.append(losses.detach())
        return losses


for each in (QueueOfNegatives, MovingScale, KeepsLosses):
    MISTAKES[each.__name__] = lambda each=each: (Body, each(), *vectors())


# sound modules


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
    """Opacus gives padding a gradient, which is of that row all the same."""

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


def sound_loss(data=vectors, outputs=3):
    def put(function):
        SOUND[function.__name__] = lambda: (lambda: Body(outputs=outputs), function, *data())
        return function

    return put


def numbers(outputs=1):
    return lambda: (torch.rand(20, 4), torch.rand(20, outputs).squeeze(1))


@sound_loss(numbers(), 1)
def squared(outputs, targets):
    return (outputs[:, 0] - targets).pow(2)


@sound_loss(numbers(), 1)
def huber(outputs, targets):
    return F.huber_loss(outputs[:, 0], targets, reduction="none")


@sound_loss(numbers(), 1)
def binary(outputs, targets):
    return F.binary_cross_entropy_with_logits(outputs[:, 0], targets, reduction="none")


@sound_loss(numbers(), 1)
def binary_of_chances(outputs, targets):
    return F.binary_cross_entropy(torch.sigmoid(outputs[:, 0]), targets, reduction="none")


@sound_loss(numbers(), 1)
def poisson(outputs, targets):
    return F.poisson_nll_loss(outputs[:, 0], targets, reduction="none")


@sound_loss(numbers(3), 3)
def several_numbers(outputs, targets):
    return (outputs - targets).pow(2).mean(dim=1)


@sound_loss(numbers(), 2)
def gaussian(outputs, targets):
    return -torch.distributions.Normal(outputs[:, 0], outputs[:, 1].exp()).log_prob(targets)


@sound_loss()
def focal(outputs, targets):
    losses = EACH(outputs, targets)
    return (1.0 - torch.exp(-losses)).pow(2) * losses


@sound_loss()
def smoothed(outputs, targets):
    return F.cross_entropy(outputs, targets, label_smoothing=0.1, reduction="none")


@sound_loss()
def class_weights(outputs, targets):
    weights = torch.tensor([1.0, 2.0, 3.0], dtype=outputs.dtype)
    return F.cross_entropy(outputs, targets, weight=weights, reduction="none")


@sound_loss()
def margin(outputs, targets):
    return F.multi_margin_loss(outputs, targets, reduction="none")


@sound_loss(lambda: (torch.rand(20, 4), torch.rand(20, 3) < 0.5))
def several_labels(outputs, targets):
    return F.binary_cross_entropy_with_logits(outputs, targets.to(outputs.dtype), reduction="none").sum(1)


@sound_loss(lambda: (torch.rand(20, 4), torch.rand(20, 4)))
def autoencoder(outputs, targets):
    return (outputs.repeat(1, 2)[:, :4] - targets).abs().sum(1)


OTHERWISE_IN_ENGINES = frozenset(
    {"batch_norm", "TorchsAttention", "spectral_norm", "mean_inside", "mean_repeated", "KeepsLosses"}
)
"""Refused by `make_private` itself; right where the loss is a mean; or hidden in the function that makes a mean."""
