"""Entry points of audits: what `module:attribute` names, and the part of it that is not there."""

from __future__ import annotations

import math
import sys
import types

import pytest

from dpselect.audit import FiniteSubject, Subject
from dpselect.audit.entry import function_of_data, resolve_entry, subject_of, where_it_failed
from dpselect.errors import ArgumentError
from dpselect.privacy import pure_dp

FINITE = FiniteSubject(name="coin", data={0: 1}, neighbour={0: 1}, claim=pure_dp(epsilon=0.0))


@pytest.fixture
def module(monkeypatch):
    found = types.ModuleType("an_entry")
    found.group = types.SimpleNamespace(coin=FINITE)
    monkeypatch.setitem(sys.modules, "an_entry", found)
    return found


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("an_entry", "must be MODULE:NAME"),
        (":coin", "must be MODULE:NAME"),
        ("an_entry:", "must be MODULE:NAME"),
        ("no_such_module:x", "there is no module no_such_module$"),
        ("json.no_such:x", "there is no module json.no_such$"),
        ("an_entry:x", "an_entry has no attribute 'x'"),
        ("an_entry:group.x", "an_entry:group has no attribute 'x'"),
    ],
)
def test_the_part_that_is_not_there_is_named(module, entry, said):
    with pytest.raises(ArgumentError, match=said):
        resolve_entry(entry)


def test_a_module_that_fails_or_lacks_another_one(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "lacks_another.py").write_text("import no_such_module\n")
    with pytest.raises(ArgumentError, match="no module no_such_module while importing lacks_another"):
        resolve_entry("lacks_another:x")
    (tmp_path / "ends_here.py").write_text("raise SystemExit('secret')\n")
    with pytest.raises(ArgumentError, match=r"importing ends_here failed: SystemExit at .*ends_here.py:1") as caught:
        resolve_entry("ends_here:x")
    assert "secret" not in str(caught.value)


def test_what_gives_a_subject_is_one(module):
    assert resolve_entry("an_entry:group.coin") is FINITE
    with_method = types.SimpleNamespace(audit_subject=lambda: FINITE)
    for found in (FINITE, lambda: FINITE, with_method, lambda: with_method):
        assert subject_of(found, name="x") is FINITE
    with pytest.raises(ArgumentError, match="got function, wanted a Subject"):
        subject_of(lambda: lambda: lambda: FINITE, name="x")
    with pytest.raises(ArgumentError, match="got int, wanted a Subject"):
        subject_of(3, name="x")


def test_a_function_that_fails_is_told_by_type_and_line():
    def needs_data(rows):
        return rows

    def fails():
        raise TypeError("secret")

    with pytest.raises(ArgumentError, match="cannot be called without arguments"):
        subject_of(needs_data, name="x")
    with pytest.raises(ArgumentError, match=r"failed: TypeError at .*test_entry.py:\d+") as caught:
        subject_of(fails, name="x")
    assert "secret" not in str(caught.value)
    assert where_it_failed(ValueError("secret")) == "ValueError"


def test_a_function_of_data_becomes_a_subject():
    claim = pure_dp(epsilon=1.0)
    found = function_of_data(math.fsum, data=[1.0, 2.0], neighbour=[1.0], claim=claim, name="sum")
    assert isinstance(found, Subject)
    assert (found.name, found.claim) == ("sum", claim)
    assert [found.draw(neighbour, 2, None).tolist() for neighbour in (False, True)] == [[3.0, 3.0], [1.0, 1.0]]
    with pytest.raises(ArgumentError, match="got int"):
        function_of_data(3, data=[], neighbour=[], claim=claim, name="x")
