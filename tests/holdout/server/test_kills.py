"""kill -9 under load: no answer was given that is not counted, and the next server knows all of them."""

import base64
import json
import os
import random
import threading
import time

import pytest

from dpselect.errors import ContentError
from dpselect.holdout import Gate, Holdout
from dpselect.holdout.server import HoldoutClient
from dpselect.holdout.server.client import ServerError
from dpselect.holdout.server.submitters import Submitters
from tests.holdout.server.serving import POSTGRES, fresh_database, make_gate, make_holdout, served

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")


class Load:
    """Clients that ask as fast as they can until there is no answer; what they were told."""

    def __init__(self, url, token, guesses, better, first):
        self.client = HoldoutClient(url, token=token)
        self.guesses, self.better = guesses, better
        self.scores, self.verdicts, self.wrong = {}, {}, []
        self.numbers, self.lock = iter(range(first, 10**9)), threading.Lock()
        self.threads = [threading.Thread(target=self.run) for _ in range(8)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while True:
            with self.lock:
                number = next(self.numbers)
            try:
                if number % 4:
                    claim = 0.89 + number * 1e-7
                    found = self.client.score(
                        "pets", ids=list(self.guesses), predictions=list(self.guesses.values()), claim=claim
                    )
                    self.scores[claim] = (found["agrees"], found["value"])
                else:
                    self.verdicts[f"{number}"] = self.client.ask("my", self.better, candidate=f"{number}")
            except ServerError as refused:
                if refused.code == "unreachable":
                    return
                self.wrong.append(refused.code)
            except Exception as other:
                self.wrong.append(repr(other))
                return


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.skipif(not POSTGRES, reason="no server"))])
def places(request, tmp_path, monkeypatch):
    """Where a holdout, a gate and submitters lie, what is served, and the variable with the key."""
    if request.param == "sqlite":
        yield tmp_path / "pets.holdout", tmp_path / "my.gate", tmp_path / "submitters.db", tmp_path, None
        return
    pytest.importorskip("psycopg")
    monkeypatch.setenv("DPSELECT_SHARED_KEY", base64.b64encode(bytes(range(32))).decode())
    with fresh_database() as url:
        yield f"{url}#pets", f"{url}#my", url, url, "DPSELECT_SHARED_KEY"


@pytest.mark.full
@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_kills_under_load(tmp_path, state, places, rounds):
    pets, my, submitters, boards, key = places
    guesses = make_holdout(pets, questions=10**6, answers=1, key_variable=key)
    better = make_gate(my, consultations=10**6, key_variable=key)
    with Submitters(submitters) as people:
        token = people.invite("Ada", questions=10**9)
    draw, told = random.Random(rounds), 0
    for number in range(rounds):
        with served(tmp_path, boards, flags=("--submitters", str(submitters))) as server:
            load = Load(server.url, token, guesses, better, first=number * 10_000)
            end = time.monotonic() + 30
            while not (load.scores and load.verdicts) and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(draw.uniform(0.0, 0.3))
            server.process.kill()
        for thread in load.threads:
            thread.join()
        assert load.wrong == []
        holdout, gate = Holdout.open(pets), Gate.open(my)
        for claim, (agrees, value) in load.scores.items():
            again = holdout.score(ids=guesses, predictions=guesses.values(), claim=claim, submitter="Ada")
            assert (again.repeated, again.agrees, again.value) == (True, agrees, value)
        asked = gate.status()["asked"]
        for name, verdict in load.verdicts.items():
            assert gate.ask(better, candidate=json.dumps(["Ada", name])) is verdict
        assert gate.status()["asked"] == asked, "what was answered is on record, and not charged again"
        told += len(load.scores) + len(load.verdicts)
        with Submitters(submitters) as people:
            who = people.by_token(token)
            used = sum(10**9 - people.left(who, board.identifier)[0] for board in (holdout, gate))
        assert used >= told, "a crash gives no quota back"
    assert holdout.status()["asked"] >= len(load.scores)
    with pytest.raises(ContentError):
        holdout.score(ids=[1], predictions=[1])
    print(f"{rounds} kills, {told} answers, all of them counted")
