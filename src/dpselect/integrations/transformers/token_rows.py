"""Tokenized rows of one length each, and a model that takes them: no row's length shows in another row's batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dpselect.errors import ArgumentError, missing_extra

try:
    import torch
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

__all__ = ["PackedModel", "TextTask", "TokenRows", "row_loss"]

IGNORED: Final = -100
"""The label that trains nothing, as in Hugging Face."""
_PARTS: Final = ("input_ids", "attention_mask", "token_type_ids")


@dataclass(frozen=True)
class TextTask:
    """The public facts of a model, by which rows are read.

    Args:
        length: the number of tokens to which each row is cut and padded.
        parts: the names of the integers of a row, in order.
        sizes: for each part the number of values that it may have.
        pad: the token of padding.
        labels: the number of classes. 0 for labels that are tokens, 1 for a number.
    """

    length: int
    parts: tuple[str, ...]
    sizes: tuple[int, ...]
    pad: int
    labels: int

    @classmethod
    def of(cls, model: Any, columns: Sequence[str], length: int) -> TextTask:
        """The facts of a model of Hugging Face. Raises `ArgumentError` for a model that reads no tokens."""
        config = model.config
        known = config.to_dict()
        vocabulary, types = known.get("vocab_size"), known.get("type_vocab_size") or 1
        if vocabulary is None or "input_ids" not in columns:
            raise ArgumentError(
                "make_trainer: fine_tune reads tokenized text: a model with a vocabulary, and rows with input_ids, "
                f"got {type(model).__name__} and {', '.join(columns)}"
            )
        sizes = {"input_ids": vocabulary, "attention_mask": 2, "token_type_ids": types}
        parts = tuple(name for name in _PARTS if name in columns or name == "attention_mask")
        labelled = {"label", "labels"} & set(columns)
        sequences = type(model.get_base_model() if _is_adapted(model) else model).__name__
        one_label = known.get("problem_type") != "multi_label_classification"
        if sequences.endswith("ForSequenceClassification") and labelled and one_label:
            labels = int(config.num_labels)
        elif sequences.endswith(("ForCausalLM", "LMHeadModel")):
            labels = 0
        else:
            raise ArgumentError(
                "make_trainer: the model must be for sequence classification, with rows that have a label, or for "
                f"causal language modeling, got {sequences}. Train others with PrivateTraining.fit"
            )
        return cls(length, parts, tuple(sizes[name] for name in parts), config.pad_token_id or 0, labels)

    def example(self, count: int) -> tuple[Any, Any]:
        """Synthetic rows: random tokens, of a number of its own in each row."""
        parts = {name: torch.randint(0, size, (count, self.length)) for name, size in self._sized}
        used = torch.arange(self.length) < torch.randint(1, self.length + 1, (count, 1))
        parts["attention_mask"] = used.long()
        parts["input_ids"] = torch.where(used, parts["input_ids"], self.pad)
        inputs = torch.stack([parts[name] for name in self.parts], dim=1)
        if self.labels == 0:
            return inputs, torch.where(used, parts["input_ids"], IGNORED)
        return inputs, torch.rand(count) if self.labels == 1 else torch.randint(0, self.labels, (count,))

    @property
    def _sized(self) -> list[tuple[str, int]]:
        return list(zip(self.parts, self.sizes, strict=True))


class TokenRows(torch.utils.data.Dataset[Any]):  # type: ignore[misc]
    """A tokenized dataset as pairs of tensors: integers of shape (parts, length), and a label.

    A token, or a class, that the model does not have becomes padding, or trains nothing: whether a training fails
    depends on no row.
    """

    def __init__(self, rows: Any, task: TextTask) -> None:
        self.rows, self.task = rows, task

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> tuple[Any, Any]:
        row, task = self.rows[place], self.task
        given = _listed(row["input_ids"])
        tokens = self._cut(given, task.pad, task.sizes[0])
        used = [1] * min(len(given), task.length)
        mask = row.get("attention_mask", used)
        parts = {"input_ids": tokens, "attention_mask": self._cut(_listed(mask), 0, 2)}
        if "token_type_ids" in task.parts:
            parts["token_type_ids"] = self._cut(_listed(row["token_type_ids"]), 0, task.sizes[-1])
        inputs = torch.tensor([parts[name] for name in task.parts])
        label = row.get("labels", row.get("label"))
        if task.labels == 0:
            said = _listed(label) if label is not None else given
            kept = [token if on else IGNORED for token, on in zip(said, parts["attention_mask"], strict=False)]
            return inputs, torch.tensor(self._cut(kept, IGNORED, task.sizes[0]))
        if task.labels == 1:
            return inputs, torch.tensor(_number(label))
        return inputs, torch.tensor(self._whole(label, IGNORED, task.labels))

    def _cut(self, values: Any, filling: int, size: int) -> list[int]:
        """So many values as a row has, each of them below the size."""
        found = [self._whole(value, filling, size) for value in values[: self.task.length]]
        return found + [filling] * (self.task.length - len(found))

    @staticmethod
    def _whole(value: Any, filling: int, size: int) -> int:
        number = _number(value)
        return int(number) if 0.0 <= number < size else filling


def _is_adapted(model: Any) -> bool:
    """Whether PEFT has put adapters into the model."""
    try:
        from peft import PeftModel
    except ImportError:
        return False
    return isinstance(model, PeftModel)


def _listed(values: Any) -> list[Any]:
    """The values, and none for a cell that holds no list."""
    try:
        return list(values)
    except TypeError:
        return []


def _number(value: Any) -> float:
    """The number, NaN for anything else: its row then trains nothing."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


class PackedModel(torch.nn.Module):  # type: ignore[misc]
    """A model of Hugging Face that takes its integers as one tensor, shape (rows, parts, length)."""

    def __init__(self, model: Any, parts: Sequence[str]) -> None:
        super().__init__()
        self.model, self.parts = model, tuple(parts)

    def forward(self, inputs: Any) -> Any:
        """The logits of each row."""
        return self.model(**{name: inputs[:, place] for place, name in enumerate(self.parts)}).logits


def row_loss(labels: int) -> Callable[[Any, Any], Any]:
    """The loss of each row: squared error of a number, cross-entropy of a class, or the mean of a row's tokens."""
    return _squared_error if labels == 1 else _class_loss if labels else _token_loss


def _squared_error(outputs: Any, targets: Any) -> Any:
    return (outputs[:, 0] - targets) ** 2


def _class_loss(outputs: Any, targets: Any) -> Any:
    return torch.nn.functional.cross_entropy(outputs, targets, ignore_index=IGNORED, reduction="none")


def _token_loss(outputs: Any, targets: Any) -> Any:
    wanted = targets[:, 1:]  # each token is predicted from those before it
    losses = torch.nn.functional.cross_entropy(
        outputs[:, :-1].transpose(1, 2), wanted, ignore_index=IGNORED, reduction="none"
    )
    return losses.sum(dim=1) / (wanted != IGNORED).sum(dim=1).clamp(min=1)
