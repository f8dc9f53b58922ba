"""Torch's random draws replaced by constants, so that dropout is the same for a row alone and for a row in company."""

from __future__ import annotations

import math
from typing import Any

from dpselect.errors import missing_extra

try:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

__all__ = ["FixedDraws"]


class FixedDraws(TorchDispatchMode):  # type: ignore[misc]
    """Every element drawn within is the same quantile `level` of its distribution.

    A permutation becomes the reversed order, so that a shuffle of the batch shows. Drawn indices become the first or
    the last. `drew` tells whether anything was drawn. Distributions that are not listed here are drawn as always.

    Args:
        level: the quantile, in (0, 1).
        rest: the quantile of all but the first entry along axis 0, so that draws of the first row differ from those of
            others. None: the same.
    """

    def __init__(self, level: float, rest: float | None = None) -> None:
        super().__init__()
        self.level, self.rest = level, rest
        self.drew = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        result = func(*args, **given)
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return result
        self.drew = True
        change = vars(FixedDraws).get(f"_{func.overloadpacket.__name__.rstrip('_')}")
        if change is not None:
            asked = func._schema.arguments  # an argument that equals its default is left out of args
            values = {each.name: each.default_value for each in asked if each.has_default_value()}
            values |= {each.name: value for each, value in zip(asked, args, strict=False)}
            change(self, result, values | given)
            if self.rest is not None and func.overloadpacket.__name__ != "randperm":
                self._change_rest(change, result, values | given)
        return result

    def _change_rest(self, change: Any, result: Any, given: dict[str, Any]) -> None:
        several = isinstance(result, tuple)
        parts = result if several else (result,)
        others = tuple(each.clone() for each in parts)
        change(FixedDraws(self.rest or 0.0), others if several else others[0], given)
        for part, other in zip(parts, others, strict=True):
            if part.dim():
                part[1:] = other[1:]

    def _bernoulli(self, result: Any, given: dict[str, Any]) -> None:
        if given.get("p") is None:  # probabilities are the input itself
            result.copy_(self.level < given["self"])
        else:
            result.copy_(torch.as_tensor(self.level < given["p"], device=result.device).expand_as(result))

    def _native_dropout(self, result: Any, given: dict[str, Any]) -> None:
        kept = self.level < 1.0 - given["p"]
        result[0].copy_(given["input"] / (1.0 - given["p"]) if kept else torch.zeros_like(given["input"]))
        result[1].fill_(kept)

    def _uniform(self, result: Any, given: dict[str, Any]) -> None:
        low, high = given.get("from", 0.0), given.get("to", 1.0)
        result.fill_(low + self.level * (high - low))

    def _rand(self, result: Any, _given: dict[str, Any]) -> None:
        result.fill_(self.level)

    _rand_like = _rand

    def _normal(self, result: Any, given: dict[str, Any]) -> None:
        mean, deviation = given.get("mean", 0.0), given.get("std", 1.0)
        result.copy_(torch.as_tensor(mean + _normal_quantile(self.level) * deviation).expand_as(result))

    def _randn(self, result: Any, _given: dict[str, Any]) -> None:
        result.fill_(_normal_quantile(self.level))

    _randn_like = _randn

    def _exponential(self, result: Any, given: dict[str, Any]) -> None:
        result.fill_(-math.log1p(-self.level) / given.get("lambd", 1.0))

    def _randint(self, result: Any, given: dict[str, Any]) -> None:
        low, high = given.get("low", 0), given["high"]
        result.fill_(low if self.level < 0.5 else high - 1)

    _randint_like = _randint

    def _randperm(self, result: Any, _given: dict[str, Any]) -> None:
        result.copy_(torch.arange(len(result), device=result.device).flip(0))


def _normal_quantile(level: float) -> float:
    """Bounded: a quantile far out would only make numbers overflow."""
    return max(-3.0, min(3.0, math.log(level / (1.0 - level))))
