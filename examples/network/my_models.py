"""Networks for square images with a column for each pixel, as network.toml names them."""

import torch
from torch import nn


class Images(nn.Module):
    """Two convolutions and a linear layer."""

    def __init__(self, side, classes, channels):
        super().__init__()
        self.side = side
        self.layers = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.Tanh(),
            nn.AvgPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3),
            nn.Tanh(),
            nn.Flatten(),
            nn.Linear(2 * channels * (side // 2 - 2) ** 2, classes),
        )

    def forward(self, rows):
        """Scores of the classes, from pixels between -1 and 1."""
        return self.layers(rows.reshape(-1, 1, self.side, self.side))


def build(columns, classes):
    """A small convolutional network."""
    return Images(round(columns**0.5), classes, 16)


def perceptron(columns, classes):
    """One hidden layer, which knows nothing of images."""
    return torch.nn.Sequential(nn.Linear(columns, 64), nn.Tanh(), nn.Linear(64, classes))
