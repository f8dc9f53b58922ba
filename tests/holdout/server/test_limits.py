"""The server against submitters who want to learn of each other, or to take more than their share."""

import asyncio
import importlib
import json
import threading

import pytest

from dpselect.errors import ArgumentError, ContentError, StudyError
from dpselect.holdout import Holdout
from dpselect.holdout.server import ServerSettings
from dpselect.holdout.server.boards import BoardAnswer, open_boards
from dpselect.holdout.server.limits import KnownAddresses
from dpselect.holdout.server.submitters import Submitters
from dpselect.holdout.server.uploads import Upload
from tests.holdout.server.serving import invited, make_gate, make_holdout
from tests.holdout.server.test_app import Broken, call, scope_of

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
make_app = importlib.import_module("dpselect.holdout.server.app").make_app


def bearer(token):
    return [("authorization", f"Bearer {token}"), ("content-type", "application/json")]


SUBMISSIONS = "/api/boards/broken/submissions"


async def answer_of(app, method, path, headers, receive):
    """The status, the body and the headers of an application's answer in this process."""
    said = []

    async def send(message):
        said.append(message)

    await app(scope_of(method, path, headers), receive, send)
    return said[0]["status"], b"".join(message.get("body", b"") for message in said), said[0]["headers"]


def asked(board, fields, who, **options):
    upload = Upload(json.dumps(fields).encode(), "application/json", {})
    return board.question(upload, who, own_stakes=False, **options).ask()


def test_the_questions_left_do_not_say_that_somebody_else_has_asked_the_same(tmp_path, state):
    guesses = make_holdout(tmp_path / "pets.holdout", questions=10)
    board, fields = open_boards([tmp_path])["pets"], {"predictions": guesses, "claim": 0.9}
    left = [asked(board, fields, who).body["questions_left"] for who in ("Ada", "Ada", "Bo", "Bo")]
    assert left == [9, 9, 8, 8], "each submitter's question is charged once"


def test_noise_does_not_average_out_over_submitters(tmp_path, state):
    """The same predictions have the same noisy score, anyone who asks."""
    from dpselect.holdout import HoldoutLabels, HoldoutRequest

    labels = [row % 2 for row in range(4000)]
    request = HoldoutRequest(metric="accuracy", questions=8, answers=8, failure_probability=0.05, mechanism="gaussian")
    holdout = Holdout.create(tmp_path / "x.holdout", HoldoutLabels(ids=range(4000), labels=labels), request)
    values = {holdout.score(ids=range(4000), predictions=labels, submitter=who).value for who in ("", "Ada", "Bo")}
    assert len(values) == 1


def test_a_token_that_is_revoked_while_it_waits_asks_nothing(tmp_path):
    token, told = invited(tmp_path, questions=5), []
    with Submitters(tmp_path / "submitters.db") as people:

        class Revoking(Broken):
            def question(self, upload, submitter, *, own_stakes):
                people.revoke("Ada")
                question = super().question(upload, submitter, own_stakes=own_stakes)
                return type(question)(fingerprint=b"x", ask=lambda: told.append(1) or BoardAnswer(body={}))

        app = make_app({"broken": Revoking(None)}, people, ServerSettings())
        path = "/api/boards/broken/submissions"
        status, _ = call(app, method="POST", path=path, headers=bearer(token), chunks=[b"{}"])
        assert (status, told) == (401, [])
        assert people.left(people.by_token(people.invite("Ada", questions=5)), "x")[0] == 5


def test_one_submitter_does_not_take_all_places(tmp_path):
    """Of bodies that never come, each holding what was sent of it, so many of one submitter at once."""
    ada, bo = invited(tmp_path, "Ada"), invited(tmp_path, "Bo")
    with Submitters(tmp_path / "submitters.db") as people:
        app = make_app({"broken": Broken(ContentError("x"))}, people, ServerSettings(at_once=2, body_seconds=0.3))
        statuses = []

        def submit(token):
            path, chunks = "/api/boards/broken/submissions", [b"{"] * 99
            statuses.append(call(app, method="POST", path=path, headers=bearer(token), chunks=chunks, pause=0.01)[0])

        threads = [threading.Thread(target=submit, args=(token,)) for token in (ada, ada, ada, bo)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(statuses) == [408, 408, 408, 429]


@pytest.mark.parametrize("path", ["/healthz", "/openapi.json", "/none", "/api/boards/none", "/boards"])
def test_every_request_counts_for_its_address(tmp_path, path):
    with Submitters(tmp_path / "submitters.db") as people:
        app = make_app({"broken": Broken(None)}, people, ServerSettings(address_rate=2))
        statuses = [call(app, path=path)[0] for _ in range(4)]
    assert 429 not in statuses[:2]
    assert statuses[2:] == [429, 429]


def test_an_address_is_known_once_a_valid_token_has_come_from_it(tmp_path, state):
    make_gate(tmp_path / "my.gate")
    token, known = invited(tmp_path), KnownAddresses()
    host = scope_of("GET", "/", [])["client"][0]
    with Submitters(tmp_path / "submitters.db") as people:
        app = make_app(open_boards([tmp_path / "my.gate"]), people, ServerSettings(), known)
        for sent, status, is_known in (("dps_", 401, False), (token, 200, True)):
            assert call(app, path="/api/boards/my/quota", headers=bearer(sent))[0] == status
            assert (host in known) == is_known


def test_known_addresses_are_the_latest_of_so_many():
    known = KnownAddresses()
    for place in range(10_001):
        known.add(f"10.0.{place // 250}.{place % 250}")
        known.add("10.1.0.1")
    assert [address in known for address in ("10.0.0.0", "10.0.0.1", "10.0.0.2", "10.1.0.1")] == [
        False,
        False,
        True,
        True,
    ]


def test_who_has_asked_too_often_is_not_heard_further(tmp_path):
    """The connection ends, but not before a body that is on its way could be read."""

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    with Submitters(tmp_path / "submitters.db") as people:
        app = make_app({"broken": Broken(None)}, people, ServerSettings(address_rate=1))
        for method, ends in (("GET", False), ("GET", True), ("POST", False)):
            headers = asyncio.run(answer_of(app, method, "/healthz", [], receive))[2]
            assert ((b"connection", b"close") in headers) == ends


def test_a_submission_waits_so_long_for_its_turn(tmp_path):
    """Then nothing is asked or counted; one whose turn has come is answered, however long that takes."""
    token, asking, going_on, statuses = invited(tmp_path, questions=5), threading.Event(), threading.Event(), []

    class Slow(Broken):
        def question(self, upload, submitter, *, own_stakes):
            def ask():
                asking.set()
                assert going_on.wait(20)
                return BoardAnswer(body={"verdict": "accepted"})

            return type(super().question(upload, submitter, own_stakes=own_stakes))(fingerprint=None, ask=ask)

    with Submitters(tmp_path / "submitters.db") as people:
        app = make_app({"broken": Slow(None)}, people, ServerSettings(turn_seconds=0.1))

        async def receive():
            return {"type": "http.request", "body": b"{}", "more_body": False}

        async def submit():
            statuses.append((await answer_of(app, "POST", SUBMISSIONS, bearer(token), receive))[0])

        async def both():
            first = asyncio.create_task(submit())
            while not asking.is_set():
                await asyncio.sleep(0.01)
            await submit()
            assert statuses == [429]
            going_on.set()
            await first

        asyncio.run(both())
        assert statuses == [429, 200]
        assert people.left(people.by_token(token), "x")[0] == 4


def test_limits_of_each_submitter(tmp_path):
    with Submitters(tmp_path / "submitters.db") as people:
        small = people.invite("Ada", questions=9, max_bytes=10, rate=3)
        large = people.invite("Bo", questions=9)
        app = make_app({"broken": Broken(ContentError("x"))}, people, ServerSettings(rate=5, max_bytes=100))
        path = "/api/boards/broken/submissions"

        def submit(token, size):
            return call(app, method="POST", path=path, headers=bearer(token), chunks=[b"x" * size])[0]

        assert [submit(small, 11), submit(small, 10), submit(large, 11)] == [413, 422, 422]
        assert [submit(small, 1), submit(small, 1), submit(large, 101)] == [422, 429, 413]
        for wrong in ({"max_bytes": 0}, {"rate": 0.5}, {"max_bytes": 1.5}):
            with pytest.raises((ArgumentError, TypeError)):
                people.invite("Cy", questions=1, **wrong)


def test_a_record_in_use_is_not_a_failure(tmp_path):
    """Who reads while someone else waits for the record sees what it was; a record that fails says so."""

    class Locked(Broken):
        def describe(self):
            raise StudyError("/srv/capybara.gate is in use")

    with Submitters(tmp_path / "submitters.db") as people:
        app = make_app({"broken": Locked(None)}, people, ServerSettings())
        for path in ("/", "/boards/broken", "/api/boards", "/api/boards/broken"):
            status, body = call(app, path=path)
            assert status == 503
            assert b"capybara" not in body


def test_readers_do_not_queue_up_for_the_record(tmp_path, state, monkeypatch):
    make_gate(tmp_path / "my.gate")
    board = open_boards([tmp_path])["my"]
    waiting, going_on = threading.Event(), threading.Event()

    def slow():
        waiting.set()
        going_on.wait(20)
        return {"new": True}

    monkeypatch.setattr(board, "_described", slow)
    monkeypatch.setattr(board, "_at", -1e9)
    first = threading.Thread(target=board.describe)
    first.start()
    waiting.wait(20)
    assert board.describe()["kind"] == "gate"
    going_on.set()
    first.join()
    assert board.describe() == {"new": True}


def test_what_is_said_and_logged_is_short(tmp_path, state, caplog):
    make_holdout(tmp_path / "pets.holdout")
    token = invited(tmp_path)
    with Submitters(tmp_path / "submitters.db") as people, caplog.at_level("INFO"):
        app = make_app(open_boards([tmp_path]), people, ServerSettings())
        headers = [bearer(token)[0], ("content-type", "text/csv")]
        header = ",".join(f"column{number}" for number in range(10_000)).encode()
        path = "/api/boards/pets/submissions"
        status, body = call(app, method="POST", path=path, headers=headers, chunks=[header + b"\n"])
        assert (status, len(body) < 2000) == (422, True)
        assert call(app, method="CAPYBARA" * 1000, path=path)[0] == 405
    assert "CAPYBARA" not in caplog.text


def test_addresses_of_one_network_share_a_limit(tmp_path):
    from dpselect.holdout.server.limits import network_of

    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1") != network_of("2001:db8:0:1::1")
    assert [network_of(one) for one in ("::1", "::ffff:10.0.0.1", "10.0.0.1", "", "x")] == [
        "::/64",
        "10.0.0.1",
        "10.0.0.1",
        "",
        "x",
    ]
