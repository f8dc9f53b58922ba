"""A ledger and a command for the findings of reviewers."""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from pathlib import Path

import pytest

import dpselect
from dpselect.cli.app import main
from dpselect.privacy import pure_dp

SOURCE = Path(dpselect.__file__).parent
SECRET = "s3cr3t"
STEP = pure_dp(epsilon=0.1)


def named(name):
    """A function or class of the library by its name, wherever it lies."""
    definition = re.compile(rf"^(def|class) {name}\b", re.MULTILINE)
    for path in SOURCE.rglob("*.py"):
        if definition.search(path.read_text(encoding="utf-8")):
            return getattr(importlib.import_module(".".join(("dpselect", *path.relative_to(SOURCE).parts))[:-3]), name)
    raise LookupError(name)


def command(monkeypatch, capsys, *arguments):
    """The exit status of `dpselect` and what it printed; an exception that gets out is a failure of the test."""
    monkeypatch.setattr(sys, "argv", ["dpselect", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    printed = capsys.readouterr()
    return end.value.code or 0, printed.out, printed.err


def text_of(error):
    return "".join(traceback.format_exception(error))
