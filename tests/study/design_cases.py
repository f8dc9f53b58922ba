"""A study of one run."""

import copy

from dpselect.study import parse_study
from tests.study.schema_cases import STUDY

ONE = {key: copy.deepcopy(STUDY[key]) for key in ("name", "data", "privacy", "output")}
ONE["privacy"] = {**ONE["privacy"], "nominal_rows": 120}


def parsed(**tables):
    return parse_study({**copy.deepcopy(ONE), **tables, "runs": {"executor": "inline"}})
