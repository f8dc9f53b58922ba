"""A study runs unchanged on loky and Ray (Dask: tuning/test_executors_contract.py); what `[runs]` refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dpselect.study.price
from dpselect.errors import StudyError
from dpselect.randomness import keyed_source
from dpselect.study import parse_study, run_study
from dpselect.study.validate import StudyPaths, validate
from dpselect.tuning import InlineExecutor, ProcessExecutor
from tests.budgets import charges
from tests.clusters import ray_cluster
from tests.root import ROOT
from tests.study.schema_cases import STUDY


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(autouse=True, scope="module")
def price_once():
    """The price does not depend on where trials run."""
    found = []

    def remembered(*arguments):
        if not found:
            found.append(original(*arguments))
        return found[0]

    original = dpselect.study.price.price_study
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dpselect.study.price, "price_study", remembered)
        yield


def released(tmp_path, **runs):
    """The parameters and the weights of a study's release."""
    folder = tmp_path / runs["executor"]
    quickly_priced = {"noise_multiplier": 1.0, "delta": 1e-5, "nominal_rows": 150}
    study = parse_study({**STUDY, "privacy": quickly_priced, "runs": runs})
    finished = run_study(study, base_folder=tmp_path, folder=folder, random=keyed_source(5))
    with np.load(folder / "model.npz", allow_pickle=False) as model:
        return finished.release["parameters"], {name: model[name].tobytes() for name in model.files}


@pytest.mark.slow
def test_ray_and_loky_release_the_same(tmp_path):
    expected = released(tmp_path, executor="inline")
    assert released(tmp_path, executor="loky") == expected
    with ray_cluster(workers=2):
        assert released(tmp_path, executor="ray") == expected


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ({"executor": "dask"}, "address"),
        ({"executor": "process", "address": "tcp://127.0.0.1:1"}, "address"),
        ({"executor": "loky", "resources": {"GPU": 1}}, "resources"),
        ({"executor": "ray", "workers": 1}, "at least 2"),
        ({"limit_seconds": 5}, "failure_is_private"),
        ({"limit_bytes": 5}, "failure_is_private"),
        ({"pad_seconds": 0}, "pad_seconds"),
        ({"executor": "spark"}, "executor"),
    ],
)
def test_bad_runs(runs, message):
    with pytest.raises(StudyError, match=message):
        parse_study({**STUDY, "runs": runs})


@pytest.mark.full
def test_no_scheduler_is_an_error_before_anything_is_charged(tmp_path):
    pytest.importorskip("distributed")
    import dask

    study = parse_study({**STUDY, "runs": {"executor": "dask", "address": "tcp://127.0.0.1:9"}})
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), pytest.raises(StudyError, match="no Dask"):
        run_study(study, base_folder=tmp_path, folder=tmp_path / "out", random=keyed_source(5))
    assert charges(tmp_path / "out" / "budget.db") == []


def test_the_page_on_executors_runs():
    text = (ROOT / "docs" / "how-to/executors.md").read_text(encoding="utf-8")
    names = {}
    exec(
        compile("\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)), "executors.md", "exec"), names
    )
    assert len(names["counts"]) == 12
    assert [part.mean for part in names["parts"]] == [5.0, 5.0, 10.0]


@pytest.mark.parametrize(
    ("runs", "repetitions", "expected"),
    [
        ({}, {"law": "fixed", "count": 1}, InlineExecutor()),
        ({}, {"law": "fixed", "count": 2}, ProcessExecutor(workers=2)),
        ({"workers": 3}, {"law": "poisson", "mean": 2.0}, ProcessExecutor(workers=3)),
        ({"executor": "process"}, {"law": "fixed", "count": 1}, ProcessExecutor(workers=2)),
        ({"executor": "inline"}, {"law": "poisson", "mean": 2.0}, InlineExecutor()),
    ],
)
def test_one_run_needs_no_process_of_its_own(runs, repetitions, expected, tmp_path):
    """Only if the number of runs is public by their distribution."""
    study = parse_study({**STUDY, "repetitions": repetitions, "runs": runs})
    assert validate(study, StudyPaths.of(study, tmp_path, None, resume=False)).executor == expected
