"""A small search in memory."""

from __future__ import annotations

from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Harmonic
from dpselect.tuning import (
    Space,
    Uniform,
    tune,
)
from dpselect.tuning.trial import TrialOutput
from tests.grouped import grouped

SPACE = Space({"x": Uniform(0.0, 1.0)})
BASE = pure_dp(epsilon=0.5)
LIMIT = 6


def noisy(params, random):
    return TrialOutput(params["x"] + 0.1 * float(random.laplace(1)[0]), {"x": params["x"]})


def search(objective=noisy, **options):
    options = {"space": SPACE, "base": BASE, "repetitions": Harmonic(limit=LIMIT), "random": keyed_source(1)} | options
    return tune(objective, **grouped(**options))
