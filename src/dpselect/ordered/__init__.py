"""Ordered data: medians, quantiles, interior points, thresholds, boxes."""

from __future__ import annotations

__all__: list[str] = []
