"""A second round of mistakes and sound models, as they are found in real trainings. None is like those before."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.integrations.opacus.row_mixing_entries import (
    EACH,
    MISTAKES,
    SOUND,
    Body,
    images,
    mistake,
    sequences,
    sound,
    step,
    vectors,
    words,
)


def normalised_over_rows(hidden):
    return F.layer_norm(hidden.T, (len(hidden),)).T if len(hidden) > 1 else hidden


def whitened(hidden):
    centred = hidden - hidden.mean(0)
    values, axes = torch.linalg.eigh(centred.T @ centred / len(hidden) + 1e-2 * torch.eye(6, dtype=hidden.dtype))
    return centred @ axes / values.sqrt()


def low_rank(hidden):
    left, values, right = torch.linalg.svd(hidden, full_matrices=False)
    return left[:, :2] @ torch.diag(values[:2]) @ right[:2]


def gumbel_over_rows(hidden):
    return hidden * F.gumbel_softmax(hidden, dim=0)


def quantised_by_the_batch(hidden):
    scale = hidden.detach().abs().max() / 7
    return hidden + ((hidden / scale).round() * scale - hidden).detach()


def renormalised_dropout(hidden):
    mask = (torch.rand_like(hidden) < 0.8).to(hidden.dtype)
    return hidden * mask / mask.mean().clamp(min=0.01)


def nearest_centre(hidden):
    return torch.cat([hidden[:, :3], -(hidden[:, 3:] - hidden[:, 3:].mean(0)).pow(2)], dim=1)


def resampled(hidden):
    return hidden[torch.multinomial(torch.ones(len(hidden)), len(hidden), replacement=True)]


class CentredGradient(torch.autograd.Function):
    """Backwards only."""

    @staticmethod
    def forward(context, hidden):
        return hidden.clone()

    @staticmethod
    def backward(context, gradient):
        return gradient - gradient.mean(0)


def centred_gradients(hidden):
    return CentredGradient.apply(hidden)


for each in (
    *(normalised_over_rows, whitened, low_rank, gumbel_over_rows, quantised_by_the_batch, renormalised_dropout),
    *(nearest_centre, resampled, centred_gradients),
):
    step(MISTAKES, each)


@mistake()
class ExpertCapacity(Body):
    """A mixture of experts in which each expert takes so many rows, and the others pass it by."""

    def mix(self, hidden):
        chosen = hidden[:, :2].argmax(dim=1)
        place = torch.stack([(chosen[: k + 1] == chosen[k]).sum() for k in range(len(chosen))])
        return hidden * (place <= 2)[:, None]


@mistake()
class CodesThatFollow(Body):
    """The codes of a vector quantisation move to the rows that chose them."""

    def __init__(self):
        super().__init__()
        self.register_buffer("codes", torch.linspace(-1, 1, 4)[:, None].repeat(1, 6))

    def mix(self, hidden):
        codes = self.codes.to(hidden.dtype)
        nearest = torch.cdist(hidden.detach(), codes).argmin(1)
        found = codes[nearest]
        moved = codes.clone()
        moved[nearest] = 0.9 * moved[nearest] + 0.1 * hidden.detach()
        self.codes = moved
        return hidden + (found - hidden).detach()


@mistake()
class BankOfTheClass(Body):
    """Kept on the class, which no copy of the module has to itself."""

    bank = 0.0

    def mix(self, hidden):
        hidden = hidden + type(self).bank
        type(self).bank = float(hidden.detach().mean())
        return hidden


@mistake()
class MemoOfADefault(Body):
    def mix(self, hidden, memo=[0.0]):  # noqa: B006
        hidden = hidden * (1.0 + memo[0])
        memo[0] = float(hidden.detach().abs().mean())
        return hidden


@mistake(words)
class EmptyColumnsDropped(nn.Module):
    """The mean is over positions that some row of the batch has."""

    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(11, 6), nn.Linear(6, 3)

    def forward(self, inputs):
        return self.last(self.words(inputs).sum(1) / (inputs != 0).any(0).sum().clamp(min=1))


@mistake()
class CentredWhenLarge(Body):
    def forward(self, inputs):
        return super().forward(inputs - inputs.mean(0) if bool(inputs.abs().max() > 50) else inputs)


@mistake(lambda: sequences(5, 4))
class FlattenedAttention(nn.Module):
    """One attention over all tokens of all rows."""

    def __init__(self):
        super().__init__()
        self.three, self.last = nn.Linear(4, 12), nn.Linear(4, 3)

    def forward(self, inputs):
        query, key, value = self.three(inputs).flatten(0, 1).chunk(3, dim=-1)
        found = F.scaled_dot_product_attention(query[None], key[None], value[None])[0]
        return self.last(found.reshape(inputs.shape).mean(1))


def loss_mistake(function):
    MISTAKES[function.__name__] = lambda: (Body, function, *vectors())


@loss_mistake
def smoothed_to_the_batch(outputs, targets):
    known = F.one_hot(targets, 3).to(outputs.dtype)
    return -((0.9 * known + 0.1 * known.mean(0)) * outputs.log_softmax(1)).sum(1)


@loss_mistake
def targets_mixed_up(outputs, targets):
    return 0.8 * EACH(outputs, targets) + 0.2 * EACH(outputs, targets.flip(0))


@loss_mistake
def load_balanced(outputs, targets):
    return EACH(outputs, targets) + outputs.softmax(1).mean(0).pow(2).sum()


@loss_mistake
def small_losses_only(outputs, targets):
    losses = EACH(outputs, targets)
    return torch.where(losses <= losses.median(), losses, torch.zeros_like(losses))


# sound


@sound(images)
class SqueezeAndExcite(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution, self.down, self.up = nn.Conv2d(1, 4, 3), nn.Linear(4, 2), nn.Linear(2, 4)
        self.last = nn.Linear(4, 3)

    def forward(self, inputs):
        found = self.convolution(inputs)
        shares = torch.sigmoid(self.up(torch.relu(self.down(found.mean(dim=(2, 3))))))
        return self.last((found * shares[:, :, None, None]).mean(dim=(2, 3)))


@sound(images)
class SmallUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle = nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.up, self.last = nn.ConvTranspose2d(4, 2, 2, stride=2), nn.Conv2d(3, 3, 1)

    def forward(self, inputs):
        low = torch.relu(self.down(inputs))
        high = self.up(low + torch.relu(self.middle(low)))
        return self.last(torch.cat([high, inputs], dim=1)).mean(dim=(2, 3))


@sound(sequences)
class DeepSet(nn.Module):
    def __init__(self):
        super().__init__()
        self.each, self.last = nn.Linear(4, 6), nn.Linear(12, 3)

    def forward(self, inputs):
        found = torch.relu(self.each(inputs))
        return self.last(torch.cat([found.sum(1), found.amax(1)], dim=1))


@sound(sequences)
class RotaryAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.three, self.last = nn.Linear(4, 12), nn.Linear(4, 3)

    def forward(self, inputs):
        angles = torch.arange(inputs.shape[1], dtype=inputs.dtype)[:, None]

        def turned(x):
            a, b = x.chunk(2, dim=-1)
            return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=-1)

        query, key, value = self.three(inputs).chunk(3, dim=-1)
        chances = (turned(query) @ turned(key).mT / 2.0).softmax(-1)
        return self.last((chances @ value).mean(1))


@sound()
class Highway(Body):
    def __init__(self):
        super().__init__()
        self.gate, self.inner = nn.Linear(6, 6), nn.Linear(6, 6)

    def mix(self, hidden):
        gate = torch.sigmoid(self.gate(hidden))
        return gate * torch.relu(self.inner(hidden)) + (1.0 - gate) * hidden


@sound()
class Maxout(Body):
    def mix(self, hidden):
        return hidden.reshape(-1, 3, 2).amax(2).repeat(1, 2)


@sound()
class FourierFeatures(Body):
    def __init__(self):
        super().__init__(width=8)
        self.register_buffer("waves", torch.linspace(-2, 2, 16).reshape(4, 4))

    def forward(self, inputs):
        angles = inputs @ self.waves.to(inputs.dtype)
        return super().forward(torch.cat([angles.sin(), angles.cos()], dim=1))


@sound(lambda: sequences(4, 9))
class CausalConvolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution, self.last = nn.Conv1d(4, 5, 3), nn.Linear(5, 3)

    def forward(self, inputs):
        return self.last(torch.relu(self.convolution(F.pad(inputs, (2, 0))))[:, :, -1])


@sound()
class FactorisationMachine(nn.Module):
    def __init__(self):
        super().__init__()
        self.factors, self.last = nn.Linear(4, 6, bias=False), nn.Linear(7, 3)

    def forward(self, inputs):
        found = self.factors(inputs)
        pairs = (
            found.pow(2).sum(1, keepdim=True) - (inputs.pow(2) @ self.factors.weight.detach().T.pow(2)).sum(1)[:, None]
        )
        return self.last(torch.cat([found, pairs], dim=1))


@sound(lambda: (torch.rand(20, 2, 4), torch.arange(20) % 3))
class TwoViewsOfARow(nn.Module):
    def __init__(self):
        super().__init__()
        self.each, self.last = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, inputs):
        one, other = torch.tanh(self.each(inputs)).unbind(1)
        return self.last((one - other).abs())


@sound()
def learned_slopes():
    return nn.Sequential(nn.Linear(4, 6), nn.PReLU(6), nn.Linear(6, 3))


@sound(words)
class AttentionPooling(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.ask, self.last = nn.Embedding(11, 6), nn.Linear(6, 1), nn.Linear(6, 3)

    def forward(self, inputs):
        found = self.words(inputs)
        asked = self.ask(found).squeeze(-1).masked_fill(inputs == 0, -1e4)
        return self.last((asked.softmax(1)[:, None] @ found).squeeze(1))


@sound()
class NoiseOfEachRow(Body):
    def mix(self, hidden):
        return hidden * (1.0 + 0.1 * torch.randn(len(hidden), 1, dtype=hidden.dtype))


@sound(images)
def responses_normalised():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.LocalResponseNorm(2), nn.Flatten(), nn.Linear(144, 3))


@sound()
class CosineHead(nn.Module):
    """Directions of classes, as in recognition of faces."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 3, bias=False)

    def forward(self, inputs):
        return 4.0 * self.last(F.normalize(self.first(inputs), dim=1))


def sound_loss(function):
    SOUND[function.__name__] = lambda: (Body, function, *vectors())


@sound_loss
def triplet_of_a_row(outputs, targets):
    return F.relu(outputs[:, 0] - outputs[:, 1] + 0.5) + EACH(outputs, targets)


@sound_loss
def confident(outputs, targets):
    chances = outputs.softmax(1)
    return EACH(outputs, targets) - 0.1 * (chances * outputs.log_softmax(1)).sum(1)
