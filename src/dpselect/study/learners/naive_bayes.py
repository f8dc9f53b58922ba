"""Naive Bayes in a study."""

from dpselect.learners.naive_bayes import NaiveBayes
from dpselect.study.learners.kind import LEARNERS, StudyLearner

LEARNERS.register("naive-bayes")(StudyLearner(NaiveBayes, "noise_multiplier"))
