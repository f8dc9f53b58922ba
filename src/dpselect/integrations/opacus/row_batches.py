"""Rows to train on: tensors, a `Dataset`, or a `DataLoader`, read in batches whose rows are drawn here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, missing_extra
from dpselect.integrations.opacus.synthetic_rows import InputFacts, facts_of

try:
    import torch
    from torch.utils.data import (
        BatchSampler,
        DataLoader,
        IterableDataset,
        RandomSampler,
        SequentialSampler,
        TensorDataset,
        default_collate,
    )
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

__all__ = ["TrainingRows", "facts_of_example", "facts_of_first_row", "on_device", "read_rows"]

Example = Callable[[int], tuple[Any, Any]]


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Private rows, by place.

    Args:
        loader: what the rows are read with. Its own batches are not used.
        tensors: inputs and targets where these are whole tensors, else None.
        facts: the public shapes and types of a row's input and target. None where there is no row to tell them.
    """

    loader: DataLoader[Any]
    tensors: tuple[Any, Any] | None
    facts: tuple[InputFacts, InputFacts] | None

    @property
    def count(self) -> int:
        """How many rows there are: private."""
        return len(self.loader.dataset)

    @property
    def collate(self) -> Callable[[list[Any]], Any] | None:
        """The function that makes a batch of rows, unless it stacks them as torch does."""
        return None if self.loader.collate_fn is default_collate else self.loader.collate_fn

    def batches(self, places: Iterable[NDArray[np.intp]], device: Any) -> Iterator[tuple[Any, Any] | None]:
        """Inputs and targets of the rows at these places, on the device; None for no places."""
        for batch in self._batches(places):
            yield None if batch is None else _pair_on(batch, device)

    def _batches(self, places: Iterable[NDArray[np.intp]]) -> Iterator[Any]:
        if self.tensors is not None:
            for chosen in map(torch.from_numpy, places):
                yield tuple(part[chosen] for part in self.tensors) if len(chosen) else None
            return
        own = self.loader
        yield from DataLoader(
            own.dataset,
            batch_sampler=(chosen.tolist() for chosen in places),
            collate_fn=_EmptyAsNone(own.collate_fn),
            num_workers=own.num_workers,
            pin_memory=own.pin_memory,
            timeout=own.timeout,
            worker_init_fn=own.worker_init_fn,
            multiprocessing_context=own.multiprocessing_context,
            generator=torch.Generator(),  # of the workers' own draws: with it, nothing is drawn from torch's state
        )


class _EmptyAsNone:
    """A collate function that may be called without rows. A class, so that it travels to workers."""

    def __init__(self, collate: Callable[[list[Any]], Any]) -> None:
        self.collate = collate

    def __call__(self, rows: list[Any]) -> Any:
        return self.collate(rows) if rows else None


def read_rows(inputs: Any, targets: Any = None, example: Example | None = None) -> TrainingRows:
    """Rows of two tensors, or of a `Dataset` or `DataLoader` in the place of `inputs`.

    Raises:
        ArgumentError: for tensors of different lengths, for a dataset without places (`IterableDataset`), and for a
            loader whose sampler does more than run through the rows or shuffle them.
    """
    if targets is not None:
        for name, part in (("inputs", inputs), ("targets", targets)):
            if not isinstance(part, torch.Tensor):
                raise ArgumentError(
                    f"{name} must be a tensor with rows on its first axis, got {type(part).__name__}. Give a Dataset "
                    "or a DataLoader alone, without targets"
                )
        if len(inputs) != len(targets):
            raise ArgumentError("inputs and targets must have the same number of rows")
        return _of_loader(DataLoader(TensorDataset(inputs, targets)), example)
    if isinstance(inputs, DataLoader):
        _refuse_sampler(inputs)
        return _of_loader(inputs, example)
    if isinstance(inputs, torch.Tensor):
        raise ArgumentError("targets are missing: give a tensor with as many rows as inputs")
    return _of_loader(_loader_of(inputs), example)


def _loader_of(rows: Any) -> DataLoader[Any]:
    if isinstance(rows, IterableDataset) or not (hasattr(rows, "__len__") and hasattr(rows, "__getitem__")):
        raise ArgumentError(
            f"inputs must be tensors, a DataLoader, or a Dataset with len(rows) and rows[k]; {type(rows).__name__} is "
            "refused. Each row is drawn by its place, so rows that only stream cannot be used"
        )
    return DataLoader(rows)


def _refuse_sampler(loader: DataLoader[Any]) -> None:
    if isinstance(loader.dataset, IterableDataset):
        _loader_of(loader.dataset)
    plain = type(loader.batch_sampler) is BatchSampler or loader.batch_sampler is None
    if not plain or type(loader.sampler) not in (SequentialSampler, RandomSampler):
        named = loader.sampler if plain else loader.batch_sampler
        raise ArgumentError(
            f"inputs: the loader's {type(named).__name__} is refused. Batches are drawn here, each row with "
            "probability sampling_rate, and no other sampling has this price. Give a DataLoader without a sampler, as "
            "it was before make_private"
        )
    if isinstance(loader.sampler, RandomSampler) and loader.sampler.replacement:
        raise ArgumentError("inputs: the loader draws rows with replacement, which has another price. Leave it out")


def _of_loader(loader: DataLoader[Any], example: Example | None) -> TrainingRows:
    rows = loader.dataset
    tensors = None
    if type(rows) is TensorDataset and len(rows.tensors) == 2 and loader.collate_fn is default_collate:
        tensors = rows.tensors[0], rows.tensors[1]
    if tensors is not None:
        facts: tuple[InputFacts, InputFacts] | None = (facts_of(tensors[0]), facts_of(tensors[1]))
    elif example is not None:
        facts = facts_of_example(example)
    else:
        facts = facts_of_first_row(rows, "inputs") if len(rows) else None
    return TrainingRows(loader, tensors, facts)


def facts_of_first_row(rows: Any, name: str) -> tuple[InputFacts, InputFacts]:
    """Shapes and types of a dataset's first row. Its values are not used.

    Raises:
        ArgumentError: if a row is not two tensors, or numbers.
    """
    try:
        inputs, targets = (torch.as_tensor(part)[None] for part in rows[0])
    except Exception:
        raise ArgumentError(
            f"{name}: the first row is not two tensors, inputs and a target, so no rows can be made up: give "
            "example=, a function of a number of rows that makes so many inputs and targets"
        ) from None
    return facts_of(inputs), facts_of(targets)


def facts_of_example(example: Example) -> tuple[InputFacts, InputFacts]:
    """Shapes and types of synthetic rows."""
    with torch.random.fork_rng():
        inputs, targets = example(1)
    return facts_of(inputs), facts_of(targets)


def on_device(facts: tuple[InputFacts, InputFacts], device: Any) -> tuple[InputFacts, InputFacts]:
    """The same facts of rows that were moved to the device."""
    return replace(facts[0], device=device), replace(facts[1], device=device)


def _pair_on(batch: Any, device: Any) -> tuple[Any, Any]:
    if not (isinstance(batch, (tuple, list)) and len(batch) == 2 and all(isinstance(p, torch.Tensor) for p in batch)):
        raise ArgumentError("inputs: a batch must be two tensors, inputs and targets, after the collate function")
    return batch[0].to(device), batch[1].to(device)
