"""What a study's learner is given by rule, from public facts alone, where its table leaves that open."""

from __future__ import annotations

from typing import Final

from dpselect.accounting.planning.search_prices import SearchPrice, least_noise
from dpselect.privacy import gaussian
from dpselect.repetitions import Fixed
from dpselect.study.schema import Study

__all__ = ["ALONE", "default_map", "signals", "smooth_map"]

ALONE: Final = frozenset({"class_weights"})
"""Keys of the learner's table that go with the default of all others."""
_IMAGES: Final = frozenset({"image_shape", "cell", "orientations"})
"""Keys that say that rows are images, and how their gradients are counted."""
_FEW_SIGNALS: Final = 200.0


def default_map(study: Study, *, several: bool = False) -> str | None:
    """The map of the rows where the learner's table leaves all to the rule; None where it does not.

    `several`: for one among several learners, each with the map that it is good with.
    """
    told = set(study.learner.parameters)
    if study.learner.name == "dp-sgd" and told <= ALONE | _IMAGES:
        return "oriented-gradients" if "image_shape" in told else smooth_map(study)
    return "bins" if several and study.learner.name == "ridge" and told <= ALONE else None


def smooth_map(study: Study) -> str:
    """The name of the map of numbers and categories for the default learner.

    For a classification with little signal, n mu below 200, directions beside cosines.
    """
    found = None if study.data.task == "regression" else signals(study)
    return "joint" if found is not None and found < _FEW_SIGNALS else "cos4"


def signals(study: Study) -> float | None:
    """n mu: the public number of rows times the Gaussian differential privacy parameter that the total allows.

    None where one of them is not known.
    """
    privacy = study.privacy
    if privacy.nominal_rows is None or privacy.epsilon is None or privacy.delta == 0.0:
        return None
    noise = least_noise(
        "one run",
        lambda value: SearchPrice((gaussian(noise_multiplier=value),), Fixed(count=1)),
        epsilon=privacy.epsilon,
        delta=privacy.delta,
    )
    return privacy.nominal_rows / noise
