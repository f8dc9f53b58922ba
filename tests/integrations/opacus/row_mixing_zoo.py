"""Modules and losses for private training: sound ones, and public mistakes in which a row reaches other rows."""

from tests.integrations.opacus import (
    row_mixing_attacks,
    row_mixing_functions,
    row_mixing_losses,
    row_mixing_modules,
    row_mixing_sound,
)
from tests.integrations.opacus.row_mixing_entries import EACH, MISTAKES, SOUND, Body, sequences, vectors
from tests.integrations.opacus.row_mixing_functions import Transposed

__all__ = [
    "EACH",
    "MISTAKES",
    "OTHERWISE_IN_ENGINES",
    "PARTS",
    "SOUND",
    "Body",
    "Transposed",
    "sequences",
    "vectors",
]

PARTS = (row_mixing_functions, row_mixing_modules, row_mixing_losses, row_mixing_sound, row_mixing_attacks)
"""Each puts its entries into the two zoos when it is imported."""

OTHERWISE_IN_ENGINES = frozenset(
    {"batch_norm", "TorchsAttention", "spectral_norm", "mean_inside", "mean_repeated", "KeepsLosses"}
)
"""Refused by `make_private` itself; right where the loss is a mean; or hidden in the function that makes a mean."""
