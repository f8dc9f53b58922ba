"""Ridge regression by noisy sums as a study names it."""

from dpselect.learners.ridge import RidgeClassification, RidgeRegression
from dpselect.study.learners import LEARNERS


def test_its_noise_grows_with_its_parameter_and_nothing_else_enters_the_price():
    ridge = LEARNERS["ridge"]
    assert (ridge.estimator, ridge.regressor) == (RidgeClassification, RidgeRegression)
    assert (ridge.noise_name, ridge.inverse, ridge.priced, ridge.carry) == (
        "noise_multiplier",
        False,
        frozenset(),
        None,
    )
