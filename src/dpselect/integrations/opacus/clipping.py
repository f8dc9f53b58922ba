"""Sums of clipped gradients, one batch at a time: by each row's gradient, or by its norm alone (ghost clipping).

Each row's gradient is scaled to an L2 norm of at most `max_grad_norm`, over all parameters together, and the rows are
summed. A row whose gradient is not finite counts as zero.

Ghost clipping never holds the rows' gradients: a first backward pass gives their norms, and a second one the gradient
of the losses, each weighted by its factor (I. Goodfellow, arXiv 1510.01799, for linear layers). Opacus has the formulas
of the other layers, and `refuse_other_norms` compares them on synthetic rows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from dpselect.errors import ArgumentError, missing_extra
from dpselect.integrations.opacus.synthetic_rows import SyntheticRows

try:
    import torch
    from opacus.grad_sample import GradSampleModule
    from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import GradSampleModuleFastGradientClipping
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

__all__ = ["MODES", "ClippedSums", "clipped_sums", "refuse_other_norms", "without_row_gradients"]

MODES: Final = ("hooks", "ghost")
"""Names as in Opacus (`grad_sample_mode`)."""
_WIDER: Final = 1.0 + 2.0**-16
"""Covers the rounding of a norm in float32."""
_WIDER_ON_DEVICES: Final = 1.0 + 2.0**-9
"""Covers products that a device rounds to ten bits (TF32), one of a gradient and one of its factor."""
_AGREE: Final = 1e-4
_PROBED: Final = 7


class ClippedSums(Protocol):
    """A module in training that gives sums of clipped gradients."""

    def __call__(self, inputs: Any, targets: Any) -> list[Any]:
        """For each parameter the sum over the batch's rows, of the parameter's shape."""
        ...

    def remove(self) -> None:
        """Take off the module what was hung on it."""
        ...


def clipped_sums(
    mode: str, module: Any, parameters: Sequence[Any], loss: Callable[..., Any], max_grad_norm: float
) -> ClippedSums:
    """Hang on a module what gives the sums.

    Raises:
        ArgumentError: for a module that Opacus cannot give per-sample gradients of, or parameters of 16 bits.
    """
    for parameter in parameters:
        if parameter.dtype not in (torch.float32, torch.float64):
            raise ArgumentError(
                f"make_module: parameters of {parameter.dtype} are refused: sums of clipped gradients round there by "
                "more than the noise covers. Keep parameters in float32, and use torch.autocast in forward"
            )
    kind = _RowNorms if mode == "ghost" else _RowGradients
    return kind(module, parameters, loss, max_grad_norm)


class _RowGradients:
    """By the gradient of each row, which Opacus's hooks compute."""

    def __init__(self, module: Any, parameters: Sequence[Any], loss: Callable[..., Any], max_grad_norm: float) -> None:
        self._module = GradSampleModule(module, loss_reduction="sum")
        self._parameters, self._loss, self._norm = parameters, loss, max_grad_norm

    def __call__(self, inputs: Any, targets: Any) -> list[Any]:
        row_losses(self._loss, self._module(inputs), targets, len(inputs)).sum().backward()
        gradients = [self._gradients(parameter, len(inputs)) for parameter in self._parameters]
        norms = torch.stack([torch.linalg.vector_norm(each, dim=1) for each in gradients])
        factors = clip_factors(torch.linalg.vector_norm(norms, dim=0), self._norm)
        finite = factors > 0.0
        if not bool(finite.all()):
            gradients = [torch.where(finite[:, None], each, torch.zeros_like(each)) for each in gradients]
        sums = [
            (factors.to(each.dtype) @ each).view_as(parameter)
            for parameter, each in zip(self._parameters, gradients, strict=True)
        ]
        clear_gradients(self._module)
        return sums

    def _gradients(self, parameter: Any, rows: int) -> Any:
        found = getattr(parameter, "grad_sample", None)
        if not isinstance(found, torch.Tensor) or len(found) != rows:
            raise ArgumentError("make_module: a parameter has not one gradient for each row of a batch")
        return found.reshape(rows, -1).to(parameter.dtype)

    def remove(self) -> None:
        self._module.remove_hooks()


class _RowNorms:
    """By the norm of each row's gradient, and a second backward pass (ghost clipping)."""

    def __init__(self, module: Any, parameters: Sequence[Any], loss: Callable[..., Any], max_grad_norm: float) -> None:
        self._module = GradSampleModuleFastGradientClipping(
            module, loss_reduction="sum", max_grad_norm=max_grad_norm, use_ghost_clipping=True
        )
        self._parameters, self._loss, self._norm = parameters, loss, max_grad_norm
        self._hooks = [layer.register_forward_hook(_refuse_16_bits) for layer in module.modules()]

    def norms(self, inputs: Any, targets: Any) -> tuple[Any, Any]:
        """Losses and the norms of their gradients, each of shape (rows,)."""
        losses = row_losses(self._loss, self._module(inputs), targets, len(inputs))
        losses.sum().backward(retain_graph=True)
        norms = self._module.get_norm_sample().detach()
        if norms.shape != losses.shape:
            raise ArgumentError("make_module: a parameter has not one gradient for each row of a batch")
        return losses, norms

    def __call__(self, inputs: Any, targets: Any) -> list[Any]:
        losses, norms = self.norms(inputs, targets)
        factors = clip_factors(norms, self._norm)
        clear_gradients(self._module)
        finite = factors > 0.0
        if not bool(finite.all()):  # zero times infinity is no zero
            del losses
            if not bool(finite.any()):
                return [torch.zeros_like(parameter) for parameter in self._parameters]
            return self(inputs[finite], targets[finite])
        self._module.disable_hooks()
        (factors.to(losses.dtype) * losses).sum().backward()
        self._module.enable_hooks()
        sums = [parameter.grad.detach().clone() for parameter in self._parameters]
        clear_gradients(self._module)
        return sums

    def remove(self) -> None:
        self._module.remove_hooks()
        for hook in self._hooks:
            hook.remove()


def _refuse_16_bits(_layer: Any, _inputs: Any, outputs: Any) -> None:
    """The second backward pass would sum other gradients than the first one measured, by its rounding."""
    if isinstance(outputs, torch.Tensor) and outputs.dtype in (torch.bfloat16, torch.float16):
        raise ArgumentError(
            "make_module: ghost clipping needs layers in float32: leave torch.autocast out of forward, or use "
            'grad_sample_mode="hooks"'
        )


def clip_factors(norms: Any, max_grad_norm: float) -> Any:
    """By what each row's gradient is scaled, shape (rows,): at most 1, above 0, and 0 for a norm that is not finite."""
    wider = _WIDER if norms.device.type == "cpu" else _WIDER_ON_DEVICES
    factors = (max_grad_norm / (norms * wider)).clamp(max=1.0)
    return torch.where(norms.isfinite(), factors, torch.zeros_like(factors))


def row_losses(loss: Callable[..., Any], outputs: Any, targets: Any, rows: int) -> Any:
    """One loss for each row.

    Raises:
        ArgumentError: if `loss` gives anything else.
    """
    losses = loss(outputs, targets)
    if losses.shape != (rows,):
        raise ArgumentError('loss must give one number for each row of the batch (reduction="none")')
    return losses


def clear_gradients(module: Any) -> None:
    """Take the gradients of a batch off the parameters."""
    for parameter in module.parameters():
        parameter.grad = None
        for name in ("grad_sample", "_norm_sample"):
            if hasattr(parameter, name):
                setattr(parameter, name, None)


def without_row_gradients(module: Any) -> Any:
    """The module without what Opacus hangs on parameters: gradients row by row and their norms are raw."""
    for parameter in module.parameters():
        parameter.grad = None
        for name in ("grad_sample", "summed_grad", "_norm_sample", "_forward_counter"):
            if hasattr(parameter, name):
                delattr(parameter, name)
    return module


def refuse_other_norms(module: Any, loss: Callable[..., Any], rows: SyntheticRows) -> None:
    """Compare the norms of ghost clipping with those of the rows' gradients, and the sums, on synthetic rows.

    Raises:
        ArgumentError: where they differ, so that the clipped sums would have another sensitivity.
    """
    inputs, targets = rows.take(range(_PROBED))
    found = {}
    for mode in MODES:
        plain = copy.deepcopy(module).train()
        parameters = [parameter for parameter in plain.parameters() if parameter.requires_grad]
        with torch.random.fork_rng():
            torch.manual_seed(4)
            try:
                found[mode] = clipped_sums(mode, plain, parameters, loss, 1e-3)(inputs, targets)
            except NotImplementedError as error:
                raise ArgumentError(
                    f'make_module: ghost clipping does not know this module: {error}. Use grad_sample_mode="hooks"'
                ) from None
    for one, other in zip(found["hooks"], found["ghost"], strict=True):
        if not torch.allclose(one, other, rtol=_AGREE, atol=_AGREE * float(one.abs().max())):
            raise ArgumentError(
                "make_module: the norms of ghost clipping are not those of this module's gradients. Use "
                'grad_sample_mode="hooks"'
            )
