"""What a run prints, warns, logs, raises, or does to what an earlier run returned does not leave the selection."""

import asyncio
import logging
import os
import sys
import threading
import warnings

import pytest

from dpselect.accounting.candidates.sampled_search import SmoothedCount, SmoothedOdds
from dpselect.learners import GatedRelease
from dpselect.privacy import pure_dp
from dpselect.privacy.boundary import run_confined, silence
from dpselect.repetitions import Fixed
from dpselect.selection import (
    SampledSparseVector,
    SelectAcceptable,
    SelectIncreasing,
    SelectWithDummies,
    SelectWithoutThreshold,
    ThresholdSearch,
    select_above,
    select_best,
)
from dpselect.tuning import Space, Uniform, tune

BASE = pure_dp(epsilon=0.1)
SECRET = "a cell of someone"


def tuned(run):
    return tune(
        lambda params, random: run(random),
        space=Space({"x": Uniform(0.0, 1.0)}),
        base=BASE,
        repetitions=Fixed(count=3),
    )


def gated(train, error):
    return GatedRelease(training=BASE, test_epsilon=0.1, test_shift=0.01, max_error=100.0)(train, error)


def sampled(run):
    counts = SmoothedOdds(samples=3, smoothing=3.0, sensitivity=0.8)
    return SampledSparseVector(guarantee=BASE, statistic=counts, epsilon=1.0, max_queries=1).above(run, 0.5)


SEARCH = ThresholdSearch(
    thresholds=(0.5,),
    target=0.5,
    base=BASE,
    statistic=SmoothedCount(samples=3, smoothing=3.0, sensitivity=0.8),
    epsilon=1.0,
)


MECHANISMS = {
    "best": lambda run: select_best(run, repetitions=Fixed(count=3), guarantee=BASE),
    "above": lambda run: select_above(run, threshold=2.0, stop_probability=0.01, max_runs=9, guarantee=BASE),
    "acceptable, run": lambda run: SelectAcceptable(acceptable=lambda *_: True, floor=0.01, base=BASE)(run),
    "acceptable": lambda run: SelectAcceptable(acceptable=run, floor=0.01, base=BASE)(lambda _: (1.0, 1)),
    "dummies": lambda run: SelectWithDummies(threshold=0.5, runs=3, gamma=0.2, base=BASE)(run),
    "increasing": lambda run: SelectIncreasing(levels=[BASE], repetitions=Fixed(count=3))([run], threshold=9),
    "sampled": sampled,
    "threshold search": lambda run: SEARCH(run),
    "without threshold": lambda run: SelectWithoutThreshold(search=SEARCH, stop_probability=0.1, max_runs=3)(run),
    "tune": tuned,
    "gated, train": lambda run: gated(run, lambda model: 0.0),
    "gated, error": lambda run: gated(lambda random: "model", run),
}
RUNS = {"best": 3, "increasing": 3, "sampled": 3, "threshold search": 3, "tune": 3, "dummies": 3}


@pytest.fixture(params=MECHANISMS)
def mechanism(request, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return request.param


def failing_with(kind, calls):
    def run(*_):
        calls.append(kind)
        print(SECRET)
        print(SECRET, file=sys.stderr)
        warnings.warn(SECRET, stacklevel=1)
        for level in (logging.WARNING, logging.CRITICAL, 99):
            logging.getLogger("someone").log(level, SECRET)
        raise kind(SECRET)

    return run


FAILURES = [RuntimeError, asyncio.CancelledError, SystemExit, GeneratorExit, StopIteration, RecursionError, MemoryError]


@pytest.mark.cases(28)
@pytest.mark.parametrize("kind", FAILURES, ids=lambda kind: kind.__name__)
def test_nothing_of_a_failed_run_leaves(mechanism, kind, capfd, caplog, recwarn):
    calls = []
    streams = sys.stdout, sys.stderr, logging.root.manager.disable, list(warnings.filters)
    MECHANISMS[mechanism](failing_with(kind, calls))
    assert len(calls) == RUNS.get(mechanism, len(calls))  # the others may draw no run
    shown = capfd.readouterr()
    assert SECRET not in shown.out + shown.err + caplog.text
    assert not [one for one in recwarn if SECRET in str(one.message)]
    assert streams == (sys.stdout, sys.stderr, logging.root.manager.disable, list(warnings.filters))


def test_ctrl_c_is_the_operator_s(mechanism):
    def until_one_runs():
        for _ in range(50):  # some of them may draw no run
            MECHANISMS[mechanism](failing_with(KeyboardInterrupt, []))

    with pytest.raises(KeyboardInterrupt):
        until_one_runs()


RELEASING = {
    "best": lambda run: select_best(run, repetitions=Fixed(count=5), guarantee=BASE).value,
    "dummies": lambda run: SelectWithDummies(threshold=0.5, runs=50, gamma=0.2, base=BASE)(run).value,
    "tune": lambda run: tuned(run).value,
}


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", RELEASING)
def test_no_later_run_changes_what_an_earlier_one_returned(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    shared = []

    def run(_):
        shared.append(SECRET)
        return -float(len(shared)), shared  # the first run wins

    for _ in range(20):
        shared.clear()
        value = RELEASING[name](run)
        assert value is not shared
        if name != "dummies":
            assert value == [SECRET]


def test_the_test_of_a_model_does_not_change_the_model():
    def error(model):
        model.append(SECRET)
        return 0.0

    assert gated(lambda random: ["model"], error).value in (["model"], None)


def test_what_cannot_be_copied_is_a_failed_run():
    assert select_best(lambda _: (1.0, (i for i in ())), repetitions=Fixed(count=2), guarantee=BASE).value is None
    release = gated(lambda random: threading.Lock(), lambda model: 0.0)
    assert release.value is None


def test_a_run_is_silent_down_to_its_descriptors_where_the_process_is_its_own(capfd):
    with silence(descriptors=True):
        os.write(1, SECRET.encode())
        print(SECRET)
    print("afterwards")
    assert capfd.readouterr().out == "afterwards\n"


def test_a_run_that_closes_its_output_or_the_null_device_does_not_matter_to_later_searches(tmp_path):
    descriptors = []

    def closing(close):
        def run(_):
            print(SECRET)
            descriptors.append(sys.stdout.fileno())
            close()
            return 1.0, "found"

        return run

    one = {"repetitions": Fixed(count=1), "guarantee": BASE}
    assert select_best(closing(lambda: sys.stdout.close()), **one).value == "found"
    assert select_best(closing(lambda: os.close(sys.stdout.fileno())), **one).value == "found"
    with open(tmp_path / "someone's", "w") as other:  # which may have the number now
        os.dup2(other.fileno(), descriptors[-1])
        try:
            assert select_best(closing(lambda: sys.stdout.flush()), **one).value == "found"
        finally:
            if descriptors[-2] != other.fileno():
                os.close(descriptors[-2])
    assert (tmp_path / "someone's").read_text() == ""


def test_a_silence_that_cannot_begin_leaves_the_next_one_silent(monkeypatch, capfd):
    with monkeypatch.context() as broken:
        broken.setattr("dpselect.privacy.boundary._null", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError), silence():
            pass
    with silence():
        print(SECRET)
    assert capfd.readouterr().out == ""


def test_threads_that_overlap_leave_the_streams_as_they_were():
    streams = sys.stdout, sys.stderr
    first, second = threading.Event(), threading.Event()

    def early():
        with silence():
            first.set()
            assert second.wait(10)

    def late():
        assert first.wait(10)
        with silence():
            second.set()
            thread.join(10)
            assert sys.stdout is not streams[0]

    thread = threading.Thread(target=early)
    thread.start()
    late()
    assert (sys.stdout, sys.stderr) == streams


def test_the_result_is_what_the_run_returns():
    assert run_confined(lambda: None, 1) is None
    assert run_confined(lambda: {}["missing"], 1) == 1
