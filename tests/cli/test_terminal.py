"""What the command line writes goes through one function, and steers no terminal."""

from __future__ import annotations

import io
import json
import sys
import warnings

import pytest
from hypothesis import given, strategies as st

from dpselect.cli.terminal import plain, shown_warnings

ESCAPES = "\x1b[31mred\x1b[0m\x07\u202ereversed\x9b2J [red]"


def steers(text):
    return any(sign in text for sign in "\x1b\x07\u202e\x9b")


@given(st.text())
def test_what_is_printed_is_printable(text):
    shown = plain(text)
    assert all(sign.isprintable() or sign in "\n\t" or sign.isspace() for sign in shown)
    assert not steers(shown)
    if text.isprintable():
        assert shown == text


def test_an_encoding_without_the_sign_is_no_error(monkeypatch):
    from dpselect.cli.terminal import say

    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    say("März \udc80")
    stream.flush()
    assert stream.buffer.getvalue() == b"M\\xe4rz \\udc80\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_header_does_not_steer_the_terminal(folder, capsys, monkeypatch):
    (folder / "a.csv").write_text(f'"{ESCAPES} id",label\n1,2\n')
    status, _, err = in_process("init", "a.csv", "--label", "label", capsys=capsys, monkeypatch=monkeypatch)
    assert (status, steers(err)) == (0, False)
    assert "[red]" in err
    assert "left out" in err


def test_a_label_that_is_not_there(folder, capsys, monkeypatch):
    (folder / "a.csv").write_text(f'"{ESCAPES}",b\n1,2\n')
    status, _, err = in_process("init", "a.csv", "--label", "label", capsys=capsys, monkeypatch=monkeypatch)
    assert (status != 0, steers(err)) == (True, False)


def test_the_name_of_a_submitted_file(folder, capsys, monkeypatch):
    labels = folder / "labels.csv"
    labels.write_text("id,label\n" + "".join(f"{i},{i % 2}\n" for i in range(200)))
    words = ("holdout", "create", "labels.csv", "--to", "a.holdout", "--questions", 5)
    assert in_process(*words, capsys=capsys, monkeypatch=monkeypatch)[0] == 0
    name = f"{ESCAPES}.csv"
    (folder / name).write_text("id,prediction\n")
    status, out, err = in_process(
        "holdout", "score", name, "--holdout", "a.holdout", capsys=capsys, monkeypatch=monkeypatch
    )
    assert (status, out, steers(err)) == (1, "", False)
    assert "\\x1b[31m" in err


def test_an_unknown_key_of_a_study(folder, capsys, monkeypatch):
    key = json.dumps(ESCAPES)[1:-1].replace("\x7f", "")
    (folder / "a.toml").write_text(f'"{key}" = 1\n["b{key}"]\nc = 2\n')
    status, _, err = in_process("tune", "a.toml", capsys=capsys, monkeypatch=monkeypatch)
    assert (status, steers(err), "unknown key" in err) == (2, False, True)


def test_a_budget_named_in_markup(folder, capsys, monkeypatch):
    words = ("ledger", "create", "a.db", "--budget", "[red]team[/red] :smile:", "--epsilon", 1)
    assert in_process(*words, capsys=capsys, monkeypatch=monkeypatch)[0] == 0
    assert "[red]team[/red] :smile:" in in_process("ledger", "show", "a.db", capsys=capsys, monkeypatch=monkeypatch)[1]


def in_process(*words, capsys, monkeypatch):
    from dpselect.cli.app import main

    monkeypatch.setattr(sys, "argv", ["dpselect", *map(str, words)])
    monkeypatch.setenv("COLUMNS", "200")
    status = 0
    try:
        main()
    except SystemExit as left:
        status = left.code or 0
    found = capsys.readouterr()
    return status, found.out, found.err


def test_warnings_are_written_by_the_same_function():
    before = warnings.formatwarning
    with shown_warnings():
        written = warnings.formatwarning(UserWarning(ESCAPES), UserWarning, "f", 1)
    assert warnings.formatwarning is before
    assert written.startswith("UserWarning: \\x1b[31mred")
    assert not steers(written)
