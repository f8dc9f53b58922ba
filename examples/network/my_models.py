"""Networks for images of 8 x 8 pixels in 64 columns, as network.toml names them."""

import torch
from torch import nn


class Images(nn.Module):
    """Two convolutions and a linear layer."""

    def __init__(self, classes, channels):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.Tanh(),
            nn.AvgPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3),
            nn.Tanh(),
            nn.Flatten(),
            nn.Linear(8 * channels, classes),
        )

    def forward(self, rows):
        """Scores of the classes, from pixels between -1 and 1."""
        return self.layers(rows.reshape(-1, 1, 8, 8))


def build(columns, classes):
    """A small network. `columns` is 64."""
    return Images(classes, 16)


def perceptron(columns, classes):
    """One hidden layer, which knows nothing of images."""
    return torch.nn.Sequential(nn.Linear(columns, 64), nn.Tanh(), nn.Linear(64, classes))
