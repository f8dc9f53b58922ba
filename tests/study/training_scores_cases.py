"""Studies whose training rows score the runs."""

from pathlib import Path

from dpselect.study.price import price
from dpselect.study.validate import StudyPaths, validate
from tests.study.portfolio_cases import MANY, parsed

SPACE = {"learning_rate": {"distribution": "log_uniform", "low": 0.1, "high": 10.0}}
HARMONIC = {"distribution": "harmonic", "limit": 4}


def searched(**tables):
    given = {"search": {"design": "one-stage"}, "space": SPACE, "repetitions": HARMONIC, **tables}
    return parsed(**{"validation": {"data": "training"}, "privacy": {**MANY, "nominal_rows": 150}, **given})


def priced(**tables):
    return price(validate(searched(**tables), StudyPaths(Path(), Path("out"))))
