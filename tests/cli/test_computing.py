"""Signs of life while a price is computed."""

import io
import re
import sys
import time

import pytest

from dpselect.cli import computing as module
from dpselect.cli.computing import computing
from dpselect.steps import each_step


class Terminal(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self):
        return True


def shown(monkeypatch, stream, seconds):
    monkeypatch.setattr(sys, "stderr", stream)
    with computing("the price"):
        time.sleep(seconds)
    return stream.getvalue()


def test_a_long_computation_says_what_it_is_and_for_how_long(monkeypatch):
    monkeypatch.setattr(module, "_SECONDS", 0.01)
    text = shown(monkeypatch, Terminal(), 0.2)
    assert re.search(r"computing the price.*0:00:00", text)


def test_loops_with_a_public_number_of_steps_show_how_many_are_done(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(module, "_SECONDS", 0.01)
    monkeypatch.setattr(module, "_REFRESH", 0.01)
    with computing("the options"):
        for _ in each_step("families", 3):
            time.sleep(0.1)
    assert re.search(r"computing the options: 2 of 3 families", stream.getvalue())


def test_a_short_one_and_one_on_a_pipe_show_nothing(monkeypatch):
    assert shown(monkeypatch, Terminal(), 0.0) == ""
    monkeypatch.setattr(module, "_SECONDS", 0.0)
    assert shown(monkeypatch, io.StringIO(), 0.05) == ""


def test_an_error_inside_ends_it_and_goes_on(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(module, "_SECONDS", 0.0)

    def fails():
        with computing("the price"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
