"""Pairs of neighbouring columns."""

from __future__ import annotations


def neighbours(laws, size, *, replace):
    for points in laws:
        for extra in range(size):
            larger = tuple(sorted((*points, extra)))
            if not replace and larger in laws:
                yield larger, points
            if replace:
                for gone in range(len(points)):
                    other = tuple(sorted((*points[:gone], extra, *points[gone + 1 :])))
                    if other > points and other in laws:
                        yield other, points
