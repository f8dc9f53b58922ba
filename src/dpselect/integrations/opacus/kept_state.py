"""Rows that a module or a loss keeps elsewhere than in gradients."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from dpselect.errors import ArgumentError, missing_extra
from dpselect.integrations.opacus.synthetic_rows import SyntheticRows

try:
    import torch
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

__all__ = ["refuse_kept_rows", "untrained_state"]

_DEPTH = 4


def untrained_state(module: Any, counts: frozenset[str]) -> dict[str, Any]:
    """The contents of all that a module keeps but trained parameters and counts of calls: buffers, frozen parameters.

    Further entries of `state_dict()` are in it too.
    """
    trained = {name for name, each in module.named_parameters(remove_duplicate=False) if each.requires_grad}
    found = {**dict(module.named_buffers()), **dict(module.named_parameters()), **module.state_dict()}
    return {name: _plain(each) for name, each in found.items() if name not in trained | counts}


def refuse_kept_rows(
    module: Any, loss: Any, rows: SyntheticRows, draws: AbstractContextManager[Any], *, training: bool = True
) -> frozenset[str]:
    """Raise `ArgumentError` if something else than a count of calls changes in module or loss when they are called.

    Two copies see different numbers of different rows, twice each. Returns the names of buffers that count calls.
    """
    before = _state(module, loss)
    after = [_after(module, loss, rows, batch, draws, training) for batch in ([0, 1, 2], [6, 4, 5, 3])]
    counts = set()
    for name in sorted(before.keys() | after[0].keys() | after[1].keys()):
        first, one, other = before.get(name), after[0].get(name), after[1].get(name)
        if one != other:
            raise ArgumentError(
                f"make_module, loss: {name} changes with the rows that were seen (a buffer or an attribute), which no "
                "noise covers"
            )
        if one != first:
            if not _counts(one):
                raise ArgumentError(f"make_module, loss: calls change {name}, a buffer, an attribute or a parameter")
            counts.add(name)
    return frozenset(counts)


def _after(module: Any, loss: Any, rows: SyntheticRows, batch: list[int], draws: Any, training: bool) -> dict[str, Any]:
    module, loss = copy.deepcopy(module).train(training), copy.deepcopy(loss)
    for _ in range(2):
        torch.manual_seed(3)
        with draws:
            inputs, targets = rows.take(batch)
            outputs = module(inputs)
            if loss is not None:
                loss(outputs, targets)
    return _state(module, loss)


def _counts(value: Any) -> bool:
    """One number: a tensor of a whole type with one element, or a number of Python."""
    return isinstance(value, (int, float)) or (isinstance(value, tuple) and value[0] == "one whole number")


def _state(module: Any, loss: Any) -> dict[str, Any]:
    found = dict(_attributes(module))
    if isinstance(loss, torch.nn.Module):
        found |= {f"loss.{name}": value for name, value in _attributes(loss)}
    elif hasattr(loss, "__dict__"):
        found |= {f"loss.{name}": _plain(value) for name, value in vars(loss).items()}
    return found


def _attributes(module: Any) -> Iterator[tuple[str, Any]]:
    for place, part in module.named_modules():
        for name, value in vars(part).items():
            prefix = f"{place}." if place else ""
            if name in ("_buffers", "_parameters"):
                yield from ((prefix + key, _plain(each)) for key, each in value.items())
            elif name != "_modules" and not name.endswith("_hooks") and name != "training":
                yield prefix + name, _plain(value)


def _plain(value: Any, depth: int = _DEPTH) -> Any:
    """Values that compare by content. Other objects are represented by their type."""
    if isinstance(value, torch.Tensor):
        whole = value.detach().cpu()
        kind = not (whole.dtype.is_floating_point or whole.dtype.is_complex) and whole.numel() == 1
        content = whole.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if whole.numel() else b""
        return ("one whole number" if kind else "tensor", str(whole.dtype), tuple(whole.shape), content)
    if isinstance(value, np.ndarray):
        return ("array", str(value.dtype), value.shape, value.tobytes())
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return value
    if depth and isinstance(value, dict):
        return ("dict", *((repr(key), _plain(each, depth - 1)) for key, each in value.items()))
    if depth and isinstance(value, (list, tuple, deque)):
        return ("list", *(_plain(each, depth - 1) for each in value))
    return ("object", type(value).__qualname__)
