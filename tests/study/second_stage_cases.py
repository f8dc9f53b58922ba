"""Studies in two stages."""

from pathlib import Path

from dpselect.study.price import price
from dpselect.study.validate import StudyPaths, validate
from tests.study.portfolio_cases import MANY, parsed

SPACE = {"learning_rate": {"distribution": "log_uniform", "low": 0.1, "high": 10.0}}


def two_stages(**tables):
    return parsed(**{"search": {}, "space": SPACE, "refit": {}, "privacy": {**MANY, "nominal_rows": 150}, **tables})


def priced(**tables):
    return price(validate(two_stages(**tables), StudyPaths(Path(), Path("out"))))
