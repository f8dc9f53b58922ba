"""Studies that differ in one table from the smallest one."""

from dpselect.study import parse_study
from tests.study.schema_cases import STUDY


def study_of(**tables):
    return parse_study({**STUDY, **tables})
