"""Differentially private selection: choose among private runs and know what the choice cost."""

from importlib.metadata import version
from typing import Any

__version__ = version("dpselect")

__all__ = ["__version__", "load_model"]


def __getattr__(name: str) -> Any:
    """Import the study room only when its loader is asked for, so that `import dpselect` stays light."""
    if name == "load_model":
        from dpselect.study import load_model

        return load_model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
