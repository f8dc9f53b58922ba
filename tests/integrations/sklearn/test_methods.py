"""The methods of estimators of others: of those that depend on parameters too, and what a method answers."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from dpselect.integrations.sklearn.methods import answers, has_method


def test_methods_that_depend_on_parameters_and_parts():
    assert has_method(LogisticRegression(), "predict_proba")
    assert not has_method(SVC(probability=False), "predict_proba")
    assert not has_method(make_pipeline(SVC(probability=False)), "predict_proba")
    assert has_method(make_pipeline(LogisticRegression()), "predict_proba")
    assert not has_method(LogisticRegression(), "C"), "an attribute, not a method"


def test_an_answer_is_that_of_the_method():
    model = LogisticRegression().fit([[0.0], [1.0]], [3, 5])
    assert answers(model, "predict", [[-9.0], [9.0]]).tolist() == [3, 5]
    assert answers(model, "decision_function", [[9.0]])[0] > 0
    with pytest.raises(AttributeError):
        answers(model, "transform", [[1.0]])
