"""Sums of clipped per-row gradients, exact in fixed point and without ever storing one row's gradient.

A layer's gradient for one row is an outer product of what enters the layer and of the error behind it. So its norm is
the product of two vector norms (Goodfellow 2015), and scaling the error vector scales the gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpselect.learners.fixed_point import STEP, exact_products, round_weights, truncate
from dpselect.numerics.search import Array
from dpselect.randomness import RandomSource

__all__ = [
    "MOST_ACTIVATION",
    "HiddenLayerNetwork",
    "LinearRegression",
    "LogisticRegression",
    "Model",
    "SoftmaxRegression",
    "clipped_gradient_sum",
    "softmax_errors",
]

Weights = tuple[Array, ...]

MOST_ACTIVATION = 16.0
_MOST_ERROR = 8.0
_MOST_LOGIT = 40.0
"""Beyond it an error is 0 or 1 in fixed point."""


@dataclass(frozen=True)
class Layer:
    """The inputs of a layer and the errors behind it, one row of each for a row of data. Both are multiples of STEP."""

    inputs: Array
    errors: Array


@dataclass(frozen=True)
class SoftmaxRegression:
    """Linear scores, one weight vector a class. `features` counts the constant column. Rows have norm <= sqrt(2)."""

    features: int
    classes: int

    def initial(self, random: RandomSource) -> Weights:  # noqa: ARG002
        """Zeros."""
        return (np.zeros((self.features, self.classes)),)

    def scores(self, weights: Weights, rows: Array) -> Array:
        """Shape (rows, classes)."""
        return exact_products(rows, weights[0])

    def layers(self, weights: Weights, rows: Array, numbers: NDArray[np.intp]) -> tuple[Layer, ...]:
        """The factors of every row's gradient of the cross-entropy."""
        return (Layer(rows, softmax_errors(self.scores(weights, rows), numbers)),)


@dataclass(frozen=True)
class LogisticRegression(SoftmaxRegression):
    """Softmax regression of two classes, trained in one column: each step moves the two weight vectors by -g and g.

    Claim: let one run train both columns with the bound C, and another the second alone with C / sqrt(2). Then the
    difference of both weight vectors has the same distribution. That difference alone decides the predictions.

    Proof: a row's gradient in softmax regression is (-g, g), of norm sqrt(2) |g|. It is clipped at C if and only if |g|
    is clipped at C / sqrt(2). Let S be the sum of the clipped g. With noise of standard deviation s C on each number
    the difference of the columns moves by the rate times (2 S plus noise of sqrt(2) s C). Here both move by the rate
    times (S plus noise of s C / sqrt(2)) in opposite directions, so the difference moves by the same. That holds with
    momentum and for averages too, which are linear. QED

    The noise on the sum of both columns is left out, because no prediction depends on it.
    """

    def layers(self, weights: Weights, rows: Array, numbers: NDArray[np.intp]) -> tuple[Layer, ...]:
        """The factors of every row's gradient of the cross-entropy by the second column."""
        both = weights[0]
        reached = np.clip(exact_products(rows, both[:, 1:] - both[:, :1]), -_MOST_LOGIT, _MOST_LOGIT)
        return (Layer(rows, truncate(1.0 / (1.0 + np.exp(-reached)) - numbers[:, None])),)


@dataclass(frozen=True)
class HiddenLayerNetwork:
    """One hidden layer (tanh, or relu clipped at 16) and linear scores. Both layers have a constant input."""

    features: int
    classes: int
    hidden_units: int
    activation: Literal["tanh", "relu"]

    def initial(self, random: RandomSource) -> Weights:
        """Gaussian hidden weights of variance 1/features and a zero output layer: no data in them."""
        first = random.normal((self.features, self.hidden_units)) * math.sqrt(2.0 / self.features)
        return first, np.zeros((self.hidden_units + 1, self.classes))

    def _hidden(self, weights: Weights, rows: Array) -> Array:
        reached = exact_products(rows, weights[0])
        active = np.tanh(reached) if self.activation == "tanh" else np.clip(reached, 0.0, MOST_ACTIVATION)
        return np.hstack([truncate(active), np.ones((len(rows), 1))])

    def _output_weights(self, weights: Weights) -> Array:
        largest = 1.0 if self.activation == "tanh" else MOST_ACTIVATION
        return round_weights(weights[1], largest * self.hidden_units + 2.0)

    def scores(self, weights: Weights, rows: Array) -> Array:
        """Shape (rows, classes)."""
        return np.asarray(self._hidden(weights, rows) @ self._output_weights(weights))

    def layers(self, weights: Weights, rows: Array, numbers: NDArray[np.intp]) -> tuple[Layer, ...]:
        """The factors of every row's gradient, first layer first. Back-propagated errors are clipped at 8."""
        hidden, output_weights = self._hidden(weights, rows), self._output_weights(weights)
        errors = softmax_errors(hidden @ output_weights, numbers)
        active = hidden[:, :-1]
        inside = (active > 0.0) & (active < MOST_ACTIVATION)
        slope = 1.0 - active * active if self.activation == "tanh" else inside
        back = np.clip((errors @ output_weights[:-1].T) * slope, -_MOST_ERROR, _MOST_ERROR)
        return Layer(rows, truncate(back)), Layer(hidden, errors)


Model = SoftmaxRegression | HiddenLayerNetwork


def softmax_errors(scores: Array, numbers: NDArray[np.intp]) -> Array:
    """p - e in fixed point, p the softmax of the scores. The exponentials are on a grid so that their sum is exact.

    Classes are few, so that one column after the other is quicker than a reduction of each row.
    """
    largest = reduce(np.maximum, scores.T)[:, None]
    powers = truncate(np.exp(scores - largest), 2.0**-32)
    errors = powers / reduce(np.add, powers.T)[:, None]
    errors[np.arange(len(numbers)), numbers] -= 1.0
    return truncate(errors)


@dataclass(frozen=True)
class LinearRegression:
    """One number from a row, with half the square of its error as loss. `features` counts the constant column."""

    features: int

    def initial(self, random: RandomSource) -> Weights:  # noqa: ARG002
        """Zeros."""
        return (np.zeros((self.features, 1)),)

    def layers(self, weights: Weights, rows: Array, targets: Array) -> tuple[Layer, ...]:
        """The factors of every row's gradient. Errors are clipped at 8. Targets are multiples of STEP."""
        errors = exact_products(rows, weights[0]) - targets[:, None]
        return (Layer(rows, truncate(np.clip(errors, -_MOST_ERROR, _MOST_ERROR))),)


def clipped_gradient_sum(
    layers: tuple[Layer, ...],
    clip_norm: float,
    step: float,
    counted: Array | None = None,
    squares: Array | None = None,
) -> tuple[NDArray[np.int64], ...]:
    """Sum over the rows of (gradient scaled to norm at most `clip_norm`), in whole multiples of STEP * `step`.

    `counted`, shape (rows,), is what each scaled gradient is multiplied by, from 0 to 1. `squares`, shape (rows,), are
    the squared norms of the first layer's inputs, which are computed if they are not given.

    Claim: the real-number norm over all layers of each row's term is at most `clip_norm`, it depends on that row and
    the weights only, and the sum is exact. Hence adding or removing a row moves the sum by at most `clip_norm`.

    Proof: all factors are multiples of powers of two with few enough bits, so products and their sums over up to 2**20
    rows are exact (`fixed_point`). The squared norms are exact sums too, and what follows them is done to each number
    by itself. The clipping factor is shrunk by 2**-40, more than the rounding of its few operations, and truncation
    towards zero shortens the error vector further.
    """
    known = [None if squares is None else squares[:, None], *(None for _ in layers[1:])]
    lengths = sum(
        (_squares(layer.inputs) if inputs is None else inputs) * _squares(layer.errors)
        for layer, inputs in zip(layers, known, strict=True)
    )
    factor = clip_norm / np.maximum(np.sqrt(lengths), clip_norm) * (1.0 - 2.0**-40)
    if counted is not None:
        factor = factor * counted[:, None]
    clipped = (layer.inputs.T @ truncate(layer.errors * factor, step) for layer in layers)
    return tuple((total / (STEP * step)).astype(np.int64) for total in clipped)


def _squares(vectors: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", vectors, vectors)[:, None])
