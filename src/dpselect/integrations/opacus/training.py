"""Opacus training as a private run: what it costs before it starts, and a training loop whose noise is ours.

`PrivateTraining` fixes noise, sampling rate and steps in advance, knows its guarantee without data, and trains with
Opacus's per-row gradients, or with their norms alone (ghost clipping).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError, integer, missing_extra, number
from dpselect.learners import EarlyStopping
from dpselect.privacy import Adjacency, Guarantee
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.randomness import RandomSource
from dpselect.steps import each_step

try:
    import torch
    from opacus.validators import ModuleValidator
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

from dpselect.integrations.opacus.batch_samplers import BatchSampler, RandomAllocation, Sampling, sampler_of
from dpselect.integrations.opacus.checkpoints import Checkpoints
from dpselect.integrations.opacus.clipping import (
    MODES,
    ClippedSums,
    Clipping,
    ClippingRule,
    clipping_rule,
    refuse_other_norms,
    without_row_gradients,
)
from dpselect.integrations.opacus.kept_state import untrained_state
from dpselect.integrations.opacus.looks import Looks, check_early_stopping, public_looks, refuse_uncertain_answers
from dpselect.integrations.opacus.probe import refuse_mixed_rows
from dpselect.integrations.opacus.processes import ALONE, Processes, join_processes
from dpselect.integrations.opacus.row_batches import TrainingRows, on_device, read_rows

__all__ = ["PrivateTraining"]


@dataclass(frozen=True, kw_only=True)
class PrivateTraining:
    """A DP-SGD training whose price is known in advance, because everything that it depends on is fixed.

    Each row's gradient is clipped, noise is added to their sum, and the sum is divided by `expected_batch_size`.
    `PrivacyEngine` takes rate, steps and batch size from the number of rows, which under adding or removing a row is
    itself private. Here all three are public.

    Args:
        noise_multiplier: the noise standard deviation / `max_grad_norm`, above 0.
        sampling_rate: the probability with which each row is in a batch, above 0 and at most 1.
        steps: the number of batches, at least 1.
        max_grad_norm: the L2 norm C to which each row's gradient is clipped, from 1e-6 to 1e9. For "per_layer" it may
            be a list as in Opacus: a norm for each trained parameter tensor. Then C is the root of the sum of squares.
        expected_batch_size: the number by which the noisy sum is divided, above 0. It is a public number, such as the
            sampling rate times a nominal number of rows.
        max_physical_batch_size: the number of rows that are held at once, at least 1. A larger batch is cut into parts,
            whose clipped gradients are summed, so memory does not grow with the batch. None cuts nothing.
        grad_sample_mode: "hooks" computes the gradient of each row. "ghost" computes their norms and their sum only,
            for linear layers and embeddings: less memory if these are wide.
        clipping: "flat" clips the whole gradient. "per_layer" clips its part for each parameter tensor, to C / sqrt(the
            number of tensors) or to the norms that you give. "automatic" scales each gradient g by C / (|g| + 0.01), so
            that you need not search C (Bu et al. 2023). None changes the price.
        adjacency: the neighbours, add-or-remove-one unless given. Under replace-one a row that is replaced moves the
            sum by up to twice `max_grad_norm`, which the guarantee counts.
        sampling: how batches are drawn. "poisson" draws each row for each batch by itself. "random-allocation" draws
            one batch of every epoch for each row. An epoch has 1 / `sampling_rate` steps.
            "fixed-batches" draws batches of `expected_batch_size` rows without replacement, under replace-one. The data
            must have `expected_batch_size` / `sampling_rate` rows, and that number is public.
        distributed: whether every process of torch.distributed's group calls `fit`, each with all rows. They share the
            parts of a batch, whose size you must give (`max_physical_batch_size`). Each returns the module that one
            process would return, to the bit, at the same price. If a process ends, the others raise an exception.

    Raises:
        AdjacencyError: if `adjacency` is unknown, or has no price for `sampling`.
        ArgumentError: for numbers out of range, or that do not belong together for `sampling`.
        TypeError: for values that are not numbers, or `steps` that is not an integer.

    >>> training = PrivateTraining(
    ...     noise_multiplier=1, sampling_rate=0.1, steps=100, max_grad_norm=1, expected_batch_size=120)
    >>> print(round(training.guarantee.epsilon(1e-5), 2))
    7.05
    """

    noise_multiplier: float
    sampling_rate: float
    steps: int
    max_grad_norm: float | Sequence[float]
    expected_batch_size: float
    max_physical_batch_size: int | None = None
    grad_sample_mode: Literal["hooks", "ghost"] = "hooks"
    clipping: Clipping = "flat"
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE.value
    sampling: Sampling = "poisson"
    distributed: bool = False
    early_stopping: EarlyStopping | None = None

    def __post_init__(self) -> None:
        for name in ("noise_multiplier", "expected_batch_size"):
            object.__setattr__(self, name, number(name, getattr(self, name), above=0.0))
        norms = clipping_rule(self.clipping, self.max_grad_norm).norms
        object.__setattr__(self, "max_grad_norm", norms if isinstance(self.max_grad_norm, (list, tuple)) else norms[0])
        object.__setattr__(self, "sampling_rate", number("sampling_rate", self.sampling_rate, above=0.0, at_most=1.0))
        object.__setattr__(self, "steps", integer("steps", self.steps, at_least=1))
        if self.max_physical_batch_size is not None:
            size = integer("max_physical_batch_size", self.max_physical_batch_size, at_least=1)
            object.__setattr__(self, "max_physical_batch_size", size)
        elif self.distributed:
            raise ArgumentError(
                "max_physical_batch_size is missing: the processes of a distributed training share the parts of a batch"
            )
        if self.grad_sample_mode not in MODES:
            said = f"grad_sample_mode must be one of {', '.join(MODES)}, got {self.grad_sample_mode!r}"
            raise ArgumentError(said + write_one_of("grad_sample_mode", self.grad_sample_mode, MODES))
        object.__setattr__(self, "adjacency", parse_adjacency(self.adjacency).value)
        if self.early_stopping is not None:
            sampler = self.sampler
            epoch = sampler.steps_per_epoch if isinstance(sampler, RandomAllocation) else 1
            check_early_stopping(self.early_stopping, self.steps, epoch)
        _ = self.guarantee  # numbers that do not belong together are refused here, before there is data

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one training with all its looks, under its adjacency. It needs no data."""
        training = self.sampler.guarantee(self.noise_multiplier, str(self.adjacency))
        return training if self.early_stopping is None else self.early_stopping.full_guarantee(training)

    @property
    def _public(self) -> dict[str, Any]:
        """The settings that decide the released bytes."""
        names = (each.name for each in fields(self) if each.name not in ("distributed", "early_stopping"))
        return {name: getattr(self, name) for name in names} | public_looks(self.early_stopping)

    @property
    def _rule(self) -> ClippingRule:
        """The rule by which gradients are clipped."""
        return clipping_rule(self.clipping, self.max_grad_norm)

    @property
    def sampler(self) -> BatchSampler:
        """The sampler, which draws the batches."""
        return sampler_of(
            self.sampling,
            sampling_rate=self.sampling_rate,
            steps=self.steps,
            batch_size=self.expected_batch_size,
        )

    def fit(
        self,
        make_module: Callable[[], Any],
        make_optimizer: Callable[[Iterable[Any]], Any],
        loss: Callable[..., Any],
        inputs: Any,
        targets: Any = None,
        *,
        example: Callable[[int], tuple[Any, Any]] | None = None,
        random: RandomSource | None = None,
        checkpoints: str | Path | None = None,
    ) -> Any:
        """Train and return a module.

        Args:
            make_module: builds the module, on the device where it is to be trained. Row i's output may depend on row i
                only.
            make_optimizer: makes a torch optimizer of the parameters, or a pair of it and a learning rate scheduler,
                which is moved on after each step.
            loss: `loss(outputs, targets)` gives one loss for each row of the batch (`reduction="none"`).
            inputs: a tensor with rows on its first axis; there may be none. Or a `Dataset` whose rows are pairs of an
                input and a target, or a `DataLoader` of one, alone. Of a loader only rows, collate function and workers
                are used: batches are drawn here.
            targets: as many targets, on the first axis of a tensor. Not with a dataset or a loader.
            example: `example(count)` makes inputs and targets of `count` synthetic rows, for a module that takes no
                rows of random numbers in [0, 1), or indices below the size of its smallest embedding. Never rows of the
                data.
            random: draws batches and noise.
            checkpoints: a folder. A training that is killed continues from there when it is called again with the same
                source, and gives the same bytes. It is for a source of a trial, or of `keyed_source`. Several trainings
                may share the folder. Give a training that continues the same rows. If two processes train with one
                source at a time, the second keeps no checkpoint.

        Before anything is drawn for the training, module and loss are tried on synthetic rows of the shape and type of
        yours: each row's loss and gradient alone must equal those in company, twice, in batches of several sizes. This
        finds mistakes. Code that knows when it is tried, or mixes rows at other batch sizes or values only, passes, and
        then the guarantee does not hold. You must ensure that there is no such code, also not in a dataset.

        Batches and noise are drawn from `random`. Torch's own draws (initial weights, dropout), whose secrecy nothing
        rests on, are seeded from it, and torch's state outside is left as it was. A row whose gradient is not finite
        counts as zero.

        Raises `ArgumentError` for inputs and targets of different lengths, and for a loss that is not one number for
        each row. It is also raised for a module that Opacus cannot give per-row gradients (batch normalisation, for
        one) and for a module or loss in which rows mix. The same goes for one that keeps what it saw elsewhere than in
        parameters (a count of calls may change, unless batches are cut into parts).
        """
        processes = join_processes(random) if self.distributed else ALONE
        source = processes.source(random)
        rows = read_rows(inputs, targets, example)
        self.sampler.check(rows.count)
        with (
            torch.random.fork_rng(),
            nullcontext() if checkpoints is None or processes.rank else Checkpoints(checkpoints, source) as kept,
        ):
            torch.manual_seed(source.bits(63))
            module = make_module()
            if ModuleValidator.validate(module, strict=False):
                raise ArgumentError("make_module: Opacus cannot give this module's gradients row by row")
            processes.agree(source, self._public, module, rows)
            run = _Fit(self, module, make_optimizer, loss, source, processes)
            counts = run.refuse_mistakes(rows, example)
            before = untrained_state(module, counts)
            run.train(rows, kept)
            if untrained_state(module, counts) != before:
                raise ArgumentError(
                    "make_module: training changes a buffer, a frozen parameter or other state of this module, which "
                    "no noise covers"
                )
            if kept is not None:
                kept.erase()
        return without_row_gradients(module).eval()


class _Fit:
    """One training."""

    def __init__(
        self,
        plan: PrivateTraining,
        module: Any,
        make_optimizer: Any,
        loss: Callable[..., Any],
        source: RandomSource,
        processes: Processes,
    ) -> None:
        self.plan, self.module, self.make_optimizer, self.loss = plan, module, make_optimizer, loss
        self.processes = processes
        self.noise, self.sampling = source.spawn("noise"), source.spawn("batches")
        self.torchs = source.spawn("torch")
        self.looks = Looks(plan.early_stopping, module, source.spawn("looks"), processes)
        self.parts: deque[int] = deque()
        """The numbers of parts of the steps that are being read."""
        self.device = next((parameter.device for parameter in module.parameters()), torch.device("cpu"))
        self.spare: Any = None
        """One synthetic row, which stands in for an empty batch."""

    def refuse_mistakes(self, rows: TrainingRows, example: Any) -> frozenset[str]:
        """Try module and loss on synthetic rows. Returns the names of buffers that count calls."""
        if rows.facts is None:  # no row, and so nothing but noise
            return frozenset()
        facts = on_device(rows.facts, self.device)
        counts, synthetic = refuse_mixed_rows(self.module, self.loss, facts, example=example, collate=rows.collate)
        if counts and self.plan.max_physical_batch_size is not None:
            raise ArgumentError(
                f"max_physical_batch_size: {min(counts)} counts calls, and so the parts of the batches, whose number "
                "depends on the rows. Leave the count out, or do not cut batches"
            )
        if self.plan.grad_sample_mode == "ghost":
            refuse_other_norms(self.module, self.loss, synthetic)
        if self.plan.early_stopping is not None:
            refuse_uncertain_answers(self.module, synthetic)
        self.spare = synthetic.take([0])
        return counts

    def train(self, rows: TrainingRows, kept: Checkpoints | None) -> None:
        """All steps, or those that a checkpoint leaves."""
        self.module.train()
        optimizer, scheduler = _pair(self.make_optimizer(self.module.parameters()))
        parameters = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
        if any(p._backward_hooks or p._post_accumulate_grad_hooks for p in self.module.parameters()):
            raise ArgumentError(
                "make_module, make_optimizer: a hook on a parameter sees gradients before they are clipped and noisy: "
                "take it out"
            )
        rule = self.plan._rule
        sums = ClippedSums(self.plan.grad_sample_mode, self.module, parameters, self.loss, rule)
        public = self.plan._public
        moving = [self.module, optimizer, *([] if scheduler is None else [scheduler])]
        found = self.processes.of_first(None if kept is None else kept.load(public))
        numbers = each_step("steps of training", self.plan.steps, self._continue(moving, found))
        done = next(numbers, self.plan.steps)
        step = _Step(self, parameters, sums, done)
        for batch in rows.batches(self._places(rows.count, done), self.device):
            if batch is not None:
                step.add(*batch)
                continue
            step.finish()
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
            done = next(numbers, self.plan.steps)
            if self.looks.end(done):
                break
            if kept is not None:
                kept.save(public, lambda done=done: self._state(moving, done))  # type: ignore[misc]
        sums.remove()

    def _state(self, moving: list[Any], done: int) -> dict[str, Any]:
        state = {"done": done, "states": [each.state_dict() for each in moving]}
        return state | ({"scores": list(self.looks.scores)} if self.looks.scores else {})

    def _continue(self, moving: list[Any], found: Any) -> int:
        """Bring all to what was saved. Returns how many steps are done."""
        if found is None:
            return 0
        for each, state in zip(moving, found["states"], strict=True):
            each.load_state_dict(state)
        self.looks.scores = list(found.get("scores", ()))
        return int(found["done"])

    def _places(self, count: int, done: int) -> Iterator[NDArray[np.intp]]:
        """The places of each part of a batch, and none behind the last part of each step."""
        size = self.plan.max_physical_batch_size
        for chosen in self.plan.sampler.batches(count, self.sampling, done):
            width = size or max(len(chosen), 1)
            parts = -(-len(chosen) // width)
            self.parts.append(parts)
            yield from (chosen[part * width : (part + 1) * width] for part in self.processes.parts(parts))
            yield chosen[:0]


class _Step:
    """The clipped gradients of a batch, part by part, and their noise."""

    def __init__(self, run: _Fit, parameters: list[Any], sums: ClippedSums, number: int) -> None:
        self.run, self.parameters, self.sums, self.number = run, parameters, sums, number
        self.total: list[Any] = []
        self.turns = 0

    def add(self, inputs: Any, targets: Any) -> None:
        """One part of the batch."""
        processes = self.run.processes
        self._seed(self.turns * processes.count + processes.rank)
        self._exchange(self.sums(inputs, targets))

    def _exchange(self, sums: list[Any]) -> None:
        for found in self.run.processes.turn(self.turns, self.run.parts[0], sums):
            if self.total:
                found = [one.add_(other) for one, other in zip(self.total, found, strict=True)]
            self.total = found
        self.turns += 1

    def _seed(self, part: int | str) -> None:
        """Torch's draws depend on the step and the part, not on the process that makes it, or on earlier ones."""
        torch.manual_seed(self.run.torchs.spawn(self.number).spawn(part).bits(63))

    def finish(self) -> None:
        """Give each parameter its noisy gradient."""
        plan = self.run.plan
        while self.turns * self.run.processes.count < self.run.parts[0]:  # of others, in the last turn
            self._exchange([torch.zeros_like(parameter) for parameter in self.parameters])
        if not self.total and self.run.spare is not None:
            # layers that fail on no rows would tell that there are none: a synthetic row stands in, and counts zero
            self.total = [torch.zeros_like(each) for each in self.sums(*self.run.spare)]
        self.total = self.total or [torch.zeros_like(parameter) for parameter in self.parameters]
        sizes = [parameter.numel() for parameter in self.parameters]
        deviation = plan.noise_multiplier * plan._rule.sensitivity
        drawn = torch.from_numpy(self.run.noise.spawn(self.number).normal(sum(sizes)) * deviation)
        for parameter, total, noise in zip(self.parameters, self.total, drawn.split(sizes), strict=True):
            noisy = total.double() + noise.view_as(parameter).to(parameter.device)
            parameter.grad = (noisy / plan.expected_batch_size).to(parameter.dtype)
        self._seed("step")
        self.run.parts.popleft()
        self.total, self.turns, self.number = [], 0, self.number + 1


def _pair(made: Any) -> tuple[Any, Any]:
    """The optimizer, and the scheduler or None."""
    optimizer, scheduler = made if isinstance(made, (tuple, list)) and len(made) == 2 else (made, None)
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ArgumentError("make_optimizer must give a torch optimizer, or a pair of it and a scheduler")
    if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
        raise ArgumentError(
            "make_optimizer: ReduceLROnPlateau follows losses, which are private. Use a schedule of the number of steps"
        )
    return optimizer, scheduler
