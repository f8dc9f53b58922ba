"""Studies: a file that says what is public, and a run that turns it and private rows into one release."""

from dpselect.study.model import ReleasedModel
from dpselect.study.model_file import load_model
from dpselect.study.outputs import remake_report
from dpselect.study.prepare import check_study, law_of
from dpselect.study.run import StudyRun, run_study
from dpselect.study.schema import Study, load_study, parse_study
from dpselect.study.schema_json import study_schema

__all__ = [
    "ReleasedModel",
    "Study",
    "StudyRun",
    "check_study",
    "law_of",
    "load_model",
    "load_study",
    "parse_study",
    "remake_report",
    "run_study",
    "study_schema",
]
