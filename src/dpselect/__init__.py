"""Differentially private selection: choose among private runs and know what the choice cost."""

from importlib.metadata import version

__version__ = version("dpselect")
