"""What a search asks for: flags are flags, and options that do not go together are refused before any draw."""

import pytest

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn.request import request_of
from dpselect.repetitions import Harmonic
from dpselect.tuning import LogUniform
from tests.integrations.sklearn import designs_cases as designs
from tests.integrations.sklearn.search_cases import X, Y, search

RATES = {"learning_rate": LogUniform(0.5, 8.0)}
SCALES = {"intercept_scale": [0.3, 1.0]}


@pytest.mark.parametrize(
    ("space", "options", "said"),
    [
        (SCALES, {"design": "grid"}, "design must be one of one-run, portfolio, one-stage, two-stage"),
        (SCALES, {"design": "one-run"}, "param_distributions does not go with"),
        (RATES, {"design": "portfolio"}, r"param_distributions\['learning_rate'\] must be a list"),
        ({"intercept_scale": [0.3]}, {"design": "portfolio"}, "2 to 4 candidates, .* has 1"),
        ({"intercept_scale": [0.1, 0.2, 0.3, 0.4, 0.5]}, {"design": "portfolio"}, "2 to 4 candidates, .* has 5"),
        (SCALES, {"design": "portfolio", "epsilon": None}, "epsilon must be given"),
        (SCALES, {"design": "portfolio", "repetitions": Harmonic(limit=3)}, "repetitions does not go with"),
        (SCALES, {"design": "portfolio", "scoring": "roc_auc"}, "compares by a sum over the rows that train"),
        (SCALES, {"design": "portfolio", "public_validation": designs.rows()}, "public_validation does not go with"),
        ({"noise_multiplier": [1.0, 2.0]}, {"design": "portfolio"}, "is the noise"),
        (RATES, {"design": "two-stage", "epsilon": None}, "epsilon must be given"),
        (RATES, {"design": "two-stage", "refit_share": 1.0}, "refit_share"),
        (RATES, {"design": "two-stage", "cv": 3}, "cv does not go with"),
        (RATES, {"design": "two-stage", "release_score": True}, "release_score does not go with"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_drawn(space, options, said):
    with pytest.raises(ArgumentError, match=said):
        designs.search(space, **options).plan()


@pytest.mark.parametrize("name", ["refit", "release_score", "constant_runs", "rehearse", "resume"])
@pytest.mark.parametrize("value", ["accuracy", "", 1, None])
def test_a_yes_or_no_is_nothing_else(name, value):
    """`refit="accuracy"` means something in scikit-learn's searches; here a truth would charge a further run."""
    asked = search(epsilon=2.0, ledger=object(), **{name: value})
    with pytest.raises(ArgumentError, match=f"{name} must be True or False"):
        asked.fit(X, Y)
    with pytest.raises(ArgumentError, match=f"{name} must be True or False"):
        asked.plan()


@pytest.mark.parametrize(
    ("options", "trained", "own_scores", "public"),
    [
        ({}, 0.8, False, False),
        ({"validation_fraction": 0.25}, 0.75, False, False),
        ({"validation_fraction": None}, 1.0, True, False),
        ({"cv": 4}, 0.75, False, False),
        ({"public_validation": (X, Y)}, 1.0, False, True),
        ({"design": "one-run", "space": {}, "repetitions": None}, 1.0, False, True),
    ],
)
def test_the_rows_that_train_are_a_share_of_the_public_number(options, trained, own_scores, public):
    asked = request_of(search(**options), 3)
    assert asked.settings.nominal_rows == pytest.approx(trained * 500, rel=1e-15)
    assert (asked.trained, asked.final_rows, asked.own_scores) == (trained, 500.0, own_scores)
    assert asked.public_scoring is public
    assert (asked.settings.classes, asked.settings.columns) == (["no", "yes"], 3)


def test_delta_must_be_below_one_over_the_rows():
    assert request_of(search(delta=0.00199), 3).delta == 0.00199
    with pytest.raises(ArgumentError, match=r"delta must be below one over nominal_rows, got 0\.002"):
        request_of(search(delta=0.002), 3)
    with pytest.raises(ArgumentError, match="validation_fraction"):
        request_of(search(validation_fraction=1.0), 3)
    with pytest.raises(ArgumentError, match="too good"):
        request_of(search(validation_fraction=None, release_score=True), 3)
