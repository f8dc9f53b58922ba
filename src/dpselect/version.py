"""The version of the installed distribution."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("dpselect")
