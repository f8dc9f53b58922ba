"""Whether each row's gradient comes from that row alone: tried on synthetic rows, before anything is drawn.

Clipping bounds what one row adds to a sum only if the row reaches no other row's gradient. The probe compares the loss
and per-sample gradients of each row alone with those of the same row in company. It uses batches of 1, 2, 3, 5, 7 and
17, in other orders, twice, in training mode. It tries rows of very different scales, rows that are not finite, and
weights near to the initial ones as well as those. Drawn numbers (dropout) are held constant at two levels, and once
those of the first row are others than those of the rest.

It finds mistakes, not malice: code that knows when it is probed, or mixes rows only at batch sizes, values or steps
that were not tried, passes.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Literal

import numpy as np

from dpselect.errors import ArgumentError, missing_extra
from dpselect.integrations.opacus.fixed_draws import FixedDraws
from dpselect.integrations.opacus.kept_state import refuse_kept_rows
from dpselect.integrations.opacus.synthetic_rows import InputFacts, SyntheticRows, benign, harsh

try:
    import torch
    from opacus.grad_sample import GradSampleModule
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

__all__ = ["Reduction", "left_alone", "refuse_mixed_rows", "seed_all"]

Reduction = Literal["none", "sum", "mean"]

_ROWS: Final = 7
_ORDERS: Final = ([6, 5, 4, 3, 2, 1, 0], [4, 1, 2], [5, 3, 6, 0, 2], [1, 6])
_LEVELS: Final = (1e-6, 1.0 - 1e-6)
"""At the first nothing is dropped, at the second everything is; of drawn conditions one level meets each side."""
_TOLERANCES: Final = {torch.float64: (1e-5, 1e-11), torch.float32: (1e-2, 1e-5)}
"""Relative to the largest row of the same parameter, and of all. Sums of 1e5 terms err by 1e5 roundings at most: 1e-11
and 6e-3. The first is larger, since some layers compute in float32 no matter what they are given."""
_SEEDS: Final = (2, 1751, 1470)
"""Of Python's and NumPy's draws: for both the first number is below .02 with the second seed, and above .98 with the
last, so that what is done with some probability is done, and left."""
_COORDINATES: Final = 2048
_LARGE: Final = 2_000_000
"""Parameters above which a batch of 17 would take too long and too much memory."""
_GIVE_EXAMPLE: Final = "If synthetic rows do not suit this module, give example= (see the documentation)"


@dataclass(frozen=True, eq=False)
class _Observed:
    """Of one batch: for each row its loss and a digest of its gradient by parameter, shape (rows, digits)."""

    losses: Any
    outputs: Any
    gradients: dict[str, Any]


def refuse_mixed_rows(
    module: Any,
    loss: Callable[..., Any] | None,
    facts: tuple[InputFacts, InputFacts],
    *,
    example: Callable[[int], tuple[Any, Any]] | None = None,
    reduction: Reduction = "none",
    collate: Callable[[list[Any]], Any] | None = None,
) -> tuple[frozenset[str], SyntheticRows]:
    """Raise `ArgumentError` if a row reaches another row's loss or gradient, or the state of the module.

    Args:
        module: before Opacus wraps it; it is copied, and left as it is, like all global random states.
        loss: of outputs and targets; None for sums of the outputs.
        facts: the public shapes and types of inputs and targets, for synthetic rows.
        example: makes so many synthetic rows, where those of the facts do not suit; never rows of the data.
        reduction: what `loss` gives: one number a row, or their sum or mean.
        collate: what makes a batch of a list of rows, each an input and a target. None stacks them.

    Returns: the names of buffers that count calls, which training may change, and synthetic rows that suit.
    """
    with left_alone():
        torch.manual_seed(1)
        if example is not None:
            given = example(_ROWS)
            if len(given[0]) != _ROWS or len(given[1]) != _ROWS:
                raise ArgumentError(f"example must make as many rows as it is asked for: {_ROWS}")
        subject, rows, seen = _first_that_runs(module, loss, facts, example, reduction, collate)
        alone = _refuse_company(subject, rows, seen)
        small = sum(p.numel() for p in subject.module.parameters()) <= _LARGE
        if small:
            order = [k % _ROWS for k in range(17)]
            _same(alone, subject.run(rows, order), order, subject)
        drew = subject.drew
        for seed in _SEEDS[1:]:
            other = subject.again()
            other.seed = seed
            _refuse_others(other, other.run(rows, range(_ROWS)), rows)
        elsewhere = _refuse_elsewhere(subject, rows)
        _refuse_contagion(subject, rows, alone)
        if drew:
            other = subject.again(level=_LEVELS[1])
            _refuse_others(other, other.run(rows, range(_ROWS)), rows)
            _refuse_draws_of_others(subject, rows)
        if not (_differ(alone.outputs) or elsewhere):
            raise ArgumentError(f"make_module: its outputs are equal for all synthetic rows. {_GIVE_EXAMPLE}")
        counts = refuse_kept_rows(subject.plain, subject.loss, rows, FixedDraws(_LEVELS[0]))
        if _takes(subject, signed := harsh(rows)):
            counts |= refuse_kept_rows(subject.plain, subject.loss, signed, FixedDraws(_LEVELS[0]))
    return counts, replace(rows, inputs=rows.inputs.to(facts[0].dtype), targets=rows.targets.to(facts[1].dtype))


class _Subject:
    """A copy of the module with Opacus's hooks, run on rows."""

    def __init__(
        self, module: Any, loss: Any, reduction: Reduction, level: float = _LEVELS[0], rest: float | None = None
    ) -> None:
        self.plain, self.loss, self.reduction, self.level, self.rest = module, loss, reduction, level, rest
        self.module = copy.deepcopy(module).train()
        self.asked = copy.deepcopy(loss)
        self.names = {name: p for name, p in self.module.named_parameters() if p.requires_grad}
        self.dtype = next((p.dtype for p in self.names.values()), torch.float32)
        self.drew, self.seed = False, _SEEDS[0]
        kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
        self.padding = [(m.weight, m.padding_idx) for m in self.module.modules() if isinstance(m, kinds)]
        try:
            self.wrapped = GradSampleModule(self.module, loss_reduction="mean" if reduction == "mean" else "sum")
        except Exception as error:
            raise ArgumentError(
                f"make_module: Opacus cannot give this module's per-sample gradients: {error}"
            ) from error

    def again(self, *, level: float = _LEVELS[0], rest: float | None = None, moved: float = 0.0) -> _Subject:
        """The same in its first state, at another level of draws or with parameters moved by so much."""
        plain = copy.deepcopy(self.plain)
        with torch.no_grad():
            for p in plain.parameters():
                if moved and p.dtype.is_floating_point:
                    p.add_(moved * torch.randn(p.shape, dtype=p.dtype).to(p.device))
        return _Subject(plain, self.loss, self.reduction, level, rest)

    def run(self, rows: SyntheticRows, order: Sequence[int]) -> _Observed:
        """Losses and gradients of the rows at these places, as training computes them."""
        chosen = list(order)
        inputs, targets = rows.take(chosen)
        for p in self.names.values():
            p.grad = p.grad_sample = None
        seed_all(self.seed)
        draws = FixedDraws(self.level, self.rest)
        with draws, torch.enable_grad():
            outputs = self.wrapped(inputs)
            losses = _outputs_summed(outputs) if self.asked is None else self.asked(outputs, targets)
            if self.reduction == "none" and losses.shape != (len(chosen),):
                raise ArgumentError('loss must give one number for each row of the batch (reduction="none")')
            losses.sum().backward()
        self.drew |= draws.drew
        count = len(chosen) if self.reduction == "mean" else 1
        flat = {name: self._gradient(name, p, len(chosen)) for name, p in self.names.items()}
        self._refuse_other_sums(flat, count)
        gradients = {name: _digest(found).cpu() for name, found in flat.items()}
        first = next(_tensors(outputs))
        return _Observed(losses.detach().double().cpu().reshape(-1), first.detach().double().cpu(), gradients)

    def _gradient(self, name: str, parameter: Any, rows: int) -> Any:
        """Per-sample gradients of a parameter, shape (rows, size)."""
        found = getattr(parameter, "grad_sample", None)
        if found is None or isinstance(found, list):
            raise ArgumentError(
                f"make_module: Opacus finds no per-sample gradient of parameter {name!r} in one pass (is it unused? "
                "then freeze it with requires_grad_(False))"
            )
        if len(found) != rows:
            raise ArgumentError(
                f"make_module: parameter {name!r} has {len(found)} per-sample gradients for a batch of {rows}: rows "
                "must stay on the first axis, one for each row, in every layer"
            )
        return found.detach().reshape(rows, math.prod(parameter.shape))

    def _refuse_other_sums(self, gradients: dict[str, Any], factor: int) -> None:
        """Per-sample gradients must add up to what torch computes for the batch.

        But for the padding of an embedding, which Opacus gives a gradient.
        """
        scales = {name: found.abs().sum(dim=0).max() for name, found in gradients.items()}
        if not all(bool(scale.isfinite()) for scale in scales.values()):
            return
        largest = max((float(scale) for scale in scales.values()), default=0.0)
        for name, found in gradients.items():
            parameter = self.names[name]
            if parameter.grad is None:
                continue
            error = (found.sum(dim=0).view_as(parameter) - parameter.grad * factor).abs()
            for weight, place in self.padding:
                if weight is parameter and place is not None:
                    error[place] = 0.0
            if float(error.max()) > _tolerance(self.dtype, float(scales[name]), largest):
                raise ArgumentError(
                    f"make_module: Opacus's per-sample gradients of parameter {name!r} do not add up to its gradient: "
                    "the module uses it in a way that Opacus does not follow, or its rows mix, or the loss is not "
                    "reduced as declared"
                )


def _first_that_runs(
    module: Any,
    loss: Any,
    facts: tuple[InputFacts, InputFacts],
    example: Callable[[int], tuple[Any, Any]] | None,
    reduction: Reduction,
    collate: Callable[[list[Any]], Any] | None,
) -> tuple[_Subject, SyntheticRows, _Observed]:
    """In float64 if the module can, which tells mixing from rounding, and with the first synthetic rows that suit."""
    failure: Exception | None = None
    for doubled in (True, False):
        try:
            plain, measure = copy.deepcopy(module), copy.deepcopy(loss)
            if doubled:
                plain = plain.double()
                measure = measure.double() if isinstance(measure, torch.nn.Module) else measure
        except Exception as error:
            raise ArgumentError(f"make_module: this module cannot be copied, and so not be tried: {error}") from error
        torch.set_default_dtype(torch.float64 if doubled else torch.float32)
        device = facts[0].device
        made = [_typed(example(_ROWS), doubled)] if example else benign(plain, *facts, _ROWS, doubled=doubled)
        for inputs, targets in made:
            rows = SyntheticRows(inputs.to(device), targets.to(device), collate)
            try:
                subject = _Subject(plain, measure, reduction)
                return subject, rows, subject.run(rows, range(_ROWS))
            except ArgumentError:
                raise
            except Exception as error:
                failure = failure or error
                last = error
    raise ArgumentError(
        f"make_module: module or loss fail on {_ROWS} synthetic rows: {type(last).__name__}: {last}. Batches have any "
        f"number of rows. {_GIVE_EXAMPLE}"
    ) from failure


def _typed(rows: tuple[Any, Any], doubled: bool) -> tuple[Any, Any]:
    wide = [each.double() if doubled and each.dtype.is_floating_point else each for each in rows]
    return wide[0], wide[1]


def _refuse_company(subject: _Subject, rows: SyntheticRows, seen: _Observed) -> _Observed:
    """Each row alone. Raises if it differs from that row in one of the batches."""
    try:
        singles = [subject.run(rows, [k]) for k in range(_ROWS)]
        alone = _Observed(
            torch.cat([each.losses for each in singles]),
            torch.cat([each.outputs.reshape(1, -1) for each in singles]),
            {name: torch.cat([each.gradients[name] for each in singles]) for name in seen.gradients},
        )
        _same(alone, seen, range(_ROWS), subject)
        for order in _ORDERS:
            _same(alone, subject.run(rows, order), order, subject)
        again = subject.run(rows, range(_ROWS))
    except ArgumentError:
        raise
    except Exception as error:
        raise ArgumentError(
            f"make_module: module or loss take {_ROWS} synthetic rows but fail on batches of other sizes: "
            f"{type(error).__name__}: {error}. Batches have any number of rows"
        ) from error
    _same(alone, again, range(_ROWS), subject)
    return alone


def _refuse_others(subject: _Subject, seen: _Observed, rows: SyntheticRows) -> None:
    """Raise if two rows, each alone, differ from what they were in the batch of all."""
    for k in (0, 4):
        _same(subject.run(rows, [k]), seen, [k], subject, at=[k])


def _refuse_draws_of_others(subject: _Subject, rows: SyntheticRows) -> None:
    """Raise if a row, the first of its batch, differs when others are there whose draws are not its own."""
    for level, rest in (_LEVELS, _LEVELS[::-1]):
        other = subject.again(level=level, rest=rest)
        for k in (0, 4):
            seen = other.run(rows, [k, *(place for place in range(_ROWS) if place != k)])
            _same(other.run(rows, [k]), seen, [k], other, at=[0])


def _takes(subject: _Subject, rows: SyntheticRows) -> bool:
    """Whether module and loss take these rows."""
    with suppress(Exception):
        subject.again().run(rows, range(_ROWS))
        return True
    return False


def _refuse_elsewhere(subject: _Subject, rows: SyntheticRows) -> bool:
    """Try moved parameters and harsh rows, if they suit. Returns whether outputs of two rows differed."""
    differ = False
    # far from the start float32 is too coarse to tell mixing from rounding
    for moved in (0.1, 1.0) if subject.dtype is torch.float64 else (0.1,):
        for made in (harsh(rows), rows):
            other = subject.again(moved=moved)
            try:
                seen = other.run(made, range(_ROWS))
            except ArgumentError:
                raise
            except Exception:  # rows or parameters that it does not take
                continue
            differ |= _differ(seen.outputs)
            for order in ([5, 3, 6, 0, 2], [6], [1], [4]):
                _same(seen, other.run(made, order), order, other)
            break
    return differ


def _refuse_contagion(subject: _Subject, rows: SyntheticRows, alone: _Observed) -> None:
    """A row of zeros, or one that is not finite, may change its own gradient only, and nothing fills it."""
    not_finite = ((2, float("nan"), 2), (5, float("inf"), 2), (3, float("-inf"), 2))  # 0 times infinity is no zero
    for place, value, step in ((4, 0.0, 1), *(not_finite if rows.inputs.dtype.is_floating_point else ())):
        inputs = rows.inputs.clone()
        inputs.view(_ROWS, -1)[place, ::step] = value
        others, spoilt = [k for k in range(_ROWS) if k != place], subject.again()
        try:
            seen = spoilt.run(replace(rows, inputs=inputs), range(_ROWS))
            single = spoilt.run(replace(rows, inputs=inputs), [place])
        except ArgumentError:
            raise
        except Exception:  # it checks its values
            continue
        _same(alone, seen, others, subject, at=others)
        if seen.outputs.shape[:1] == (_ROWS,):  # gradients of what is not a number depend on the processor's vectors
            _refuse_different({"the output": (single.outputs[0], seen.outputs[place])}, subject.dtype)


def _same(
    alone: _Observed, seen: _Observed, order: Sequence[int], subject: _Subject, at: Sequence[int] | None = None
) -> None:
    """Raise if rows `order`, each alone, differ from those at these places of a batch (all rows if `at` is None)."""
    places = list(range(len(order)) if at is None else at)
    single = all(len(each) == 1 for each in alone.gradients.values())
    chosen = [0] if single else list(order)
    pairs = {
        f"the gradient of parameter {name!r}": (alone.gradients[name][chosen], found[places])
        for name, found in seen.gradients.items()
    }
    if subject.reduction == "none":
        pairs["the loss"] = (alone.losses[chosen].reshape(-1, 1), seen.losses[places].reshape(-1, 1))
    elif at is None and len(alone.losses) == _ROWS:
        expected = alone.losses[chosen].sum() / (len(chosen) if subject.reduction == "mean" else 1)
        pairs["the loss"] = (expected.reshape(1, 1), seen.losses.reshape(1, 1))
    _refuse_different(pairs, subject.dtype)


def _refuse_different(pairs: dict[str, tuple[Any, Any]], dtype: Any) -> None:
    """Of each thing what it is alone, and in company."""
    scales = {name: float(alone.nan_to_num(0.0, 0.0, 0.0).abs().max()) for name, (alone, _) in pairs.items()}
    for name, (alone, other) in pairs.items():
        allowed = _tolerance(dtype, scales[name], max(scales.values()))
        if not torch.allclose(alone, other, rtol=0.0, atol=allowed, equal_nan=True):
            raise ArgumentError(
                f"make_module, loss: {name} of a row depends on the other rows of its batch or on earlier batches (on "
                "synthetic rows), so one row could move the released sum by more than max_grad_norm. Keep rows on the "
                "first axis, compute nothing across it, and keep nothing from call to call"
            )


def _tolerance(dtype: Any, scale: float, largest: float) -> float:
    relative, floor = _TOLERANCES.get(dtype, _TOLERANCES[torch.float32])
    return relative * scale + floor * largest


def _differ(outputs: Any) -> bool:
    return bool((outputs != outputs[:1]).any())


def _digest(flat: Any) -> Any:
    """Rows of at most `_COORDINATES` numbers: all of a gradient, or some of them, a random sum and the length."""
    size = flat.shape[1]
    if size <= _COORDINATES:
        return flat.double()
    some, signs = _sketch(size)
    some, signs = some.to(flat.device), signs.to(flat.device, flat.dtype)
    sums = torch.stack([flat @ signs / math.sqrt(size), flat.norm(dim=1)], dim=1)
    return torch.cat([flat[:, some], sums], dim=1).double()


@lru_cache(maxsize=4)
def _sketch(size: int) -> tuple[Any, Any]:
    """Places of some numbers, and a sign for each."""
    generator = torch.Generator().manual_seed(size)
    some = torch.randint(0, size, (_COORDINATES,), generator=generator)
    return some, torch.randint(0, 2, (size,), generator=generator, dtype=torch.int8) * 2 - 1


def _outputs_summed(outputs: Any) -> Any:
    """A loss for each row that every output enters, each with another weight."""
    total: Any = 0.0
    for each in _tensors(outputs):
        flat = each.reshape(len(each), -1)
        total = total + (flat * torch.cos(torch.arange(flat.shape[1], device=flat.device))).sum(dim=1)
    return total


def _tensors(outputs: Any) -> Iterator[Any]:
    if isinstance(outputs, torch.Tensor):
        yield outputs
    elif isinstance(outputs, dict):
        yield from (found for each in outputs.values() for found in _tensors(each))
    elif isinstance(outputs, (tuple, list)):
        yield from (found for each in outputs for found in _tensors(each))


def seed_all(seed: int) -> None:
    """Seed the draws of torch, NumPy and Python."""
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)


@contextmanager
def left_alone() -> Iterator[None]:
    """Global random states and the default type as they were."""
    numpys, pythons, kind = np.random.get_state(), random.getstate(), torch.get_default_dtype()  # noqa: NPY002
    try:
        with torch.random.fork_rng():
            yield
    finally:
        np.random.set_state(numpys)  # noqa: NPY002
        random.setstate(pythons)
        torch.set_default_dtype(kind)
