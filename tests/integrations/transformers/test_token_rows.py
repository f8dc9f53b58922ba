"""Tokenized rows: of one length each, and no value of a row that a model does not take."""
# ruff: noqa: E402

import pytest

torch = pytest.importorskip("torch")

from dpselect.integrations.transformers.token_rows import TextTask, TokenRows, row_loss

CLASSES = TextTask(4, ("input_ids", "attention_mask", "token_type_ids"), (10, 2, 2), 0, 3)
TOKENS = TextTask(4, ("input_ids", "attention_mask"), (10, 2), 0, 0)


def test_rows_are_cut_and_padded():
    rows = [
        {"input_ids": [1, 2], "token_type_ids": [1, 1], "label": 2},
        {"input_ids": [5, 6, 7, 8, 9], "attention_mask": [1, 1, 1, 0, 0], "token_type_ids": [0, 1, 5, 1], "labels": 1},
    ]
    (first, one), (second, other) = (TokenRows(rows, CLASSES)[place] for place in (0, 1))
    assert first.tolist() == [[1, 2, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]]
    assert second.tolist() == [[5, 6, 7, 8], [1, 1, 1, 0], [0, 1, 0, 1]]
    assert (int(one), int(other), len(TokenRows(rows, CLASSES))) == (2, 1, 2)


@pytest.mark.parametrize("label", [3, -1, None, float("nan"), "x", float("inf")])
def test_a_label_of_no_class_trains_nothing(label):
    _, target = TokenRows([{"input_ids": [1, 99, -4, None], "token_type_ids": [], "label": label}], CLASSES)[0]
    assert int(target) == -100
    assert float(row_loss(3)(torch.ones(1, 3), target[None])) == 0.0
    number = TextTask(4, ("input_ids", "attention_mask"), (10, 2), 0, 1)
    _, value = TokenRows([{"input_ids": [1], "label": label}], number)[0]
    assert value.dtype is torch.float32


def test_a_token_is_predicted_from_those_before_it():
    inputs, target = TokenRows([{"input_ids": [3, 4]}, {"input_ids": [3]}], TOKENS)[0]
    assert (inputs[0].tolist(), target.tolist()) == ([3, 4, 0, 0], [3, 4, -100, -100])
    logits = torch.zeros(1, 4, 10)
    logits[0, 0, 4] = 50.0
    assert float(row_loss(0)(logits, target[None])) == pytest.approx(0.0, abs=1e-6)
    alone = TokenRows([{"input_ids": [3]}], TOKENS)[0][1]
    assert float(row_loss(0)(logits, alone[None])) == 0.0  # no token to predict


def test_synthetic_rows_look_like_rows():
    for task in (CLASSES, TOKENS):
        inputs, targets = task.example(50)
        assert inputs.shape == (50, len(task.parts), 4)
        assert all(int(inputs[:, place].max()) < size for place, size in enumerate(task.sizes))
        assert targets.shape == ((50,) if task.labels else (50, 4))
        assert inputs[:, 1, 0].all()


@pytest.mark.parametrize("name", ["input_ids", "attention_mask", "token_type_ids", "labels"])
def test_a_cell_without_a_list_raises_nothing(name):
    row = {"input_ids": [1, 2], "attention_mask": [1, 1], "token_type_ids": [0, 0], "labels": [1, 2], name: None}
    for task in (CLASSES, TOKENS):
        inputs, _ = TokenRows([row], task)[0]
        assert inputs.shape == (len(task.parts), 4)
