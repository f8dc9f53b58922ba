"""Studies: a file that says what is public, and a run that turns it and private rows into one release."""

from dpselect.study.model import ReleasedModel, load_model
from dpselect.study.run import StudyRun, run_study
from dpselect.study.schema import Study, load_study, parse_study

__all__ = ["ReleasedModel", "Study", "StudyRun", "load_model", "load_study", "parse_study", "run_study"]
