"""A training in several processes of torch.distributed: each clips some parts of a batch, and all have every sum.

Every process draws the same batches and the same noise from one source. Part k of a batch is clipped by process k
modulo the number of processes. The sums of the parts are added in the order of the parts, as one process adds them, and
then the noise. So each process makes the steps that one process would make, to the bit, at the price of one.

Source: docs/theory/clipped-sums.md, Theorem 3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

from dpselect.errors import ArgumentError, missing_extra
from dpselect.integrations.opacus.row_batches import TrainingRows
from dpselect.randomness import RandomSource, keyed_source, resolve
from dpselect.tuning.worker_check import build_here

try:
    import torch
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

__all__ = ["ALONE", "Processes", "join_processes"]

_COMPARED: Final = ("code or versions", "random", "settings", "rows", "make_module")


@dataclass(frozen=True)
class Processes:
    """The processes of a training, and the place of this one among them."""

    rank: int = 0
    count: int = 1

    def source(self, random: RandomSource | None) -> RandomSource:
        """The source of the training, the same in every process: the first one draws a key if there is none."""
        if self.count == 1 or random is not None:
            return resolve(random)
        return keyed_source(self.of_first(resolve(None).bytes(32)))

    def of_first(self, thing: Any) -> Any:
        """Return the thing that the first process gave, in every process."""
        if self.count == 1:
            return thing
        things = [thing if self.rank == 0 else None]
        torch.distributed.broadcast_object_list(things, src=0)
        return things[0]

    def agree(self, random: RandomSource, public: dict[str, Any], module: Any, rows: TrainingRows) -> None:
        """Raise `ArgumentError` in every process unless all train alike.

        They must run the same code and have the same source, settings, rows and first weights. Of a dataset that is no
        tensor the number of rows is compared.
        """
        if self.count == 1:
            return
        build = {**build_here(), "torch": torch.__version__, "opacus": version("opacus")}
        data, weights = (rows.count, _digest(rows.tensors or ())), _digest(module.state_dict().values())
        mine = [build, random.spawn("processes").bits(256), public, data, weights]
        found: list[Any] = [None] * self.count
        torch.distributed.all_gather_object(found, mine)
        for what, theirs in zip(_COMPARED, zip(*found, strict=True), strict=True):
            if any(each != theirs[0] for each in theirs):
                raise ArgumentError(
                    f"distributed: the processes differ in {what}. Give each one keyed source, or none, the same "
                    "versions, settings, rows and module"
                )

    def parts(self, parts: int) -> range:
        """The parts of a batch that are clipped here."""
        return range(self.rank, parts, self.count)

    def turn(self, number: int, parts: int, sums: list[Any]) -> list[list[Any]]:
        """Exchange the sums of one part of each process.

        Args:
            number: how many turns there were in this step.
            parts: the number of parts of the step's batch.
            sums: of this process's part, or tensors of their shape if it has none in this turn.

        Returns:
            The sums of the parts of this turn, in their order.

        Raises:
            RuntimeError: by torch, if another process ended. Then the step is not made.
        """
        if self.count == 1:
            return [sums]
        flat = torch.cat([each.reshape(-1) for each in sums])
        found = [torch.empty_like(flat) for _ in range(self.count)]
        torch.distributed.all_gather(found, flat)
        sizes = [each.numel() for each in sums]
        return [
            [one.view_as(each).to(each.dtype) for one, each in zip(other.split(sizes), sums, strict=True)]
            for other in found[: parts - number * self.count]
        ]


ALONE: Final = Processes()


def join_processes(random: RandomSource | None) -> Processes:
    """The processes of the default group.

    Raises:
        ArgumentError: if there is no group, or a source that draws from the system.
    """
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        raise ArgumentError(
            "distributed: call torch.distributed.init_process_group in every process first, as torchrun scripts do"
        )
    if random is not None and not random.replayable:
        raise ArgumentError("random: several processes need one keyed source. Leave it out, and they share a new key")
    return Processes(torch.distributed.get_rank(), torch.distributed.get_world_size())


def _digest(things: Iterable[Any]) -> str:
    """A digest of the tensors among these things."""
    found = hashlib.sha256()
    for each in things:
        if isinstance(each, torch.Tensor):
            found.update(f"{tuple(each.shape)} {each.dtype} ".encode())
            found.update(each.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return found.hexdigest()
