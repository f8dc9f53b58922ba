"""The recipe of two accounts: what belongs to the judge's account, the agent's can neither read nor reset.

Needs root, to become both of them; is skipped otherwise.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from dpselect.holdout import Gate, GateRules

JUDGE, AGENT = 61001, 61002
pytestmark = pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0, reason="needs root, to act under two other accounts"
)


def as_account(account, task):
    """What `task()` returns in a child process of that account."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(account)
            os.setuid(account)
            os.umask(0o077)
            found = task()
        except BaseException as error:
            found = repr(error)
        os.write(writing, json.dumps(found).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answers:
        said = answers.read()
    os.waitpid(child, 0)
    return json.loads(said)


@pytest.fixture
def judge(monkeypatch):
    """The judge's folder, where everybody may look for it, with a gate that was asked once."""
    home = Path(tempfile.mkdtemp(prefix="judge-", dir="/tmp"))
    os.chown(home, JUDGE, JUDGE)
    home.chmod(0o700)
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))

    def make():
        (home / "incumbent.csv").write_text("id,outcome\n1,0\n")
        gate = Gate.create(home / "my.gate", dict.fromkeys(range(40), 0), rules=GateRules(answer_seconds=0))
        return gate.ask(dict.fromkeys(range(40), 0))

    assert as_account(JUDGE, make) is False
    yield home
    shutil.rmtree(home)


def attempts(home, mine):
    """What an agent may try, by name; each succeeds when it raises nothing."""
    gate, counter = home / "my.gate", next((home / "state" / "dpselect" / "records").glob("*.db"))
    key = next((home / "state" / "dpselect" / "keys").iterdir())
    forged = mine / "forged"
    forged.write_bytes(b"x")
    return {
        "list the folder": lambda: list(home.iterdir()),
        "read the outcomes": lambda: (home / "incumbent.csv").read_text(),
        "read the gate": gate.read_bytes,
        "copy the gate": lambda: shutil.copy(gate, mine),
        "read the key": key.read_bytes,
        "read the counter": counter.read_bytes,
        "write the counter": lambda: counter.open("r+b").write(b"x"),
        "remove the counter": counter.unlink,
        "put another counter there": lambda: os.replace(forged, counter),
        "put another gate there": lambda: os.replace(forged, gate),
        "move the state away": lambda: os.rename(home / "state", mine / "state"),
        "move the folder away": lambda: os.rename(home, mine / "judge"),
        "remove all": lambda: shutil.rmtree(home),
        "link the gate": lambda: os.link(gate, mine / "link"),
        "open the rights": lambda: home.chmod(0o777),
        "own the folder": lambda: os.chown(home, AGENT, AGENT),
        "open the gate": lambda: Gate.open(gate).status(),
        "ask the gate": lambda: Gate.open(gate).ask(dict.fromkeys(range(40), 1)),
    }


def tried(home, mine, names):
    def go():
        found = {}
        for name in names:
            try:
                attempts_by_name[name]()
                found[name] = "done"
            except Exception as error:
                found[name] = type(error).__name__
        return found

    attempts_by_name = attempts(home, mine)  # the paths are known: nothing rests on hiding them
    return go


def test_an_agents_account_can_neither_read_nor_reset(judge, tmp_path):
    mine = Path(tempfile.mkdtemp(prefix="agent-", dir="/tmp"))
    try:
        names = list(attempts(judge, mine))
        go = tried(judge, mine, names)
        os.chown(mine, AGENT, AGENT)
        os.chown(mine / "forged", AGENT, AGENT)
        found = as_account(AGENT, go)
        assert {name: how for name, how in found.items() if how not in ("PermissionError", "StudyError")} == {}
        assert set(found) == set(names)
        assert as_account(JUDGE, lambda: Gate.open(judge / "my.gate").status()["asked"]) == 1
    finally:
        shutil.rmtree(mine)


def test_the_test_would_see_rights_that_are_too_wide(judge):
    """The same attempts once the folder belongs to everybody, and its content to the agent."""
    mine = Path(tempfile.mkdtemp(prefix="agent-", dir="/tmp"))
    try:
        names = ["read the outcomes", "copy the gate", "read the key", "ask the gate", "put another counter there"]
        go = tried(judge, mine, names)
        for path in (mine, judge, *mine.rglob("*"), *judge.rglob("*")):
            os.chown(path, AGENT, AGENT)
        assert as_account(AGENT, go) == dict.fromkeys(names, "done")
    finally:
        shutil.rmtree(mine)
