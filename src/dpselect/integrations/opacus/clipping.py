"""Sums of clipped gradients, one batch at a time: by each row's gradient, or by its norm alone (ghost clipping).

Each row's gradient is scaled, and the rows are summed. A row whose gradient is not finite counts as zero. One row adds
an L2 norm of at most C, over all parameters together. Source: docs/theory/clipped-sums.md, Theorem 1.

Flat clipping scales a gradient of norm g by min(1, C / g). Clipping by layer scales its part for each parameter tensor
by min(1, C_l / g_l). The squares of all C_l add to C^2. Automatic clipping scales it by C / (g + 0.01), below C / g.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal

from dpselect.errors import ArgumentError, missing_extra, number
from dpselect.integrations.opacus.row_gradients import GhostModule, HeldGradients, RowGradients
from dpselect.integrations.opacus.synthetic_rows import SyntheticRows

try:
    import torch
    from opacus.grad_sample import GradSampleModule
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

__all__ = [
    "CLIPPINGS",
    "MODES",
    "ClippedSums",
    "Clipping",
    "ClippingRule",
    "clipping_rule",
    "refuse_other_norms",
    "without_row_gradients",
]

Clipping = Literal["flat", "per_layer", "automatic"]

CLIPPINGS: Final[tuple[Clipping, ...]] = ("flat", "per_layer", "automatic")
"""Names as in Opacus (`clipping`), which has no automatic clipping."""
MODES: Final = ("hooks", "ghost")
"""Names as in Opacus (`grad_sample_mode`)."""
LEAST_NORM: Final = 1e-6
"""Far above what float32 loses of a norm when the squares of its parts are too small for it: 1e-23 for each."""
LARGEST_NORM: Final = 1e9
_STABILITY: Final = 0.01
"""As Bu et al. recommend. It is public, and no data is behind it."""
_LARGEST: Final = 1e28
"""Beyond it a factor would be below float32's normal numbers, and round by more than norms are widened by."""
_WIDER: Final = 1.0 + 2.0**-16
"""Covers the rounding of a norm in float32."""
_WIDER_ON_DEVICES: Final = 1.0 + 2.0**-9
"""Covers products that a device rounds to ten bits (TF32), one of a gradient and one of its factor."""
_AGREE: Final = 1e-4
_PROBED: Final = 7
_CLIPPED: Final = 1e-3
_UNCLIPPED: Final = 1e9
"""Norms for synthetic rows: of almost all gradients, and of none."""


@dataclass(frozen=True)
class ClippingRule:
    """How gradients are scaled.

    Args:
        clipping: one of `CLIPPINGS`.
        norms: C, or for "per_layer" one C or every C_l.
    """

    clipping: Clipping
    norms: tuple[float, ...]

    @property
    def sensitivity(self) -> float:
        """C: at least the L2 norm of what one row adds to a sum."""
        return self.norms[0] if len(self.norms) == 1 else math.hypot(*self.norms) * (1.0 + 2.0**-50)

    def bounds(self, parameters: int) -> list[float]:
        """C_l for each parameter tensor.

        Raises:
            ArgumentError: for another number of parameters than norms.
        """
        if len(self.norms) == 1:
            return [self.norms[0] / math.sqrt(parameters) * (1.0 - 2.0**-50)] * parameters
        if len(self.norms) != parameters:
            raise ArgumentError(
                f"max_grad_norm must be one norm, or one for each trained parameter tensor: the module has {parameters}"
                f", got {len(self.norms)}"
            )
        return list(self.norms)

    def factors(self, norms: Sequence[Any]) -> list[Any]:
        """By what each row's gradient is scaled, for each parameter: shape (rows,), and 0 for a row that is left out.

        Args:
            norms: of each row's gradient for each parameter, shape (rows,).
        """
        wide = [each if each.device.type == "mps" else each.double() for each in norms]
        whole = torch.linalg.vector_norm(torch.stack(wide), dim=0)
        counted = whole <= _LARGEST  # which NaN is not
        if self.clipping == "per_layer":
            found = [self._scale(each, bound) for each, bound in zip(wide, self.bounds(len(wide)), strict=True)]
        else:
            found = [self._scale(whole, self.norms[0])] * len(wide)
        return [torch.where(counted, each, torch.zeros_like(each)) for each in found]

    def _scale(self, norms: Any, bound: float) -> Any:
        wider = norms * (_WIDER if norms.device.type == "cpu" else _WIDER_ON_DEVICES)
        if self.clipping == "automatic":
            return bound / (wider + _STABILITY)
        return (bound / wider).clamp(max=1.0)


def clipping_rule(clipping: Clipping, max_grad_norm: float | Sequence[float]) -> ClippingRule:
    """Return the rule of these settings.

    Raises:
        ArgumentError: for an unknown name, a norm out of range, or several norms for another rule than "per_layer".
    """
    if clipping not in CLIPPINGS:
        raise ArgumentError(
            f"clipping must be one of {', '.join(CLIPPINGS)}, got {clipping!r}. Adaptive clipping has no price here"
        )
    several = isinstance(max_grad_norm, (list, tuple))
    given: Sequence[Any] = max_grad_norm if several else [max_grad_norm]  # type: ignore[assignment]
    if several and clipping != "per_layer":
        raise ArgumentError(f'max_grad_norm must be one number, got {len(given)}: give several with "per_layer" only')
    if not given:
        raise ArgumentError("max_grad_norm must be a number, or one for each trained parameter tensor, got none")
    found = [number("max_grad_norm", each, at_least=LEAST_NORM, at_most=LARGEST_NORM) for each in given]
    return ClippingRule(clipping, tuple(found))


class ClippedSums:
    """Hangs Opacus's hooks on a module in training, and gives sums of clipped gradients.

    Args:
        mode: one of `MODES`.
        module: in training mode.
        parameters: those that are trained.
        loss: of outputs and targets, one for each row.
        rule: how gradients are clipped.

    Raises:
        ArgumentError: for parameters of 16 bits, and another number of them than the rule has norms.
    """

    def __init__(
        self, mode: str, module: Any, parameters: Sequence[Any], loss: Callable[..., Any], rule: ClippingRule
    ) -> None:
        for parameter in parameters:
            if parameter.dtype not in (torch.float32, torch.float64):
                raise ArgumentError(
                    f"make_module: parameters of {parameter.dtype} are refused: sums of clipped gradients round there "
                    "by more than the noise covers. Keep parameters in float32, and use torch.autocast in forward"
                )
        if rule.clipping == "per_layer":
            rule.bounds(len(parameters))
        self._module = GhostModule(module) if mode == "ghost" else GradSampleModule(module, loss_reduction="sum")
        self._ghosts: dict[Any, RowGradients] = self._module.ghosts if mode == "ghost" else {}
        self._parameters, self._loss, self._rule = parameters, loss, rule

    def __call__(self, inputs: Any, targets: Any) -> list[Any]:
        """For each parameter the sum over the batch's rows, of the parameter's shape."""
        row_losses(self._loss, self._module(inputs), targets, len(inputs)).sum().backward()
        with _full_products():
            gradients = [self._gradients(parameter, len(inputs)) for parameter in self._parameters]
            factors = self._rule.factors([each.norms() for each in gradients])
            counted = factors[0] > 0.0
            kept = None if bool(counted.all()) else counted
            sums = [
                each.weighted_sum(scale, kept).view_as(parameter)
                for parameter, each, scale in zip(self._parameters, gradients, factors, strict=True)
            ]
        self._ghosts.clear()
        clear_gradients(self._module)
        return sums

    def _gradients(self, parameter: Any, rows: int) -> RowGradients:
        if parameter in self._ghosts:
            return self._ghosts[parameter]
        found = getattr(parameter, "grad_sample", None)
        if not isinstance(found, torch.Tensor) or len(found) != rows:
            raise ArgumentError("make_module: a parameter has not one gradient for each row of a batch")
        return HeldGradients(found.reshape(rows, -1).to(parameter.dtype))

    def remove(self) -> None:
        """Take off the module what was hung on it."""
        self._module.remove_hooks()


@contextmanager
def _full_products() -> Iterator[None]:
    """Products of float32 matrices in float32, no matter what was chosen for the training."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


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
    """Compare ghost clipping with the gradients of rows, on synthetic rows: sums without clipping, and rows' norms.

    Raises:
        ArgumentError: if they differ, so that the clipped sums may have another sensitivity.
    """
    everything = list(range(_PROBED))
    plain, ghost = (_synthetic_sums(mode, module, loss, rows, everything, _UNCLIPPED) for mode in MODES)
    agree = all(
        torch.allclose(one, other, rtol=_AGREE, atol=_AGREE * float(one.abs().max()))
        for one, other in zip(plain, ghost, strict=True)
    )
    for k in everything if agree else []:
        alone = _synthetic_sums("ghost", module, loss, rows, [k], _CLIPPED)
        agree &= math.hypot(*(float(each.norm()) for each in alone)) <= _CLIPPED * (1.0 + _AGREE)
    if not agree:
        raise ArgumentError(
            "make_module: the norms of ghost clipping are not those of this module's gradients. Use "
            'grad_sample_mode="hooks"'
        )


def _synthetic_sums(mode: str, module: Any, loss: Any, rows: SyntheticRows, places: list[int], norm: float) -> Any:
    plain = copy.deepcopy(module).train()
    parameters = [parameter for parameter in plain.parameters() if parameter.requires_grad]
    with torch.random.fork_rng():
        torch.manual_seed(4)
        return ClippedSums(mode, plain, parameters, loss, ClippingRule("flat", (norm,)))(*rows.take(places))
