"""What entries of the zoo of row mixing are made of: data, a module to build on, and where they are put.

Each entry makes (make_module, loss, inputs, targets). The rows stand for a user's; the probe sees their shapes alone.
"""

import torch
from torch import nn

EACH = nn.CrossEntropyLoss(reduction="none")
SOUND, MISTAKES = {}, {}


def vectors(width=4, classes=3):
    return torch.rand(20, width), torch.arange(20) % classes


def sequences(steps=5, width=4):
    return torch.rand(20, steps, width), torch.arange(20) % 3


def images(size=8, channels=1):
    return torch.rand(20, channels, size, size), torch.arange(20) % 3


def words(steps=5, size=11):
    return torch.arange(20 * steps).reshape(20, steps) % size, torch.arange(20) % 3


def register(zoo, data=vectors, loss=EACH, name=None):
    """Put a module class, a function of a batch or a maker of modules into a zoo."""

    def put(make):
        zoo[name or make.__name__] = lambda: (make, loss, *data())
        return make

    return put


def sound(*args, **settings):
    return register(SOUND, *args, **settings)


def mistake(*args, **settings):
    return register(MISTAKES, *args, **settings)


class Body(nn.Module):
    """A linear layer before and after `mix`."""

    def __init__(self, width=4, hidden=6, outputs=3):
        super().__init__()
        self.first, self.last = nn.Linear(width, hidden), nn.Linear(hidden, outputs)

    def mix(self, hidden):
        return hidden

    def forward(self, inputs):
        return self.last(self.mix(torch.tanh(self.first(inputs))))


def step(zoo, function, data=vectors):
    """A body whose hidden values go through a function of the whole batch."""
    kind = type(function.__name__, (Body,), {"mix": lambda self, hidden: function(hidden)})
    register(zoo, data)(kind)
