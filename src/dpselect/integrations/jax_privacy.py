"""JAX-Privacy training as a private run: guarantees from its execution plans, its DpEvents and its DpParams.

Nothing here imports JAX-Privacy: it describes a training by a dp-accounting DpEvent, or a few public numbers. The
values of its own accountants do not enter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

import numpy as np
from dp_accounting import NeighboringRelation, dp_event
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, integer, number
from dpselect.privacy import Adjacency, Guarantee, compose, dp_sgd, from_dp_event

__all__ = ["check_clipped_gradient", "event_guarantee", "params_guarantee", "plan_guarantee"]

_ROWS: Final = 7
_ORDERS: Final = (tuple(range(_ROWS)), (6, 5, 4, 3, 2, 1, 0), (4, 1, 2), (5, 3, 6, 0, 2), (0,), tuple(range(_ROWS)))
_ROUNDING: Final = 1e-2
"""Sums of 1e5 float32 numbers err by 1e5 roundings at most, 6e-3 of the largest term."""

_ADJACENCIES: Final[Mapping[NeighboringRelation, Adjacency]] = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: Adjacency.ADD_OR_REMOVE_ONE,
    NeighboringRelation.REPLACE_ONE: Adjacency.REPLACE_ONE,
}


def event_guarantee(event: dp_event.DpEvent, *, neighboring_relation: NeighboringRelation) -> Guarantee:
    """The guarantee of a DpEvent, such as `jax_privacy.experimental.accounting.dpsgd_event(...)` gives.

    `neighboring_relation` is the one that clipping and noise were set up for. Integers as noise multipliers are
    read as floats: where several Gaussians are in one sample, dp-accounting 0.6.0 counts one if the noise is an int.

    Raises `ArgumentError` for REPLACE_SPECIAL (a row is replaced by nothing, and the number of rows stays known),
    which is none of dpselect's adjacencies, and what `from_dp_event` raises.

    >>> from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    >>> event = SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1)), 1000)
    >>> guarantee = event_guarantee(event, neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE)
    >>> print(round(guarantee.epsilon(1e-5), 2))
    1.83
    """
    adjacency = _ADJACENCIES.get(neighboring_relation)
    if adjacency is None:
        raise ArgumentError(
            f"neighboring_relation {_name(neighboring_relation)} has no counterpart "
            "here: use ADD_OR_REMOVE_ONE with partition_type=PartitionType.INDEPENDENT, or REPLACE_ONE"
        )
    return from_dp_event(event, adjacency=adjacency)


def _name(member: Any) -> Any:
    """The name of a member of an enumeration, or anything else as it is."""
    return member.name if isinstance(member, Enum) else member


def plan_guarantee(config: Any) -> Guarantee:
    """The guarantee of one training by a `BandMFExecutionPlanConfig`, with one band DP-SGD. It needs no data.

    You must ensure two things. The training uses the plan's three parts as JAX-Privacy describes. In a search each run
    draws its `noise_seed` from its own random source: runs that share a seed share their noise, and are not
    independent.

    Raises `ArgumentError` for the relation of its accountant (its default is REPLACE_SPECIAL). Under adding or removing
    a row it raises it also for groups of equal size, which depend on the number of rows. Raises `TypeError` for
    anything but such a config.
    """
    try:
        relation, partition = config.accountant.neighboring_relation, config.partition_type
        truncated = config.truncated_batch_size
    except AttributeError:
        raise TypeError(f"config must be a BandMFExecutionPlanConfig, got {type(config).__name__}") from None
    if relation is NeighboringRelation.ADD_OR_REMOVE_ONE:
        if _name(partition) != "INDEPENDENT":
            raise ArgumentError("config: ADD_OR_REMOVE_ONE needs partition_type=PartitionType.INDEPENDENT")
        if truncated is not None:
            raise ArgumentError(
                "config: truncated batches depend on the number of rows, private under add_or_remove_one"
            )
    return event_guarantee(config.plan.dp_event, neighboring_relation=relation)


def params_guarantee(params: Any, *, steps: int, size_is_public: bool) -> Guarantee:
    """The guarantee of `steps` updates by a `DpParams`, schedules of noise and batch size included.

    Under adding or removing one row, with Poisson sampling at rate batch size / number of samples. That rate and the
    number of steps come from the number of rows: `size_is_public=True` declares that it may be known.

    Raises `ArgumentError` for other sampling, truncated batches, groups (`cycle_length` above 1) and several examples
    per user. So it does for a clipping norm without limit, and without the declaration. Raises `TypeError` for anything
    but a `DpParams`.
    """
    steps = integer("steps", steps, at_least=1)
    try:
        supported = {
            "sampling_method": _name(params.sampling_method) == "POISSON",
            "truncated_batch_size": params.truncated_batch_size is None,
            "cycle_length": params.cycle_length in (None, 1),
            "examples_per_user": params.examples_per_user in (None, 1),
            "is_finite_guarantee": bool(params.is_finite_guarantee),
            "noise_multipliers": params.noise_multipliers is not None,
        }
        rows, noises, batches = params.num_samples, params.noise_multipliers, params.batch_sizes
    except AttributeError:
        raise TypeError(f"params must be a DpParams, got {type(params).__name__}") from None
    for name, fine in supported.items():
        if not fine:
            raise ArgumentError(f"params: no guarantee is known here for this {name}")
    if not size_is_public:
        raise ArgumentError("size_is_public: rate and steps come from the number of rows; declare that number public")
    rows = integer("num_samples", rows, at_least=1)
    return compose(
        *[
            dp_sgd(noise_multiplier=noise, sampling_rate=_rate(batch, rows), steps=count)
            for count, noise, batch in _phases(_schedule(noises), _schedule(batches), steps)
        ]
    )


def check_clipped_gradient(gradient: Callable[[Any], Any], example: Callable[[int], Any], *, max_norm: float) -> None:
    """Try a clipped gradient on synthetic rows: the sum of what each row gives alone, each at most `max_norm` long.

    A guarantee is of that sum. With rows on another axis than the first, or a loss or a normalisation across the batch,
    one row moves it by more than the noise was made for. So it does if the sum is divided by the size of the batch.

    Args:
        gradient: of a batch, the sum of clipped gradients without noise, such as
            `lambda batch: jax_privacy.clipped_grad(loss, l2_clip_norm=1.0, batch_argnums=1)(params, batch)[0]`: arrays
            in dicts, lists and tuples.
        example: `example(count)` makes a batch of `count` synthetic rows, arrays with rows on the first axis in dicts,
            lists and tuples; never rows of the data.
        max_norm: the length that clipping leaves of one row's gradient at most, which the noise is made for.

    Raises `ArgumentError` if rows mix, or one row's share is longer. It finds mistakes: code that mixes rows at other
    batch sizes or values only passes. Draws within (dropout) must be fixed.

    >>> import numpy as np
    >>> rows = lambda count: np.random.default_rng(1).normal(size=(count, 3))
    >>> check_clipped_gradient(lambda batch: np.clip(batch, -0.5, 0.5).sum(axis=0), rows, max_norm=1.0)
    """
    max_norm = number("max_norm", max_norm, above=0.0)
    batch = example(_ROWS)
    if any(np.shape(leaf)[:1] != (_ROWS,) for leaf in _leaves(batch)):
        raise ArgumentError(f"example must make as many rows as it is asked for, {_ROWS}, on the first axis")

    def of(places: Sequence[int]) -> NDArray[np.float64]:
        found = gradient(_at(batch, list(places)))
        return np.concatenate([np.asarray(leaf, dtype=np.float64).ravel() for leaf in _leaves(found)])

    alone = np.array([of([place]) for place in range(_ROWS)])
    lengths = np.linalg.norm(alone, axis=1)
    if not np.all(lengths <= max_norm * (1.0 + 1e-3)):
        raise ArgumentError("gradient: one synthetic row alone gives a gradient longer than max_norm, or not finite")
    if not np.any(alone != alone[0]):
        raise ArgumentError("example: all synthetic rows give the same gradient: make rows that differ")
    for order in _ORDERS:
        if not np.allclose(of(order), alone[list(order)].sum(axis=0), rtol=0.0, atol=_ROUNDING * lengths.max()):
            raise ArgumentError(
                f"gradient: of {len(order)} synthetic rows it is not the sum of what each row gives alone, so "
                "one row could move it by more than max_norm. Keep rows on the first axis, compute nothing across it, "
                "divide by a public number only, and keep nothing from call to call"
            )


def _at(batch: Any, places: list[int]) -> Any:
    if isinstance(batch, Mapping):
        return {name: _at(value, places) for name, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(_at(value, places) for value in batch)
    return batch[np.array(places)]


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, (Mapping, list, tuple)):
        for value in tree.values() if isinstance(tree, Mapping) else tree:
            yield from _leaves(value)
    else:
        yield tree


def _rate(batch: Any, rows: int) -> float:
    """Batch size over rows, rounded up."""
    return number("batch size", Fraction(number("batch size", batch)) / rows, rounding="up")


def _schedule(values: Any) -> list[tuple[int, float]]:
    """(first step, value) for each phase."""
    if not isinstance(values, Sequence):
        return [(0, values)]
    starts = {integer("params: start of a phase", start, at_least=0): value for start, value in values}
    if len(starts) != len(values):
        raise ArgumentError("params: two phases of a schedule begin at one step, and which of them holds is not known")
    return sorted(starts.items())


def _phases(
    noises: list[tuple[int, float]], batches: list[tuple[int, float]], steps: int
) -> Iterator[tuple[int, float, float]]:
    """(number of steps, noise multiplier, batch size) for each stretch of steps in which neither changes."""
    if not noises or not batches or noises[0][0] != 0 or batches[0][0] != 0:
        raise ArgumentError("params: schedules must begin at step 0")
    changes = sorted({start for start, _ in [*noises, *batches] if start < steps})
    for begin, end in pairwise([*changes, steps]):
        noise, batch = ([value for start, value in schedule if start <= begin][-1] for schedule in (noises, batches))
        yield end - begin, noise, batch
