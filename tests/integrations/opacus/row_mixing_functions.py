"""Mistakes in the shape of rows, and functions of hidden values that look at the whole batch."""

import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from tests.integrations.opacus.row_mixing_entries import (
    MISTAKES,
    Body,
    images,
    mistake,
    sequences,
    step,
)


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
