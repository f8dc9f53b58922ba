"""Private training of a LightningModule: its `forward`, its optimizers and its data, in dpselect's own loop.

Lightning's loop is not run. Its `training_step` gives one loss for a batch, which has no gradient of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpselect.errors import ArgumentError, missing_extra
from dpselect.integrations.opacus import PrivateTraining
from dpselect.randomness import RandomSource

__all__ = ["fit_lightning"]


def fit_lightning(
    training: PrivateTraining,
    make_module: Callable[[], Any],
    data: Any,
    loss: Callable[..., Any],
    *,
    example: Callable[[int], tuple[Any, Any]] | None = None,
    random: RandomSource | None = None,
    checkpoints: str | Path | None = None,
) -> Any:
    """Train a LightningModule with differential privacy, and return it.

    Args:
        training: the private training, whose price is known before it starts. Its `steps` take the place of epochs.
        make_module: makes the LightningModule. Its `forward` and `configure_optimizers` are used. Its `training_step`
            and other hooks are not.
        data: a `LightningDataModule`, whose training rows are used, or anything that `PrivateTraining.fit` takes alone.
        loss: `loss(outputs, targets)` gives one loss for each row (`reduction="none"`).
        example: makes synthetic rows, as in `PrivateTraining.fit`.
        random: draws batches and noise. In a search it is the trial's source.
        checkpoints: a folder, as in `PrivateTraining.fit`.

    Returns:
        The trained module, in eval mode.

    Raises:
        ArgumentError: for several optimizers, a schedule that follows a metric or epochs, a manual optimization, and
            everything that `PrivateTraining.fit` refuses.
        TypeError: if `make_module` makes no LightningModule.
    """
    made: list[Any] = []
    library = _library()

    def module() -> Any:
        found = make_module()
        if not isinstance(found, library.LightningModule):
            raise TypeError(f"make_module must make a LightningModule, got {type(found).__name__}")
        if not found.automatic_optimization:
            raise ArgumentError("make_module: manual optimization has steps of its own, which are not run here")
        made.append(found)
        return found

    return training.fit(
        module,
        lambda _: _optimizer(made[-1].configure_optimizers()),
        loss,
        _training_rows(library, data),
        example=example,
        random=random,
        checkpoints=checkpoints,
    )


def _library() -> Any:
    """The package lightning.pytorch, whose import takes seconds."""
    try:
        from lightning import pytorch
    except ImportError:
        raise missing_extra("lightning", "training a LightningModule") from None
    return pytorch


def _training_rows(library: Any, data: Any) -> Any:
    if not isinstance(data, library.LightningDataModule):
        return data
    data.prepare_data()
    data.setup("fit")
    return data.train_dataloader()


def _optimizer(configured: Any) -> Any:
    """The optimizer, or a pair of it and a schedule that moves on after each step."""
    if isinstance(configured, tuple) and len(configured) == 2 and all(isinstance(each, list) for each in configured):
        configured = {"optimizer": configured[0], "lr_scheduler": configured[1]}  # two lists, of one each
    found = configured if isinstance(configured, dict) else {"optimizer": configured}
    optimizer, schedule = (_only(found.get(name)) for name in ("optimizer", "lr_scheduler"))
    if schedule is None:
        return optimizer
    settings = schedule if isinstance(schedule, dict) else {"scheduler": schedule}
    if settings.get("interval", "epoch") != "step" or settings.get("frequency", 1) != 1:
        raise ArgumentError(
            "make_module: configure_optimizers gives a schedule of epochs, and there are steps only. Give "
            '{"scheduler": ..., "interval": "step"}'
        )
    return optimizer, settings["scheduler"]


def _only(found: Any) -> Any:
    if not isinstance(found, (list, tuple)):
        return found
    if len(found) > 1:
        raise ArgumentError("make_module: configure_optimizers gives several optimizers or schedules: give one")
    return found[0] if found else None
