"""Frozen dataclasses that keep what they work out: a copy and a pickle carry the fields alone."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

__all__ = ["CopiedByFields"]


class CopiedByFields:
    """The base of a dataclass whose cached properties can be worked out again from its fields."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
