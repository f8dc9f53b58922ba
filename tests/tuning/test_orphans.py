"""Processes that serve the tuner end when the one that started them is gone, and leave Ctrl-C to it."""

import os
import signal
import subprocess
import sys
import time

import pytest

from dpselect.tuning.orphans import leave_interrupts_to_the_tuner

pytestmark = pytest.mark.skipif(os.name == "nt", reason="processes are given no new parent there")

PARENT = """
import subprocess, sys
print(subprocess.Popen([sys.executable, "-c", sys.argv[1]]).pid, flush=True)
"""
CHILD = "import dpselect.tuning.orphans as orphans, time; orphans.end_with_parent(); time.sleep(60)"
PIPED = """
import os, sys, time
import dpselect.tuning.orphans as orphans
os.setsid()
orphans.end_with_pipe(int(sys.argv[1]))
print("ready", flush=True)
time.sleep(60)
"""


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{process}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.full
@pytest.mark.skipif(not os.path.isdir("/proc"), reason="tells a process that has ended by /proc")
def test_a_process_ends_soon_after_its_parent():
    done = subprocess.run([sys.executable, "-c", PARENT, CHILD], capture_output=True, text=True, check=True)
    process, until = int(done.stdout), time.monotonic() + 20
    while is_alive(process) and time.monotonic() < until:
        time.sleep(0.1)
    assert not is_alive(process)


@pytest.mark.full
def test_a_process_ends_with_its_pipe():
    reading, writing = os.pipe()
    command = [sys.executable, "-c", PIPED, str(reading)]
    with subprocess.Popen(command, pass_fds=[reading], stdout=subprocess.PIPE) as child:
        os.close(reading)
        assert child.stdout.readline() == b"ready\n"
        assert child.poll() is None
        os.close(writing)
        assert child.wait(timeout=20) == -signal.SIGKILL


def test_interrupts_are_ignored_in_the_main_thread():
    before = signal.getsignal(signal.SIGINT)
    try:
        leave_interrupts_to_the_tuner()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
