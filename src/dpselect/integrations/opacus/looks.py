"""Looks of a training at its model, which may end it early. Each one is a private score, or one of public rows.

A training pays for all its steps and all its looks, no matter where it stops. So its price is known in advance, and a
search of such trainings has one base. Source: docs/theory/early-stopping.md, Theorem 1.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, missing_extra
from dpselect.learners import EarlyStopping
from dpselect.randomness import RandomSource

try:
    import torch
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

from dpselect.integrations.opacus.fixed_draws import FixedDraws
from dpselect.integrations.opacus.kept_state import refuse_kept_rows
from dpselect.integrations.opacus.probe import left_alone, seed_all
from dpselect.integrations.opacus.processes import Processes
from dpselect.integrations.opacus.synthetic_rows import SyntheticRows

__all__ = ["AskedModule", "Looks", "check_early_stopping", "public_looks", "refuse_uncertain_answers"]

_PAID_ELSEWHERE: Final = ("delta", "spender", "shares", "worst_epsilon")
_SEEDS: Final = (1, 2)


def check_early_stopping(stopping: Any, steps: int, steps_per_epoch: int) -> None:
    """Raise `ArgumentError` for early stopping that a training of so many steps cannot have.

    Args:
        stopping: an `EarlyStopping`.
        steps: the number of steps of the whole training.
        steps_per_epoch: how many steps are one mechanism, between which no look may be.
    """
    if not isinstance(stopping, EarlyStopping):
        raise ArgumentError(f"early_stopping must be an EarlyStopping, got {type(stopping).__name__}")
    stops = stopping.stops
    if not stops or stops[-1] != steps or any(b <= a for a, b in pairwise(stops)):
        raise ArgumentError(f"early_stopping: stops must increase, and the last one must be steps, {steps}")
    if any(stop % steps_per_epoch for stop in stops):
        raise ArgumentError(
            f"early_stopping: with random-allocation stops must be ends of epochs, multiples of {steps_per_epoch}"
        )
    given = [name for name in _PAID_ELSEWHERE if getattr(stopping, name) is not None]
    if given:
        raise ArgumentError(
            f"early_stopping: leave {', '.join(given)} out. The training pays for all its steps and looks, no matter "
            "where it stops"
        )


def public_looks(stopping: EarlyStopping | None) -> dict[str, Any]:
    """The public numbers of the looks, by which a checkpoint is recognised."""
    if stopping is None:
        return {}
    check = stopping.score.guarantee
    return {"stops": list(stopping.stops), "look": None if check is None else str(dict(check.terms))}


def refuse_uncertain_answers(module: Any, rows: SyntheticRows) -> None:
    """Raise `ArgumentError` if the module draws in eval mode, or keeps rows there.

    A look counts correct predictions, each of its row alone. None may depend on draws or on earlier rows.
    """
    with left_alone():
        counts = refuse_kept_rows(module, None, rows, FixedDraws(0.5), training=False)
        if counts:
            raise ArgumentError(
                f"early_stopping: {min(counts)} counts calls in eval mode, and so the rows of a look, whose number is "
                "private. Let it count in training mode only"
            )
        one, *others = (answer for seed in _SEEDS for answer in _answers_with(seed, module, rows))
        if not all(torch.equal(one, other) for other in others):
            raise ArgumentError(
                "early_stopping: the module draws in eval mode, or keeps something from row to row, so a look at it "
                "has no price"
            )


def _answers_with(seed: int, module: Any, rows: SyntheticRows) -> list[Any]:
    """The outputs for a row, twice."""
    seed_all(seed)
    module = copy.deepcopy(module).eval()
    with torch.no_grad():
        found = [module(rows.take([0])[0]) for _ in range(2)]
    return [each.nan_to_num() if isinstance(each, torch.Tensor) else torch.zeros(1) for each in found]


class AskedModule:
    """A module in training that a score asks, in eval mode.

    Rows of fractions are moved to the type of its parameters.
    """

    def __init__(self, module: Any) -> None:
        self._module = module

    def __call__(self, inputs: Any) -> Any:
        """The outputs of the module for rows that are asked together. One may move another one's, by rounding."""
        return self._module(self._given(inputs))

    def predict(self, inputs: Any) -> NDArray[np.int64]:
        """The class of each row, shape (rows,): the largest of its outputs. Of one output, whether it is above 0.

        Rows are asked one at a time, from one place in memory. So no row moves another one's answer.
        """
        given = self._given(inputs)
        row = given.new_empty((1, *given.shape[1:]))
        return np.array([_class_of(self._module(row.copy_(each))) for each in given], dtype=np.int64)

    def _given(self, inputs: Any) -> Any:
        given, like = torch.as_tensor(inputs), next(self._module.parameters(), torch.zeros(0))
        return given.to(like.device, like.dtype if given.dtype.is_floating_point else given.dtype)


def _class_of(outputs: Any) -> int:
    if not isinstance(outputs, torch.Tensor) or outputs.dim() > 2 or len(outputs) != 1:
        raise ArgumentError(
            "early_stopping: the module must give one number for each class, of shape (rows, classes). For other "
            "outputs give a score that you wrote"
        )
    flat = outputs.reshape(-1)
    return int(flat[0] > 0) if len(flat) == 1 else int(flat.argmax())


class Looks:
    """The looks of one training.

    Args:
        stopping: when to look, and what decides. None never looks.
        module: the module in training.
        random: the source of the looks. Each one has a stream of its own.
        processes: the first of them looks, for all.
    """

    def __init__(self, stopping: EarlyStopping | None, module: Any, random: RandomSource, processes: Processes) -> None:
        self._stopping, self._module, self._random, self._processes = stopping, module, random, processes
        self.scores: list[float] = []
        """Those so far. They are released."""

    def end(self, done: int) -> bool:
        """Whether to stop after so many steps. At a stop the model is scored, but not at the last one."""
        stopping = self._stopping
        if stopping is None or done not in stopping.stops[:-1]:
            return False
        own = self._score(stopping, self._random.spawn(done)) if self._processes.rank == 0 else None
        self.scores.append(self._processes.of_first(own))
        return bool(stopping.rule(tuple(self.scores)))

    def _score(self, stopping: EarlyStopping, source: RandomSource) -> float:
        torch.manual_seed(source.spawn("torch").bits(63))
        with _asked(self._module) as module:
            return float(stopping.score(module, source))


@contextmanager
def _asked(module: Any) -> Iterator[AskedModule]:
    """The module in eval mode, without gradients."""
    module.eval()
    try:
        with torch.no_grad():
            yield AskedModule(module)
    finally:
        module.train()
