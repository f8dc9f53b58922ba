"""Step 0 of a study: what it leaves open is filled in by rule, from public facts alone.

One run of the default learner has all of the rows and all of the budget. A search pays for the choice with noise, which
comes back only where its candidates really differ; so a study searches where it says what for (`[space]`), and is one
run where it does not.
"""

from __future__ import annotations

from typing import Any, Final

from dpselect.accounting.planning.search_prices import SearchPrice, least_noise
from dpselect.privacy import gaussian
from dpselect.repetitions import Fixed
from dpselect.study.schema import Study

__all__ = ["designed"]

_ONE_RUN: Final = {"law": "fixed", "count": 1}
_SEARCH: Final = {"law": "harmonic", "limit": 10}
_OWN_CHOICE: Final = frozenset({"class_weights"})
"""Keys of the learner's table that go with the default of all others."""
_IMAGES: Final = frozenset({"image_shape", "cell", "orientations"})
"""Keys that say that rows are images, and how their gradients are counted."""
_FEW_SIGNALS: Final = 200.0


def designed(study: Study) -> Study:
    """The same study with its design, its law, its map and how it is scored; one that says them all is unchanged.

    Without `[space]` it is one run: all rows train, and none scores unless there is a `[validation]` table. With
    `[space]` and without `[repetitions]` it is a search of a harmonic number of runs.
    """
    if study.repetitions:
        design = "one-run" if study.repetitions == _ONE_RUN and not study.space else "one-stage"
        return study.model_copy(update={"search": study.search.model_copy(update={"design": design})})
    if study.space:
        return _with(study, design="one-stage", repetitions=_SEARCH)
    scored = study.validation
    if "validation" not in study.model_fields_set:
        scored = scored.model_copy(update={"data": "none"})
    filled = _with(study, design="one-run", repetitions=_ONE_RUN, validation=scored)
    told = set(study.learner.parameters)
    if study.learner.name == "dp-sgd" and told <= _OWN_CHOICE | _IMAGES:
        chosen = "oriented-gradients" if "image_shape" in told else smooth_map(study)
        filled = filled.model_copy(update={"learner": study.learner.model_copy(update={"map": chosen})})
    return filled


def smooth_map(study: Study) -> str:
    """The name of the map of numbers and categories for the default learner.

    For a classification with little signal, n mu below 200, directions beside cosines; n is the public number of rows
    and mu the Gaussian differential privacy parameter that the total allows.
    """
    privacy = study.privacy
    if study.data.task == "regression" or privacy.nominal_rows is None or privacy.epsilon is None:
        return "cos4"
    noise = least_noise(
        "one run",
        lambda value: SearchPrice((gaussian(noise_multiplier=value),), Fixed(count=1)),
        epsilon=privacy.epsilon,
        delta=privacy.delta,
    )
    return "joint" if privacy.nominal_rows / noise < _FEW_SIGNALS else "cos4"


def _with(study: Study, *, design: str, **filled: Any) -> Study:
    return study.model_copy(update={"search": study.search.model_copy(update={"design": design}), **filled})
