"""Opacus training as a private run: what it costs before it starts, and a training loop whose noise is ours.

`PrivateTraining` fixes noise, sampling rate and steps in advance, knows its guarantee without data, and trains with
Opacus's per-row gradients. `engine_guarantee` reads the same three numbers from what a `PrivacyEngine` made.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from dpselect.errors import ArgumentError, integer, missing_extra, number
from dpselect.integrations.opacus.state import sampled_rate
from dpselect.privacy import Guarantee, dp_sgd
from dpselect.randomness import RandomSource, resolve

try:
    import torch
    from opacus.data_loader import DPDataLoader
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer, DPPerLayerOptimizer
    from opacus.optimizers.optimizer_fast_gradient_clipping import DPOptimizerFastGradientClipping
    from opacus.utils.batch_memory_manager import BatchSplittingSampler
    from opacus.validators import ModuleValidator
    from torch.utils.data import DataLoader
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

from dpselect.integrations.opacus.probe import Reduction, refuse_mixed_rows
from dpselect.integrations.opacus.synthetic_rows import InputFacts, facts_of

__all__ = ["PrivateTraining", "engine_guarantee"]

_KNOWN: Final = (DPOptimizer, DPPerLayerOptimizer, DPOptimizerFastGradientClipping)


@dataclass(frozen=True, kw_only=True)
class PrivateTraining:
    """A DP-SGD training whose price is known in advance, because everything that it depends on is fixed.

    Each row's gradient is clipped, noise is added to their sum, and the sum is divided by `expected_batch_size`.
    `PrivacyEngine` takes rate, steps and batch size from the number of rows, which under adding or removing a row is
    itself private. Here all three are public.

    Args:
        noise_multiplier: the noise standard deviation / `max_grad_norm`, above 0.
        sampling_rate: the probability with which each row is in a batch, independently, above 0 and at most 1.
        steps: the number of batches, at least 1.
        max_grad_norm: the L2 norm to which each row's gradient is clipped, above 0.
        expected_batch_size: the number by which the noisy sum is divided, above 0. It is a public number, such as the
            sampling rate times a nominal number of rows.

    Raises:
        ArgumentError: for numbers out of range.
        TypeError: for values that are not numbers, or `steps` that is not an integer.

    >>> training = PrivateTraining(
    ...     noise_multiplier=1, sampling_rate=0.1, steps=100, max_grad_norm=1, expected_batch_size=120)
    >>> print(round(training.guarantee.epsilon(1e-5), 2))
    7.05
    """

    noise_multiplier: float
    sampling_rate: float
    steps: int
    max_grad_norm: float
    expected_batch_size: float

    def __post_init__(self) -> None:
        for name in ("noise_multiplier", "max_grad_norm", "expected_batch_size"):
            object.__setattr__(self, name, number(name, getattr(self, name), above=0.0))
        object.__setattr__(self, "sampling_rate", number("sampling_rate", self.sampling_rate, above=0.0, at_most=1.0))
        object.__setattr__(self, "steps", integer("steps", self.steps, at_least=1))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one training, under adding or removing one row. It needs no data."""
        return dp_sgd(noise_multiplier=self.noise_multiplier, sampling_rate=self.sampling_rate, steps=self.steps)

    def fit(
        self,
        make_module: Callable[[], Any],
        make_optimizer: Callable[[Iterable[Any]], Any],
        loss: Callable[..., Any],
        inputs: Any,
        targets: Any,
        *,
        example: Callable[[int], tuple[Any, Any]] | None = None,
        random: RandomSource | None = None,
    ) -> Any:
        """Train and return a module.

        Args:
            make_module: builds the module. Row i's output may depend on row i only.
            make_optimizer: makes a torch optimizer of the parameters.
            loss: `loss(outputs, targets)` gives one loss for each row of the batch (`reduction="none"`).
            inputs: a tensor with rows on its first axis; there may be none.
            targets: as many targets, on the first axis of a tensor.
            example: `example(count)` makes inputs and targets of `count` synthetic rows, for a module that takes no
            rows
                of random numbers in [0, 1), or indices below the size of its smallest embedding. Never rows of the
                data.
            random: draws batches and noise.

        Before anything is drawn for the training, module and loss are tried on synthetic rows of the shape and type of
        yours: each row's loss and gradient alone must equal those in company, twice, in batches of several sizes. This
        finds mistakes. Code that knows when it is tried, or mixes rows at other batch sizes or values only, passes, and
        then the guarantee does not hold. You must ensure that there is no such code.

        Batches and noise are drawn from `random`. Torch's own draws (initial weights, dropout), whose secrecy nothing
        rests on, are seeded from it, and torch's state outside is left as it was. A row whose gradient is not finite
        counts as zero.

        Raises `ArgumentError` for inputs and targets of different lengths, and for a loss that is not one number for
        each row. It is also raised for a module that Opacus cannot give per-row gradients (batch normalisation, for
        one) and for a module or loss in which rows mix. The same goes for one that keeps what it saw elsewhere than in
        parameters (a count of calls may change).
        """
        source = resolve(random)
        if len(inputs) != len(targets):
            raise ArgumentError("inputs and targets must have the same number of rows")
        with torch.random.fork_rng():
            torch.manual_seed(source.bits(63))
            module = make_module()
            if ModuleValidator.validate(module, strict=False):
                raise ArgumentError("make_module: Opacus cannot give this module's gradients row by row")
            facts = facts_of(inputs), facts_of(targets)
            counts, spare = refuse_mixed_rows(module, loss, facts, example=example)
            buffers = {name: buffer.clone() for name, buffer in module.named_buffers() if name not in counts}
            wrapped = GradSampleModule(module.train(), loss_reduction="sum")
            optimizer = _OurNoise(
                make_optimizer(wrapped.parameters()),
                noise_multiplier=self.noise_multiplier,
                max_grad_norm=self.max_grad_norm,
                expected_batch_size=self.expected_batch_size,
                random=source.spawn("noise"),
            )
            sampling = source.spawn("batches")
            for _ in range(self.steps):
                chosen = torch.from_numpy(sampling.bernoulli(self.sampling_rate, len(inputs)).nonzero()[0])
                optimizer.zero_grad()
                # layers that fail on no rows would tell that there are none: a synthetic row stands in, and counts zero
                batch = (inputs[chosen], targets[chosen]) if len(chosen) else spare
                losses = loss(wrapped(batch[0]), batch[1])
                if losses.shape != (len(batch[0]),):
                    raise ArgumentError('loss must give one number for each row of the batch (reduction="none")')
                losses.sum().backward()
                if any(len(gradients) != len(batch[0]) for gradients in optimizer.grad_samples):
                    raise ArgumentError("make_module: a parameter has not one gradient for each row of a batch")
                if not len(chosen):
                    for parameter in optimizer.params:
                        parameter.grad_sample = parameter.grad_sample[:0]
                optimizer.step()
            wrapped.remove_hooks()
        for name, buffer in module.named_buffers():
            if name not in counts and (name not in buffers or not torch.equal(buffer, buffers[name])):
                raise ArgumentError("make_module: training changes a buffer of this module, which no noise covers")
        return _plain(module).eval()


def _plain(module: Any) -> Any:
    """Without the gradients row by row that Opacus hangs on parameters: they are raw."""
    for parameter in module.parameters():
        parameter.grad = None
        for name in ("grad_sample", "summed_grad", "_forward_counter"):
            if hasattr(parameter, name):
                delattr(parameter, name)
    return module


class _OurNoise(DPOptimizer):  # type: ignore[misc]
    """Opacus's clipping with noise from a `RandomSource`, and rows without a finite gradient left out."""

    def __init__(self, optimizer: Any, *, random: RandomSource, **settings: Any) -> None:
        super().__init__(optimizer, loss_reduction="sum", **settings)
        self._random = random

    def clip_and_accumulate(self) -> None:
        finite = torch.stack(
            [g.isfinite().reshape(len(g), math.prod(g.shape[1:])).all(dim=1) for g in self.grad_samples]
        ).all(dim=0)
        if not bool(finite.all()):
            for parameter, gradients in zip(self.params, self.grad_samples, strict=True):
                keep = finite.reshape(-1, *[1] * (gradients.dim() - 1))
                parameter.grad_sample = torch.where(keep, gradients, torch.zeros_like(gradients))
        super().clip_and_accumulate()

    def add_noise(self) -> None:
        deviation = self.noise_multiplier * self.max_grad_norm
        for parameter in self.params:
            drawn = torch.from_numpy(self._random.normal(tuple(parameter.summed_grad.shape)) * deviation)
            noisy = parameter.summed_grad.double() + drawn.to(parameter.device)
            parameter.grad = (noisy / self.expected_batch_size).to(parameter.dtype).view_as(parameter)


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
            batch, and for distributed training. For noise of zero, without `size_is_public`, and for `loss` or
            `example` without `module`. For a module or loss in which rows mix.
        TypeError: for an optimizer that no engine made.
    """
    if not isinstance(optimizer, DPOptimizer):
        raise TypeError(f"optimizer must come from PrivacyEngine.make_private, got {type(optimizer).__name__}")
    if type(optimizer) not in _KNOWN:
        raise ArgumentError(
            f"optimizer {type(optimizer).__name__} is refused: adaptive clipping updates its bound with the true size "
            "of each batch, and distributed sampling is not Poisson sampling of all rows"
        )
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
        facts = _facts_of_first_row(data_loader.dataset) if example is None else _facts_of_example(example)
        refuse_mixed_rows(_without_hooks(module), loss, facts, example=example, reduction=reduction)
    return dp_sgd(noise_multiplier=noise, sampling_rate=sampled_rate(data_loader.sample_rate), steps=steps)


def _without_hooks(module: Any) -> Any:
    """A copy of the module that an engine wrapped."""
    copied = copy.deepcopy(module)
    return copied.to_standard_module() if hasattr(copied, "to_standard_module") else copied


def _facts_of_first_row(rows: Any) -> tuple[InputFacts, InputFacts]:
    try:
        inputs, targets = (torch.as_tensor(part)[None] for part in rows[0])
    except Exception:
        raise ArgumentError(
            "data_loader: the first row is not two tensors, inputs and a target, so no rows can be made up: give "
            "example=, a function of a number of rows that makes so many inputs and targets"
        ) from None
    return facts_of(inputs), facts_of(targets)


def _facts_of_example(example: Callable[[int], tuple[Any, Any]]) -> tuple[InputFacts, InputFacts]:
    with torch.random.fork_rng():
        inputs, targets = example(1)
    return facts_of(inputs), facts_of(targets)
