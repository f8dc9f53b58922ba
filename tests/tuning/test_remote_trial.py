"""Trials in other processes: what travels shows nothing, and a job stays away from its sender."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time

import pytest

from dpselect.testing.executor_contract import job_of, noisy
from dpselect.tuning import remote_trial
from dpselect.tuning.executors import Attempt
from dpselect.tuning.remote_trial import Manners, Parcel, Trial, greet, run_trial
from dpselect.tuning.worker_check import expected_of, packed
from tests.clusters import wait_until

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kills workers with SIGKILL")


def test_what_travels_shows_nothing():
    key = b"k" * 32
    travelling = [Trial(7654321, key), Parcel(b"content"), Attempt(7654321, None, True)]
    text = "".join(repr(thing) for thing in travelling)
    assert not any(secret in text for secret in ("7654321", "kkk", key.hex(), "content", "lost", "True"))


def test_a_job_is_dropped_when_it_was_not_used_for_so_long(monkeypatch):
    monkeypatch.setitem(remote_trial._jobs, b"name", job_of(noisy))
    for _ in range(2):
        with remote_trial.kept_for(0.08, b"name"):
            time.sleep(0.1)
            assert b"name" in remote_trial._jobs, "while it is used"
    wait_until(lambda: b"name" not in remote_trial._jobs, 5.0)
    assert b"name" not in remote_trial._idle_since


@pytest.mark.full
def test_a_job_is_not_run_in_the_process_that_sends_it():
    """Wherever joblib takes it; host names and process ids may be those of another container."""
    manners = Manners(quiet=False, threads=None, own=True)
    parcel = Parcel(packed(expected_of(job_of(noisy)), pickle.dumps(job_of(noisy))))
    trial = Trial(0, bytes(32))
    for here in (parcel, pickle.loads(pickle.dumps(parcel))):
        assert not greet(here, manners)
        assert run_trial(here, trial, manners) is None
    code = "import pickle, sys; from dpselect.tuning import remote_trial as r\n"
    code += "parcel, manners = pickle.load(sys.stdin.buffer); print(repr(r.greet(parcel, manners)))"
    elsewhere = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps((parcel, manners)), capture_output=True, check=True
    )
    assert elsewhere.stdout.strip() == b"''"  # nothing differs there
