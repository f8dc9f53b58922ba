"""Learners by name, and the estimators of both tasks."""

import pytest

from dpselect.errors import StudyError
from dpselect.learners.dp_sgd import DPSGDClassification
from dpselect.learners.dp_sgd_regressor import DPSGDRegression
from dpselect.study.learners.kind import LEARNERS, StudyLearner


def test_each_task_has_its_estimator():
    assert LEARNERS["dp-sgd"].for_task("classification") is DPSGDClassification
    assert LEARNERS["dp-sgd"].for_task("regression") is DPSGDRegression


def test_a_learner_without_regression_names_those_that_have_it():
    with pytest.raises(StudyError, match=r"knows no regression; there are boosted-trees, dp-sgd, .*ridge"):
        StudyLearner(int, "epsilon").for_task("regression")
    assert StudyLearner(int, "epsilon").for_task("classification") is int
