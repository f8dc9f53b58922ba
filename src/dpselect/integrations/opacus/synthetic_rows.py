"""Synthetic rows of the shape and type of the data, for the probe: no value of the data is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from dpselect.errors import missing_extra

try:
    import torch
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

__all__ = ["InputFacts", "SyntheticRows", "benign", "facts_of", "harsh"]

_SCALES: Final = (0.01, 1.0, 100.0, 0.5, 10.0, 1e-3, 3.0)
_LABELS: Final = (3, 2, 1)


@dataclass(frozen=True, eq=False)
class SyntheticRows:
    """Synthetic inputs and targets, rows on the first axis, and what makes a batch of them (None stacks them)."""

    inputs: Any
    targets: Any
    collate: Callable[[list[Any]], Any] | None = None

    def take(self, places: Iterable[int]) -> tuple[Any, Any]:
        """The batch of the rows at these places."""
        chosen = list(places)
        if self.collate is None:
            return self.inputs[chosen], self.targets[chosen]
        inputs, targets = self.collate([(self.inputs[k], self.targets[k]) for k in chosen])
        return inputs.to(self.inputs.device), targets.to(self.inputs.device)


@dataclass(frozen=True)
class InputFacts:
    """The public facts of a tensor: the shape of one row, its type, its device."""

    shape: tuple[int, ...]
    dtype: Any
    device: Any

    @property
    def floats(self) -> bool:
        """Whether rows hold numbers with a fraction."""
        return bool(self.dtype.is_floating_point or self.dtype.is_complex)


def facts_of(tensor: Any) -> InputFacts:
    """The facts of a tensor with one row for each index of its first axis."""
    return InputFacts(tuple(tensor.shape[1:]), tensor.dtype, tensor.device)


def benign(
    module: Any, inputs: InputFacts, targets: InputFacts, count: int, *, doubled: bool
) -> Iterator[tuple[Any, Any]]:
    """Rows to try in turn until one set suits: numbers in [0, 1), or integers below one limit after another.

    The first limit of inputs is the size of the smallest embedding. `doubled` makes float64 of float32.
    """
    for first, second in product(_limits(inputs, _indices(module, inputs)), _limits(targets, _labels(targets))):
        yield _drawn(inputs, count, first, doubled), _drawn(targets, count, second, doubled)


def harsh(rows: SyntheticRows) -> SyntheticRows:
    """The same targets, and inputs of either sign at scales from 0.001 to 100, so that an outlier shows.

    Indices are in another order. Every second row ends in zeros from a step of its own, as padded sequences do.
    """
    inputs = rows.inputs
    if inputs.dtype.is_floating_point:
        scales = torch.tensor([_SCALES[k % len(_SCALES)] for k in range(len(inputs))], dtype=inputs.dtype)
        scales = scales.to(inputs.device).reshape(-1, *[1] * (inputs.dim() - 1))
        inputs = torch.randn(inputs.shape, dtype=inputs.dtype).to(inputs.device) * scales
    else:
        inputs = inputs.flip(0).clone()
    if inputs.dim() > 1:
        for k in range(1, len(inputs), 2):
            inputs[k, max(1, inputs.shape[1] * k // len(inputs)) :] = 0
    return replace(rows, inputs=inputs)


def _limits(facts: InputFacts, limits: tuple[int, ...]) -> tuple[int, ...]:
    return (0,) if facts.floats or facts.dtype is torch.bool else limits


def _indices(module: Any, facts: InputFacts) -> tuple[int, ...]:
    kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    sizes = [each.num_embeddings for each in module.modules() if isinstance(each, kinds)]
    if facts.device.type != "cpu":  # an index out of range cannot be recovered from there
        return (min(sizes),) if sizes else (2,)
    return (*((min(sizes),) if sizes else (256,) if facts.dtype is torch.uint8 else (5,)), 2)


def _labels(facts: InputFacts) -> tuple[int, ...]:
    return _LABELS if facts.device.type == "cpu" else _LABELS[1:2]


def _drawn(facts: InputFacts, count: int, limit: int, doubled: bool) -> Any:
    shape = (count, *facts.shape)
    make: Callable[..., Any] = torch.rand
    if facts.floats:
        wide = torch.float64 if doubled and facts.dtype.is_floating_point else facts.dtype
        return make(shape, dtype=torch.float64).to(wide).to(facts.device)
    return torch.randint(0, limit or 2, shape).to(facts.dtype).to(facts.device)
