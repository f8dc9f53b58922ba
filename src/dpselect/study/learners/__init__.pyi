from .kind import LEARNERS as LEARNERS, StudyLearner as StudyLearner
