"""The gradients of a batch's rows, parameter by parameter: held, or as the products whose sum each of them is.

Opacus's hooks give the gradient of each row. Ghost clipping holds none for linear layers and embeddings. It keeps the
layer's inputs and the gradients of its outputs, which give the norm of each row's gradient and any weighted sum.

A row's gradient is a sum over its positions (the tokens of a text). If the terms cancel, float32 loses the sum: Opacus
computes 0 as the norm of a gradient of norm 10. So norms are computed in float64, and a share of the sum of the terms'
norms is added. It bounds the terms of the weighted sum, and with them its rounding.

Source: docs/theory/clipped-sums.md, Theorem 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

from dpselect.errors import ArgumentError, missing_extra

try:
    import torch
    from opacus.grad_sample import GradSampleModule
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

__all__ = ["EmbeddingGradients", "GhostModule", "HeldGradients", "LinearGradients", "RowGradients"]

CANCELLED: Final = 2.0**-8
"""The share of the terms' norms that counts in a norm. It adds 0.1 % to one of 128 orthogonal terms of one length."""


_GHOSTS: Final = (torch.nn.Linear, torch.nn.Embedding)


class RowGradients(Protocol):
    """The gradient of one parameter for each row."""

    def norms(self) -> Any:
        """At least the L2 norm of each row's gradient, shape (rows,). Not finite for a row that has none."""
        ...

    def weighted_sum(self, factors: Any, counted: Any) -> Any:
        """The sum of the rows' gradients, each times its factor.

        Args:
            factors: shape (rows,).
            counted: whether a row counts at all, shape (rows,). None: all do.
        """
        ...


@dataclass(frozen=True, eq=False)
class HeldGradients:
    """Gradients of shape (rows, size)."""

    values: Any

    def norms(self) -> Any:
        """The L2 norms."""
        return torch.linalg.vector_norm(self.values, dim=1)

    def weighted_sum(self, factors: Any, counted: Any) -> Any:
        """One product of a vector and a matrix."""
        return factors.to(self.values.dtype) @ _counted(self.values, counted)


@dataclass(frozen=True, eq=False)
class LinearGradients:
    """Of a linear layer's matrix: a row's gradient is the sum over positions of output gradient times input.

    Args:
        outputs: gradients of the outputs, shape (rows, positions, outputs).
        inputs: shape (rows, positions, inputs).
    """

    outputs: Any
    inputs: Any

    def norms(self) -> Any:
        """By the products of positions, in float64."""
        outputs, inputs = self.outputs.double(), self.inputs.double()
        lengths = torch.linalg.vector_norm(outputs, dim=2) * torch.linalg.vector_norm(inputs, dim=2)
        if lengths.shape[1] == 1:
            return lengths[:, 0]
        squares = ((outputs @ outputs.mT) * (inputs @ inputs.mT)).sum(dim=(1, 2))
        return _with_margin(squares, lengths)

    def weighted_sum(self, factors: Any, counted: Any) -> Any:
        """One product of matrices, over all rows and positions."""
        outputs = _scaled(self.outputs, factors, counted)
        return outputs.flatten(0, 1).mT @ _counted(self.inputs, counted).flatten(0, 1)


@dataclass(frozen=True, eq=False)
class EmbeddingGradients:
    """Of an embedding: a row's gradient adds the output gradient of each position to the vector of its index.

    Args:
        outputs: gradients of the outputs, shape (rows, positions, width).
        indices: shape (rows, positions).
        size: the number of vectors.
    """

    outputs: Any
    indices: Any
    size: int

    def norms(self) -> Any:
        """By the sums for each index of a row, in float64."""
        outputs = self.outputs.double()
        rows = torch.arange(len(outputs), device=outputs.device)
        pairs, place = torch.unique((rows[:, None] * self.size + self.indices).flatten(), return_inverse=True)
        sums = outputs.new_zeros((len(pairs), outputs.shape[2])).index_add_(0, place, outputs.flatten(0, 1))
        squares = outputs.new_zeros(len(outputs)).index_add_(0, pairs // self.size, sums.square().sum(dim=1))
        return _with_margin(squares, torch.linalg.vector_norm(outputs, dim=2))

    def weighted_sum(self, factors: Any, counted: Any) -> Any:
        """As torch's backward pass adds them up."""
        outputs = _scaled(self.outputs, factors, counted).contiguous()
        return torch.ops.aten.embedding_dense_backward(outputs, self.indices, self.size, -1, False)


def _with_margin(squares: Any, lengths: Any) -> Any:
    """Norms by their squares and by the norms of the terms, shape (rows, positions), that the gradients add up."""
    return torch.hypot(squares.clamp(min=0.0).sqrt(), CANCELLED * lengths.sum(dim=1))


def _scaled(outputs: Any, factors: Any, counted: Any) -> Any:
    return _counted(outputs, counted) * factors.to(outputs.dtype)[:, None, None]


def _counted(values: Any, counted: Any) -> Any:
    """The values, with zeros for rows that do not count: zero times infinity is no zero."""
    if counted is None:
        return values
    return torch.where(counted.view(-1, *[1] * (values.dim() - 1)), values, torch.zeros_like(values))


class GhostModule(GradSampleModule):  # type: ignore[misc]
    """A module with Opacus's hooks, which hold no gradients of rows for linear layers and embeddings.

    A layer that is called several times in a batch, or shares a parameter, has its gradients held. So has one whose
    gradient is smaller than the products of its positions.
    """

    def __init__(self, module: Any) -> None:
        super().__init__(module, loss_reduction="sum")
        self.ghosts: dict[Any, RowGradients] = {}
        """By parameter: of the latest batch."""

    def capture_backprops_hook(
        self, module: Any, _forward_input: Any, forward_output: Any, loss_reduction: str, batch_first: bool
    ) -> None:
        """Take the gradients of a layer's outputs, in the backward pass."""
        outputs = forward_output[0].detach()
        if not self.hooks_enabled or not _has_ghost(module, outputs):
            super().capture_backprops_hook(module, _forward_input, forward_output, loss_reduction, batch_first)
            return
        given, outputs = self.rearrange_grad_samples(
            module=module, backprops=outputs, loss_reduction=loss_reduction, batch_first=batch_first
        )
        del module.max_batch_len
        for parameter in _trained(module):
            parameter._forward_counter -= 1
            self.ghosts[parameter] = _ghost(module, parameter, given[0], outputs.to(parameter.dtype))


def _trained(module: Any) -> list[Any]:
    return [parameter for parameter in module.parameters(recurse=False) if parameter.requires_grad]


def _has_ghost(module: Any, outputs: Any) -> bool:
    """Whether the layer is a linear one or an embedding, and its parameters were used once."""
    known = {module.weight, getattr(module, "bias", None)} if type(module) in _GHOSTS else set()
    for each in _trained(module):
        if each not in known or each._forward_counter != 1 or hasattr(each, "_current_grad_sample"):
            return False
    if type(module) is torch.nn.Linear:
        positions = outputs[0, ..., 0].numel() if len(outputs) and outputs.dim() > 1 else 0
        return positions >= 1 and (positions == 1 or positions**2 <= module.weight.numel())
    return type(module) is torch.nn.Embedding and len(outputs) > 0 and len(module.activations[-1][0].shape) > 0


def _ghost(module: Any, parameter: Any, given: Any, outputs: Any) -> RowGradients:
    """The gradients of a layer's parameter, from the layer's input and the gradients of its outputs."""
    if outputs.device.type == "mps":
        raise ArgumentError('grad_sample_mode: ghost clipping needs float64, which mps has not. Use "hooks"')
    rows = len(outputs)
    outputs = outputs.reshape(rows, -1, outputs.shape[-1])
    if type(module) is torch.nn.Embedding:
        return EmbeddingGradients(outputs, given.reshape(rows, -1), len(parameter))
    if parameter is module.weight:
        return LinearGradients(outputs, given.reshape(rows, -1, given.shape[-1]).to(outputs.dtype))
    return HeldGradients(outputs.sum(dim=1))
