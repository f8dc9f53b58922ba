"""Opacus training as a private run: what it costs before it starts, and a training loop whose noise is ours."""

from dpselect.integrations.opacus.training import PrivateTraining, engine_guarantee

__all__ = ["PrivateTraining", "engine_guarantee"]
