"""The only place that draws."""

from dpselect.randomness.source import RandomSource, keyed_source, resolve, system_source

__all__ = ["RandomSource", "keyed_source", "resolve", "system_source"]
