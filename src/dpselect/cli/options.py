"""Words that several commands share."""

from typing import Final

__all__ = ["JSON_HELP"]

JSON_HELP: Final = "Print one JSON object on standard output."
