"""A torch network for the rows of a table: tried before anything is charged, trained, kept as arrays, and asked."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, missing_extra
from dpselect.numerics.search import Array
from dpselect.randomness import RandomSource, keyed_source

try:
    import torch
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

from dpselect.integrations.opacus.kept_state import refuse_kept_rows
from dpselect.integrations.opacus.synthetic_rows import SyntheticRows
from dpselect.integrations.opacus.training import PrivateTraining

__all__ = ["TableNetwork"]

_BLOCK: Final = 4096
"""Rows that are answered at once, where rounding may depend on the other rows."""
_SEEDS: Final = (1, 2)
_LARGEST_INTEGER: Final = 2**53
_LARGEST_FLOAT: Final = float(np.finfo(np.float32).max)
_BIGGEST: Final = 1e6
"""Outputs are clipped there, so that an answer is always a number."""


@dataclass(frozen=True)
class TableNetwork:
    """A network for rows of so many features.

    Args:
        make: makes the network, from the numbers of features and outputs.
        features: the number of features.
        outputs: the number of outputs.
        classes: whether outputs are scores of classes. Else there is one, in [-1, 1].
    """

    make: Callable[[int, int], Any]
    features: int
    outputs: int
    classes: bool

    def zeros(self) -> tuple[Array, ...]:
        """Arrays of zeros, of the shapes of the network's state. Raises `ArgumentError` for a network without use."""
        return tuple(np.zeros(shape) for shape in _shapes(self))

    def check(self, settings: Mapping[str, Mapping[str, Any]]) -> None:
        """Try the network on synthetic rows. Raises `ArgumentError` for one in which rows mix, and the like."""
        _shapes(self)
        some = {"noise_multiplier": 1.0, "sampling_rate": 0.5, "steps": 1, "max_grad_norm": 1.0}
        kept = {key: settings["training"][key] for key in ("max_physical_batch_size", "grad_sample_mode", "clipping")}
        _tried(self, tuple({**some, **kept, "expected_batch_size": 1.0}.items()))

    def trained(
        self,
        settings: Mapping[str, Mapping[str, Any]],
        rows: Array,
        targets: NDArray[Any],
        random: RandomSource,
        checkpoints: str | None = None,
    ) -> tuple[Array, ...]:
        """The state of the network that these rows train, as arrays."""
        _shapes(self)
        kind = torch.int64 if self.classes else torch.float32
        with _one_thread(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Full backward hook")  # the rows need no gradient
            module = PrivateTraining(**settings["training"]).fit(
                self._made,
                partial(_optimizer, settings["optimizer"]),
                torch.nn.CrossEntropyLoss(reduction="none") if self.classes else _squared_error,
                torch.from_numpy(_float32(rows)),
                torch.from_numpy(np.asarray(targets)).to(kind),
                random=random,
                checkpoints=checkpoints,
            )
        return tuple(part.detach().numpy().astype(np.float64) for part in module.state_dict().values())

    def answers(self, weights: Sequence[Array], rows: Array, *, alone: bool) -> Array:
        """The outputs of the network with these weights, shape (rows, outputs).

        Args:
            weights: its state.
            rows: shape (rows, features).
            alone: ask one row at a time, from one place in memory. Then no answer depends on other rows, not even by
                rounding, as a score of private rows needs it.
        """
        found = torch.empty((len(rows), self.outputs))
        given = torch.from_numpy(_float32(rows))
        with torch.random.fork_rng(), _one_thread(), torch.inference_mode():
            module = self._with(weights)
            if alone:
                row = torch.empty((1, self.features))
                for place in range(len(given)):
                    found[place] = module(row.copy_(given[place]))[0]
            else:
                for start in range(0, len(given), _BLOCK):
                    found[start : start + _BLOCK] = module(given[start : start + _BLOCK])
        outputs: Array = found.double().nan_to_num(0.0, _BIGGEST, -_BIGGEST).clamp(-_BIGGEST, _BIGGEST).numpy()
        return outputs

    def _made(self) -> Any:
        """A new network. Raises `ArgumentError` if its function fails, or makes none."""
        try:
            module = self.make(self.features, self.outputs)
        except Exception as error:
            raise ArgumentError(
                f"module: the function fails for {self.features} columns and {self.outputs} outputs: "
                f"{type(error).__name__}: {error}"
            ) from error
        if not isinstance(module, torch.nn.Module):
            raise ArgumentError(f"module: the function must return a torch.nn.Module, got {type(module).__name__}")
        return module

    def _seeded(self, seed: int) -> Any:
        torch.manual_seed(seed)
        return self._made().eval()

    def _with(self, weights: Sequence[Array]) -> Any:
        """A network in this state."""
        module = self._seeded(_SEEDS[0])
        state = module.state_dict()
        if [tuple(part.shape) for part in state.values()] != [each.shape for each in weights]:
            raise ArgumentError("module: the function makes another network than the one that was trained")
        loaded = {
            name: torch.from_numpy(np.array(each)).to(part.dtype)
            for (name, part), each in zip(state.items(), weights, strict=True)
        }
        module.load_state_dict(loaded)
        return module.eval()


@lru_cache(maxsize=16)
def _shapes(network: TableNetwork) -> tuple[tuple[int, ...], ...]:
    """The shapes of the state. Raises `ArgumentError` for a network that cannot be kept as arrays, or asked."""
    with torch.random.fork_rng(), _one_thread(), torch.inference_mode():
        torch.manual_seed(3)
        rows = torch.rand((3, network.features)) * 2.0 - 1.0
        first, second = (network._seeded(seed) for seed in _SEEDS)
        parts = [*first.parameters(), *first.buffers()]
        if not any(each.requires_grad for each in first.parameters()):
            raise ArgumentError("module: the network has no parameter to train")
        if any(part.device.type != "cpu" for part in parts):
            raise ArgumentError("module: a study trains on the processor: leave the network there")
        state = first.state_dict()
        _refuse_other_numbers(state)
        try:
            found = first(rows)
        except Exception as error:
            raise ArgumentError(
                f"module: the network fails for 3 rows of {network.features} float32 columns: "
                f"{type(error).__name__}: {error}"
            ) from error
        wanted = (3, network.outputs)
        if not isinstance(found, torch.Tensor) or tuple(found.shape) != wanted:
            shown = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
            raise ArgumentError(
                f"module: the network must give {network.outputs} numbers for each row, of shape {wanted} for 3 rows, "
                f"got {shown}"
            )
        try:
            second.load_state_dict(state)
        except Exception as error:
            raise ArgumentError(f"module: two networks of the function differ: {error}") from None
        signed = SyntheticRows(torch.rand((7, network.features)) * 2.0 - 1.0, torch.zeros(7))
        refuse_kept_rows(network._seeded(_SEEDS[0]), None, signed, nullcontext(), training=False)
        if not torch.equal(second(rows), found):
            raise ArgumentError(
                "module: two networks with the same state_dict() answer differently. Keep everything that the network "
                "draws in parameters or buffers, and let it draw nothing in eval mode"
            )
    return tuple(tuple(part.shape) for part in state.values())


def _refuse_other_numbers(state: Mapping[str, Any]) -> None:
    for name, part in state.items():
        whole = isinstance(part, torch.Tensor) and not (part.dtype.is_floating_point or part.dtype.is_complex)
        plain = whole or (isinstance(part, torch.Tensor) and part.dtype in (torch.float32, torch.float64))
        if not plain or (whole and part.numel() and int(part.abs().max()) > _LARGEST_INTEGER):
            raise ArgumentError(f"module: {name!r} of the state must be a tensor of float32, float64 or small integers")


@lru_cache(maxsize=64)
def _tried(network: TableNetwork, settings: tuple[tuple[str, Any], ...]) -> None:
    """One step without rows. Everything that the training refuses is refused."""
    rows, targets = np.zeros((0, network.features)), np.zeros(0)
    plain = {"name": "sgd", "learning_rate": 0.1, "momentum": 0.0, "weight_decay": 0.0}
    try:
        network.trained({"training": dict(settings), "optimizer": plain}, rows, targets, keyed_source("synthetic rows"))
    except ArgumentError as error:
        said = str(error).removeprefix("make_module, loss: ").removeprefix("make_module: ").removeprefix("module: ")
        raise ArgumentError(f"module: {said}") from None


def _float32(rows: Array) -> NDArray[np.float32]:
    """Numbers that no float32 holds count as the largest ones. Another conversion would warn of one cell."""
    return np.asarray(np.clip(rows, -_LARGEST_FLOAT, _LARGEST_FLOAT), dtype=np.float32)


def _squared_error(outputs: Any, targets: Any) -> Any:
    return (outputs[:, 0] - targets) ** 2


def _optimizer(settings: Mapping[str, Any], parameters: Any) -> Any:
    rate, decay = settings["learning_rate"], settings["weight_decay"]
    if settings["name"] == "sgd":
        return torch.optim.SGD(parameters, lr=rate, momentum=settings["momentum"], weight_decay=decay)
    kind = torch.optim.Adam if settings["name"] == "adam" else torch.optim.AdamW
    return kind(parameters, lr=rate, weight_decay=decay)


@contextmanager
def _one_thread() -> Iterator[None]:
    """A training gives the same bytes wherever it runs; trials run side by side."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
