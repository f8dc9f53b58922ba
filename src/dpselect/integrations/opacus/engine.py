"""The guarantee of what a `PrivacyEngine` of Opacus made: noise, sampling rate and steps are read from it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

from dpselect.errors import ArgumentError, missing_extra, number
from dpselect.integrations.opacus.state import sampled_rate
from dpselect.privacy import Guarantee, dp_sgd

try:
    from opacus.data_loader import DPDataLoader
    from opacus.optimizers import DPOptimizer, DPPerLayerOptimizer
    from opacus.optimizers.optimizer_fast_gradient_clipping import DPOptimizerFastGradientClipping as DPOptimizerGhost
    from opacus.utils.batch_memory_manager import BatchSplittingSampler
    from torch.utils.data import DataLoader
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

from dpselect.integrations.opacus.probe import Reduction, refuse_mixed_rows
from dpselect.integrations.opacus.row_batches import facts_of_example, facts_of_first_row

__all__ = ["engine_guarantee", "refuse_optimizer"]

_KNOWN: Final = (DPOptimizer, DPPerLayerOptimizer)


def engine_guarantee(
    optimizer: Any,
    data_loader: Any,
    *,
    steps: int,
    size_is_public: bool,
    module: Any = None,
    loss: Callable[..., Any] | None = None,
    example: Callable[[int], tuple[Any, Any]] | None = None,
) -> Guarantee:
    """Return the guarantee of `steps` steps with what `PrivacyEngine.make_private` returned, before or after training.

    It is under adding or removing one row. The noise is that of the next step. With a noise scheduler use
    `history_guarantee` of its schedule. The engine takes the sampling rate (1 / number of batches), the number of
    batches and the divisor of the gradient from the number of rows. `PrivateTraining` does without it.

    You must ensure that every batch of the loader has a step of its own. Gradients accumulated over several batches
    have the noise of one step, and a row may be in more than one of them. (Batches that `BatchMemoryManager` cuts up
    are one batch.)

    Give `module` and `loss` as well, both as the training uses them. Then each row's gradient alone is compared with
    its gradient among other rows. The rows are synthetic, with the shapes and types of the loader's first row (its
    values are not read), or those of `example(count)`.

    Args:
        optimizer: the optimizer that the engine made.
        data_loader: the data loader that the engine made, with Poisson sampling.
        steps: the number of steps that the training will make, or a bound on it that was fixed in advance: epochs times
            `len(data_loader)`.
        size_is_public: pass True if anyone may know the number of rows.
        module: the module that the engine wrapped. Without it, you must ensure that no row reaches another row's
            gradient.
        loss: `loss(outputs, targets)`, reduced with the engine's `loss_reduction`. Without it the module is tried
            alone.
        example: `example(count)` makes inputs and targets of `count` synthetic rows, never rows of the data.

    Raises:
        ArgumentError: when batches are not Poisson samples (`poisson_sampling=False`), or the loader is that of a
            `BatchMemoryManager`. For adaptive clipping, whose clipping bound is updated with the true size of each
            batch, for ghost clipping of Opacus, and for distributed training. For noise of zero, without
            `size_is_public`, and for `loss` or `example` without `module`. For a module or loss in which rows mix.
        TypeError: for an optimizer that no engine made.
    """
    refuse_optimizer(optimizer)
    if isinstance(data_loader, DataLoader) and isinstance(data_loader.batch_sampler, BatchSplittingSampler):
        raise ArgumentError(
            "data_loader is that of a BatchMemoryManager, which cuts batches up: give the loader that make_private made"
        )
    if not isinstance(data_loader, DPDataLoader) or data_loader.distributed:
        raise ArgumentError(
            "data_loader does not draw Poisson samples: the price of DP-SGD does not hold for shuffled or fixed "
            "batches; call make_private with poisson_sampling=True"
        )
    if not size_is_public:
        raise ArgumentError(
            "size_is_public: the engine takes sampling rate, steps and divisor from the number of rows; declare that "
            "number public, or use PrivateTraining, which fixes them in advance"
        )
    noise = number("noise_multiplier", optimizer.noise_multiplier, above=0.0, rounding="down")
    if module is None and (loss is not None or example is not None):
        raise ArgumentError("loss and example are for trying a module: give module= too")
    if module is not None:
        reduction: Reduction = "none" if loss is None else optimizer.loss_reduction
        facts = facts_of_first_row(data_loader.dataset, "data_loader") if example is None else facts_of_example(example)
        refuse_mixed_rows(_without_hooks(module), loss, facts, example=example, reduction=reduction)
    return dp_sgd(noise_multiplier=noise, sampling_rate=sampled_rate(data_loader.sample_rate), steps=steps)


def refuse_optimizer(optimizer: Any) -> None:
    """Raise for an optimizer whose steps are not Gaussian noise on Poisson samples, or that no engine made."""
    if not isinstance(optimizer, DPOptimizer):
        raise TypeError(f"optimizer must come from PrivacyEngine.make_private, got {type(optimizer).__name__}")
    if type(optimizer) is DPOptimizerGhost:
        raise ArgumentError(
            "optimizer: ghost clipping of Opacus is refused. It takes a norm as 0 if terms of a gradient cancel in "
            'float32, and then a row exceeds max_grad_norm. Use grad_sample_mode="hooks", or PrivateTraining'
        )
    if type(optimizer) not in _KNOWN:
        raise ArgumentError(
            f"optimizer {type(optimizer).__name__} is refused: adaptive clipping updates its bound with the true size "
            "of each batch, and distributed sampling is not Poisson sampling of all rows"
        )


def _without_hooks(module: Any) -> Any:
    """A copy of the module that an engine wrapped."""
    copied = copy.deepcopy(module)
    return copied.to_standard_module() if hasattr(copied, "to_standard_module") else copied
