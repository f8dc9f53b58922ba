from .kind import LEARNERS as LEARNERS, StudyLearner as StudyLearner
from .recipe import Recipe as Recipe, recipe_of as recipe_of
