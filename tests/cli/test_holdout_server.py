"""The commands of a server: invitations, and what a submission prints."""

import json
from pathlib import Path

import pytest

pytest.importorskip("starlette")

from dpselect.cli import holdout_server
from dpselect.cli.holdout_server import invite, revoke, submit
from dpselect.errors import ArgumentError, ContentError

SCORE = {
    "agrees": False, "value": 0.81234, "interval": [0.7, 0.9], "repeated": False,
    "questions_left": 9, "answers_left": 2,
}  # fmt: skip


class Client:
    """Answers every submission with this; the calls are kept."""

    found, calls = SCORE, []

    def __init__(self, url, *, token):
        self.calls.append((url, token))

    def submit(self, name, file, **options):
        self.calls.append((name, file, options))
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.fixture
def client(monkeypatch):
    monkeypatch.setattr(holdout_server, "HoldoutClient", Client)
    monkeypatch.setenv("DPSELECT_TOKEN", "secret")
    monkeypatch.setattr(Client, "calls", [])
    return Client


def test_an_invitation_prints_its_token_once(tmp_path, capsys):
    people = str(tmp_path / "people.db")
    invite("Ada", questions=100, answers=3, submitters=people)
    token = capsys.readouterr().out.strip()
    assert len(token) > 20
    assert token.encode() not in Path(people).read_bytes()
    revoke("Ada", submitters=people)
    assert capsys.readouterr().out == "Ada: the token is no longer valid\n"


def test_a_submission_prints_its_answer(client, capsys):
    submit(Path("guesses.csv"), to="https://example.org/a/boards/my%20pets/", stake="all")
    assert client.calls[0] == ("https://example.org/a", "secret")
    name, file, options = client.calls[1]
    assert (name, file, options["stake"], options["candidate"]) == ("my pets", Path("guesses.csv"), "all", None)
    assert capsys.readouterr().out == (
        "0.8123\non new rows it is between 0.7 and 0.9\n9 questions left, 2 with a score\n"
    )


def test_a_claim_is_confirmed_or_not(client, capsys, monkeypatch):
    submit(Path("guesses.csv"), to="https://example.org/boards/pets", claim=0.87)
    assert capsys.readouterr().out.startswith("no: 0.8123\n")
    monkeypatch.setattr(client, "found", {**SCORE, "agrees": True, "interval": None, "repeated": True})
    submit(Path("guesses.csv"), to="https://example.org/boards/pets", claim=0.87)
    assert capsys.readouterr().out == (
        "yes: 0.87 is confirmed\nasked before, not charged again; 9 questions left, 2 with a score\n"
    )


def test_a_gate_prints_its_verdict_and_gets_the_hash_of_the_content(client, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(client, "found", {"verdict": "better"})
    (tmp_path / "model.bin").write_bytes(b"abc")
    submit(Path("a.csv"), to="https://example.org/boards/g", content=tmp_path / "model.bin", as_json=True)
    assert json.loads(capsys.readouterr().out) == {"verdict": "better"}
    assert client.calls[1][2]["candidate"].startswith("ba7816bf8f01cfea")  # SHA-256 of "abc"


def test_wrong_use_is_named(client, monkeypatch):
    for to in ("https://example.org/pets", "https://example.org/boards/", "/boards/pets"):
        with pytest.raises(ArgumentError, match="to must be a leaderboard's URL"):
            submit(Path("a.csv"), to=to)
    monkeypatch.setattr(client, "found", ContentError("another form"))
    with pytest.raises(ArgumentError, match="another form"):
        submit(Path("a.csv"), to="https://example.org/boards/g")
    monkeypatch.delenv("DPSELECT_TOKEN")
    with pytest.raises(ArgumentError, match="DPSELECT_TOKEN must hold your token"):
        submit(Path("a.csv"), to="https://example.org/boards/g")
