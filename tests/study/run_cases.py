"""Runs of the smallest study in this process."""

from dpselect.randomness import keyed_source
from dpselect.study import parse_study, run_study
from tests.study.schema_cases import STUDY


def inline(document, **runs):
    return parse_study({**document, "runs": {"executor": "inline", **runs}})


def run(tmp_path, document=STUDY, *, folder="out", key=1, **options):
    return run_study(
        inline(document), base_folder=tmp_path, folder=tmp_path / folder, random=keyed_source(key), **options
    )
