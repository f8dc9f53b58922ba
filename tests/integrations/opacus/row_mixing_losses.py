"""Losses: mistakes in which a row reaches the loss of others, and sound ones."""

import torch
from torch.nn import functional as F

from tests.integrations.opacus.row_mixing_entries import (
    EACH,
    MISTAKES,
    SOUND,
    Body,
    vectors,
)


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
