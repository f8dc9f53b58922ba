"""The identity of a process: one object as long as it runs, another one in each forked child."""

from __future__ import annotations

import os
import sys

import pytest

from dpselect.randomness import process
from dpselect.randomness.process import this_process


def in_a_child(question) -> bool:
    """The answer of a forked child to a question of yes or no."""
    child = os.fork()
    if child == 0:
        os._exit(7 if question() else 8)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_it_is_one_object_while_the_process_runs():
    assert this_process() is this_process()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_is_another_process_and_its_child_too():
    ours = this_process()
    assert in_a_child(lambda: this_process() is not ours and this_process() is this_process())
    assert in_a_child(lambda: (child := this_process()) and in_a_child(lambda: this_process() is not child))
    assert this_process() is ours


def test_another_process_number_renews_the_identity(monkeypatch):
    """Where the kernel has no pages that it wipes and the fork was told to nobody."""
    ours, number = this_process(), os.getpid()
    monkeypatch.setattr(process, "_identity", ours)
    monkeypatch.setattr(process, "_page", bytearray(b"\1"))
    assert this_process() is ours
    monkeypatch.setattr("os.getpid", lambda: number + 1)
    assert this_process() is not ours


def test_a_wiped_page_renews_the_identity_once(monkeypatch):
    """A child can have its parent's number in another namespace: the page is zero there."""
    ours = this_process()
    monkeypatch.setattr(process, "_identity", ours)
    monkeypatch.setattr(process, "_page", bytearray(b"\0"))
    renewed = this_process()
    assert renewed is not ours
    assert this_process() is renewed


@pytest.mark.skipif(sys.platform != "linux", reason="pages that a fork wipes")
def test_the_kernel_wipes_the_page_in_a_child():
    page = process._wiped_page()
    assert page[0] == 1
    assert in_a_child(lambda: page[0] == 0)
    assert page[0] == 1


def test_without_such_pages_a_byte_stays_one(monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    page = process._wiped_page()
    assert bytes(page) == b"\1"


@pytest.mark.skipif(sys.platform != "linux", reason="pages that a fork wipes")
def test_a_kernel_that_takes_every_advice_is_not_believed(monkeypatch):
    """QEMU before version 7 says yes to every number and wipes nothing."""
    monkeypatch.setattr(process, "_advises", lambda page, advice: True)
    assert bytes(process._wiped_page()) == b"\1"
