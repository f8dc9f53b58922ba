"""Names of arguments that other libraries use are answered with what to type."""

import inspect
import pickle

import pytest

from dpselect.privacy import dp_sgd, gaussian, laplace, pure_dp
from dpselect.repetitions import Geometric, Harmonic, Logarithmic
from dpselect.tuning import Categorical, tune

SEARCH = {"space": {"x": Categorical([1, 2])}, "base": pure_dp(epsilon=1)}


def run(params, random):
    return 0.0, params["x"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: gaussian(sigma=4), r"gaussian has no argument sigma: did you mean noise_multiplier= \(standard dev"),
        (lambda: dp_sgd(epochs=3), r"give steps= \(epochs / sampling_rate\)"),
        (lambda: laplace(epsilon=1), r"give scale= \(sensitivity / epsilon\)"),
        (lambda: pure_dp(eps=1), "did you mean epsilon="),
        (lambda: Logarithmic(mean=10), r"use Logarithmic.with_mean\(mean=10\)"),
        (lambda: Geometric(mean=3), r"use Geometric.with_mean\(mean=3\)"),
        (lambda: Harmonic(mean=3), "give limit="),
        (lambda: tune(run, **SEARCH, n_trials=10), "tune has no argument n_trials: the number of runs is drawn"),
        (lambda: tune(run, **SEARCH, repetitions=10), r"repetitions must be a distribution .* Harmonic\(limit=30\)"),
    ],
)
def test_what_to_type_instead(call, said):
    with pytest.raises(TypeError, match=said):
        call()


def test_a_learner_is_called_by_the_name_that_was_typed():
    from dpselect.learners import DPSGDClassifier

    with pytest.raises(TypeError, match="DPSGDClassifier has no argument epsilon: noise is set by noise_multiplier="):
        DPSGDClassifier(epsilon=3)


def test_names_that_nobody_knows_raise_as_before():
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        gaussian(noise_multiplier=1, colour="red")


def test_nothing_else_changes():
    assert list(inspect.signature(gaussian).parameters) == ["noise_multiplier", "adjacency"]
    assert list(inspect.signature(Logarithmic).parameters) == ["gamma"]
    law = Logarithmic(gamma=0.1)
    assert pickle.loads(pickle.dumps(law)) == law
