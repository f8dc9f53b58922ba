"""Signals end a command in order: the first one is heeded, an echo right after it is not."""

import os
import signal
import threading

import pytest

from dpselect.cli import stopping
from dpselect.cli.stopping import TerminatedError, status_of, terminable

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are another thing there")


@pytest.mark.parametrize(("number", "error"), [(signal.SIGTERM, TerminatedError), (signal.SIGINT, KeyboardInterrupt)])
def test_a_signal_is_an_interruption_and_the_handlers_come_back(number, error):
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as stopped, terminable():
        signal.raise_signal(number)
    assert type(stopped.value) is error
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    assert status_of(stopped.value) == 128 + number


def test_a_second_signal_is_heeded_only_after_a_while(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(stopping.time, "monotonic", lambda: now[0])
    with terminable():
        for moment, heeded in ((100.0, True), (101.9, False), (102.1, True)):
            now[0] = moment
            try:
                signal.raise_signal(signal.SIGTERM)
            except TerminatedError:
                assert heeded
            else:
                assert not heeded


def test_another_thread_changes_no_handler():
    seen = []

    def run():
        with terminable():
            seen.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]
