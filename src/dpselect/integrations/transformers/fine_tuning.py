"""Private fine-tuning: `PrivateTraining` trains the model of a Hugging Face `Trainer`, by its arguments as they allow.

The Trainer's own loop is not run: it shuffles batches, and clips the gradient of a whole batch, which has no price.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from dpselect.capabilities import NamedColumns
from dpselect.errors import ArgumentError, integer, missing_extra
from dpselect.integrations.opacus import PrivateTraining
from dpselect.integrations.transformers.token_rows import PackedModel, TextTask, TokenRows, row_loss
from dpselect.randomness import RandomSource, resolve

try:
    import torch
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

__all__ = ["fine_tune"]

_OPTIMIZER: Final = frozenset(
    {"learning_rate", "weight_decay", "adam_beta1", "adam_beta2", "adam_epsilon", "optim", "optim_args"}
    | {"lr_scheduler_type", "lr_scheduler_kwargs", "warmup_steps"}
)
"""Arguments of which the Trainer makes optimizer and schedule."""
_WITHOUT_EFFECT: Final = frozenset(
    {"output_dir", "do_train", "disable_tqdm", "run_name", "report_to", "project", "log_level", "logging_strategy"}
    | {"logging_steps", "logging_first_step", "logging_dir", "save_strategy", "save_steps", "save_total_limit"}
    | {"save_only_model", "seed", "data_seed", "use_cpu", "per_device_eval_batch_size", "remove_unused_columns"}
    | {"dataloader_num_workers", "dataloader_pin_memory", "dataloader_drop_last", "dataloader_persistent_workers"}
)
"""Arguments of the Trainer's own loop, which change neither the model nor the price."""
_CALLBACKS: Final = ("DefaultFlowCallback", "PrinterCallback", "ProgressCallback", "NotebookProgressCallback")
_COLLATORS: Final = ("DataCollatorForLanguageModeling", "DataCollatorWithPadding", "DefaultDataCollator")


def fine_tune(
    training: PrivateTraining,
    make_trainer: Callable[[], Any],
    *,
    length: int,
    random: RandomSource | None = None,
    checkpoints: str | Path | None = None,
) -> Any:
    """Fine-tune the model of a `Trainer` with differential privacy, and return the model.

    The rows, the model (with adapters of PEFT, for example) and the optimizer with its schedule are the Trainer's. The
    batches, the clipping and the noise are those of `training`, whose guarantee is that of the model. Every row is cut
    and padded to `length` tokens. Callbacks, evaluation, logging and saving of the Trainer do not happen.

    Args:
        training: the private training, whose price is known before it starts.
        make_trainer: makes the `Trainer`. Its draws (initial weights of adapters) are seeded from `random`.
        length: the number of tokens of every row, at least 2. It is public: no row's own length.
        random: draws batches and noise. In a search it is the trial's source.
        checkpoints: a folder, as in `PrivateTraining.fit`.

    Returns:
        The trained model, in eval mode.

    Raises:
        ArgumentError: for a subclass of `Trainer` or of its arguments, an argument that contradicts `training` or that
            the training does not know, a collator that packs or masks rows, callbacks, a model that reads no tokens,
            and for a model in which rows mix.
        TypeError: if `make_trainer` makes no `Trainer`.
    """
    library, length, source = _library(), integer("length", length, at_least=2), resolve(random)
    with torch.random.fork_rng():
        torch.manual_seed(source.spawn("trainer").bits(63))
        trainer = make_trainer()
    problems = list(_problems(library, training, trainer))
    if problems:
        raise ArgumentError("make_trainer: " + "\n  ".join(problems))
    rows = trainer.train_dataset
    columns = _columns(rows)
    task = TextTask.of(trainer.model, columns, length)
    trainer.model.config.use_cache = False

    def optimizer(_: Any) -> Any:
        made = trainer.create_optimizer()
        return made, trainer.create_scheduler(num_training_steps=training.steps, optimizer=made)

    found = training.fit(
        lambda: PackedModel(trainer.model, task.parts),
        optimizer,
        row_loss(task.labels),
        TokenRows(rows, task),
        example=task.example,
        random=source,
        checkpoints=checkpoints,
    )
    return found.model


def _columns(rows: Any) -> tuple[str, ...]:
    """The names of a dataset's columns, which are public."""
    named = rows.column_names if isinstance(rows, NamedColumns) else list(rows[0]) if len(rows) else []
    return tuple(named)


def _library() -> Any:
    """The package transformers, whose import takes seconds."""
    try:
        import transformers
    except ImportError:
        raise missing_extra("transformers", "fine-tuning a model of Hugging Face") from None
    return transformers


def _problems(library: Any, training: PrivateTraining, trainer: Any) -> Iterator[str]:
    """The reasons to refuse: settings that this training would not follow, or that have no price."""
    if not isinstance(trainer, library.Trainer):
        raise TypeError(f"make_trainer must make a Trainer of transformers, got {type(trainer).__name__}")
    kinds = (library.Trainer, library.TrainingArguments)
    for name, thing, kind in zip(("the trainer", "its arguments"), (trainer, trainer.args), kinds, strict=True):
        if type(thing) is not kind:
            yield f"{name}: {type(thing).__name__} is refused: its own steps are not run here. Give a {kind.__name__}"
    if training.early_stopping is not None:
        yield "the training's early_stopping is refused: a look would need rows that are packed as the training's are"
    if trainer.train_dataset is None:
        yield "train_dataset is missing"
    if trainer.compute_loss_func is not None:
        yield "compute_loss_func is refused: it gives one loss for a batch. Use PrivateTraining.fit with a loss of rows"
    collator = trainer.data_collator
    masking = isinstance(collator, library.DataCollatorForLanguageModeling) and collator.mlm
    known = collator is library.default_data_collator or _is_of(library, collator, _COLLATORS)
    if not known or masking:
        yield (
            f"data_collator: {type(collator).__name__} is refused: rows are padded one by one here, and none is packed "
            "or masked"
        )
    callbacks = trainer.callback_handler.callbacks
    others = [type(each).__name__ for each in callbacks if not _is_of(library, each, _CALLBACKS)]
    if others:
        yield f"callbacks: {', '.join(others)} would not run here, and would see what is private. Leave them out"
    yield from _arguments(library.TrainingArguments, training, trainer.args)


def _is_of(library: Any, thing: Any, names: tuple[str, ...]) -> bool:
    """Whether a thing is of one of these classes of the package itself."""
    return type(thing).__name__ in names and type(thing).__module__.partition(".")[0] == library.__name__


def _arguments(kind: Any, training: PrivateTraining, args: Any) -> Iterator[str]:
    usual = kind(output_dir=args.output_dir, use_cpu=args.use_cpu)
    size = training.expected_batch_size
    steps = math.ceil(args.num_train_epochs / training.sampling_rate)
    agreeing = {
        "per_device_train_batch_size": (size, f"expected_batch_size, {size:g}"),
        "max_steps": (training.steps, f"steps, {training.steps}"),
        "num_train_epochs": (args.num_train_epochs if steps == training.steps else None, f"{training.steps} steps"),
        "max_grad_norm": (training.max_grad_norm, f"max_grad_norm, {training.max_grad_norm}, of each row's gradient"),
    }
    for field in fields(args):
        value = vars(args)[field.name]
        if field.name in _OPTIMIZER | _WITHOUT_EFFECT or value == vars(usual).get(field.name):
            continue
        if field.name not in agreeing:
            yield f"{field.name} = {value!r} is refused: the private training does not do this, or it has no price"
        elif value != agreeing[field.name][0]:
            yield f"{field.name} = {value!r} contradicts the training's {agreeing[field.name][1]}"
