"""A study whose space lists the candidates of a portfolio."""

import copy

from dpselect.study import parse_study
from tests.study.schema_cases import STUDY

MAPS = {"map": {"distribution": "categorical", "choices": ["cos4", "centered", "bins"]}}
BASE = {key: copy.deepcopy(STUDY[key]) for key in ("name", "data", "output")}
MANY = {"epsilon": 3.0, "delta": 1e-6, "nominal_rows": 5000}


def parsed(**tables):
    given = {"privacy": MANY, "space": MAPS, "search": {"design": "portfolio"}, **tables}
    return parse_study({**copy.deepcopy(BASE), **given, "runs": {"executor": "inline"}})
