"""Naive Bayes as a study names it."""

from dpselect.learners.naive_bayes import NaiveBayes
from dpselect.study.learners import LEARNERS


def test_its_noise_grows_with_its_parameter_and_nothing_else_enters_the_price():
    found = LEARNERS["naive-bayes"]
    assert (found.estimator, found.regressor) == (NaiveBayes, None)
    assert (found.noise_name, found.inverse, found.priced, found.carry) == (
        "noise_multiplier",
        False,
        frozenset(),
        None,
    )
