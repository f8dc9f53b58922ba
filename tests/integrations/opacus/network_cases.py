"""Networks for tables, good ones and others."""
# ruff: noqa: E402

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from torch import nn


def small(columns, outputs):
    return nn.Sequential(nn.Linear(columns, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, outputs))


def wide(columns, outputs):
    return nn.Sequential(nn.Linear(columns, 24), nn.Tanh(), nn.Linear(24, outputs))


class Layered(nn.Module):
    """One linear layer."""

    def __init__(self, columns, outputs):
        super().__init__()
        self.layer = nn.Linear(columns, outputs)

    def forward(self, rows):
        return self.layer(rows)


class Centred(Layered):
    """Subtracts the mean of the batch."""

    def forward(self, rows):
        return super().forward(rows - rows.mean(dim=0))


def batch_norm(columns, outputs):
    return nn.Sequential(nn.BatchNorm1d(columns), nn.Linear(columns, outputs))


def frozen(columns, outputs):
    return nn.Linear(columns, outputs).requires_grad_(False)


class Drawing(Layered):
    """Keeps drawn numbers beside its state."""

    def __init__(self, columns, outputs):
        super().__init__(columns, outputs)
        self.signs = torch.rand(columns)

    def forward(self, rows):
        return super().forward(rows * self.signs)


class DrawingLater(Layered):
    """Draws when it is asked."""

    def forward(self, rows):
        return super().forward(nn.functional.dropout(rows, 0.5, training=True))


def half(columns, outputs):
    return nn.Linear(columns, outputs).half()


def flat(columns, _outputs):
    return nn.Sequential(nn.Linear(columns, 1), nn.Flatten(0))


def fails(columns, _outputs):
    raise ValueError(f"no network for {columns} columns")


def names(columns, outputs):
    return ["linear", columns, outputs]


class Counting(Layered):
    """Counts its calls in a buffer."""

    def __init__(self, columns, outputs):
        super().__init__(columns, outputs)
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, rows):
        self.calls += 1
        return super().forward(rows)


REFUSED = [
    (Centred, "depends on the other rows of its batch"),
    (batch_norm, "row by row"),
    (frozen, "no parameter to train"),
    (Drawing, "answer differently"),
    (DrawingLater, "answer differently"),
    (half, "fails for 3 rows|must be a tensor of float32"),
    (flat, "must give 3 numbers for each row"),
    (fails, "ValueError: no network for 5 columns"),
    (names, r"must return a torch.nn.Module, got list"),
    (Counting, "counts calls"),
]
