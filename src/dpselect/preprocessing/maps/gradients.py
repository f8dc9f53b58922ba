"""Images as directions of their edges."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpselect.errors import ArgumentError, expect, integer
from dpselect.numerics.search import Array
from dpselect.preprocessing.maps.row_map import MAPS, MapOfRows, directions

__all__ = ["EdgeDirections"]

_FAINT: Final = 0.05
"""In units of the brightest pixel: edges fainter than this count for less than others."""


@MAPS.register("oriented-gradients")
@dataclass(kw_only=True, eq=False, repr=False)
class EdgeDirections(MapOfRows):
    """Histograms of oriented gradients (Dalal, Triggs 2005): the strength of an image's edges by place and direction.

    A row holds the pixels of a grey image, line by line. Each square of `cell` by `cell` pixels, half a square apart
    from the next, becomes `orientations` numbers, one for each direction. They add up the lengths of its pixels'
    gradients, each shared between the two nearest directions. A square's numbers are divided by their norm, then the
    whole row by its own.

    Args:
        image_shape: height and width of the images, public. None: they are square.
        cell: the side of a square in pixels, at least 2. None: a seventh of the shorter side of the image, at least 2.
        orientations: how many directions, 2 to 64.

    >>> from dpselect.preprocessing import OrientedGradients
    >>> image = [[0, 0, 1, 1]] * 4
    >>> found = OrientedGradients(image_shape=(4, 4), orientations=4).fit_transform([np.ravel(image)])
    >>> found.shape, found.reshape(9, 4).sum(axis=0).round(1)
    ((1, 36), array([3., 0., 0., 0.]))
    """

    image_shape: tuple[int, int] | None = None
    cell: int | None = None
    orientations: int = 8

    def _width(self, columns: int) -> int:
        shape = self._shape(columns)
        orientations = integer("orientations", self.orientations, at_least=2, at_most=64)
        return len(list(self._corners(shape))) * orientations

    def _mapped(self, cells: Array) -> Array:
        height, width = self._shape(cells.shape[1])
        pixels = np.nan_to_num(cells, nan=0.0)
        largest = np.max(np.abs(pixels), axis=1, initial=0.0, keepdims=True)
        image = (pixels / np.where(largest > 0.0, largest, 1.0)).reshape(-1, height, width)
        wide = np.pad(image, ((0, 0), (1, 1), (1, 1)), mode="edge")
        right = (wide[:, 1:-1, 2:] - wide[:, 1:-1, :-2]) / 2.0
        down = (wide[:, 2:, 1:-1] - wide[:, :-2, 1:-1]) / 2.0
        length = np.hypot(right, down)
        turn = np.arctan2(down, right) / (2.0 * math.pi) * self.orientations
        shares = [length * _nearness(turn - k, self.orientations) for k in range(self.orientations)]
        return directions(np.hstack(list(self._histograms(shares))))

    def _histograms(self, shares: list[Array]) -> Iterator[Array]:
        """For each square its numbers, shape (rows, orientations). Sums are taken term by term: no row sees another."""
        side = self._side(shares[0].shape[1:])
        for top, left in self._corners(shares[0].shape[1:]):
            square = [(i, j) for i in range(top, top + side) for j in range(left, left + side)]
            strengths = [sum(share[:, i, j] for i, j in square) for share in shares]
            norm = np.sqrt(sum(strength * strength for strength in strengths) + _FAINT**2)
            yield np.stack(strengths, axis=1) / norm[:, None]

    def _corners(self, shape: tuple[int, ...]) -> Iterator[tuple[int, int]]:
        side = self._side(shape)
        step = side // 2
        for top in range(0, shape[0] - side + 1, step):
            for left in range(0, shape[1] - side + 1, step):
                yield top, left

    def _side(self, shape: tuple[int, ...]) -> int:
        if self.cell is None:
            return max(2, min(shape) // 7)
        return integer("cell", self.cell, at_least=2, at_most=min(shape))

    def _shape(self, columns: int) -> tuple[int, int]:
        if self.image_shape is None:
            side = math.isqrt(columns)
            if side * side != columns or side < 2:
                raise ArgumentError(f"image_shape must be given: {columns} columns are no square image")
            return side, side
        expect("image_shape", self.image_shape, tuple, list)
        shape = [integer("image_shape", size, at_least=2) for size in self.image_shape]
        if len(shape) != 2 or shape[0] * shape[1] != columns:
            raise ArgumentError(
                f"image_shape must be height and width of images of {columns} pixels, got {self.image_shape!r}"
            )
        return shape[0], shape[1]


def _nearness(turn: Array, orientations: int) -> Array:
    """1 where a direction is that of a bin, falling to 0 at the next one, around the circle."""
    away = np.abs(turn - orientations * np.rint(turn / orientations))
    return np.maximum(1.0 - away, 0.0)
