"""The server and bodies that take memory or time: many small values, packed ones, many at once."""

import asyncio
import gc
import importlib
import json
import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dpselect.errors import ArgumentError, ContentError
from dpselect.holdout.scores import f1_score
from dpselect.holdout.server import ServerSettings
from dpselect.holdout.server.boards import open_boards
from dpselect.holdout.server.submitters import Submitters
from dpselect.holdout.server.uploads import Upload
from tests.holdout.ratios_cases import LABELS, ROWS, made
from tests.holdout.server.serving import invited, make_gate, make_holdout, memory_of, served
from tests.holdout.server.test_app import Broken, call
from tests.holdout.server.test_limits import SUBMISSIONS, answer_of, bearer

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
make_app = importlib.import_module("dpselect.holdout.server.app").make_app


def test_a_submission_whose_values_are_not_outcomes_takes_no_memory_while_it_waits(tmp_path, state):
    better = make_gate(tmp_path / "my.gate")
    board = open_boards([tmp_path])["my"]
    deep = json.dumps({"outcomes": {**better, "task 1": [[0] * 100_000]}, "candidate": "x"}).encode()
    wide = json.dumps({"outcomes": {**better, "task 1": "9" * 400_000}}).encode()
    for body in (deep, wide):
        tracemalloc.start()
        question = board.question(Upload(body, "application/json", {}), "Ada", own_stakes=False)
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert kept < 100_000
        assert question.ask().body["verdict"] in ("accepted", "rejected")


@pytest.mark.parametrize("piece", [b"{}," * 20_000, b'{"a":{},"b":[]},' * 4000])
def test_a_body_of_many_small_values_is_refused_while_it_arrives(tmp_path, piece):
    """Before all of it has come, and without being decoded; nothing is charged."""
    token, arrived = invited(tmp_path, questions=5), [b'{"predictions": [']
    most = (16 << 20) // len(piece)

    async def receive():
        arrived.append(piece)
        return {
            "type": "http.request",
            "body": arrived[-1] if len(arrived) > 2 else arrived[0],
            "more_body": len(arrived) < most,
        }

    with Submitters(tmp_path / "submitters.db") as people:
        app = make_app({"broken": Broken(ContentError("x"))}, people, ServerSettings())
        tracemalloc.start()
        status, body = asyncio.run(answer_of(app, "POST", SUBMISSIONS, bearer(token), receive))[:2]
        _, memory = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert status == 422
        assert b"too many small values" in body
        assert len(arrived) < most / 2
        assert memory < 64 << 20
        assert people.left(people.by_token(token), "x")[0] == 5


def test_nothing_is_kept_of_a_body_that_was_refused(tmp_path, state):
    """Neither what was decoded of it, by the frames of the exception, nor the body."""
    make_gate(tmp_path / "my.gate")
    token, body = invited(tmp_path), b'{"outcomes": [' + b"1234," * 200_000 + b"1]}"
    with Submitters(tmp_path / "submitters.db") as people:
        app, path = make_app(open_boards([tmp_path]), people, ServerSettings()), "/api/boards/my/submissions"
        gc.collect()
        gc.disable()
        try:
            for count in range(4):
                if count == 1:  # the first one has made what stays
                    tracemalloc.start()
                assert call(app, method="POST", path=path, headers=bearer(token), chunks=[body])[0] == 422
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            gc.enable()
            tracemalloc.stop()
    assert kept < len(body)


NUMBERS, TEXTS, LINES = (
    (b'{"predictions": [', b"1234,", b"1]}"),
    (b'["', b'1234567","', b'"]'),
    (b"id,prediction\n", b"a,b\n", b""),
)


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize(
    "parts", [(b"[", b"{},", b"1]"), NUMBERS, TEXTS, LINES], ids=["tables", "numbers", "texts", "rows"]
)
def test_eight_bodies_of_sixteen_mebibytes(tmp_path, state, parts):
    make_holdout(tmp_path / "pets.holdout")
    (head, piece, tail), media = parts, "text/csv" if parts is LINES else "application/json"
    body = head + piece * (((16 << 20) - len(head + tail)) // len(piece)) + tail
    tokens = [invited(tmp_path, name) for name in "abcd"]
    with served(tmp_path, tmp_path) as server, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda token: server.submit("pets", body, token, media=media)[0], tokens * 2))
        assert found == [422] * 8
        assert memory_of(server.process) < 512
        assert server.ask("GET", "/api/boards/pets/quota", token=tokens[0])[2]["questions_left"] == 1000


def test_a_compressed_body_is_not_read(tmp_path):
    token, path = invited(tmp_path), "/api/boards/broken/submissions"
    with Submitters(tmp_path / "submitters.db") as people:
        app = make_app({"broken": Broken(ContentError("x"))}, people, ServerSettings())
        headers = [*bearer(token), ("content-encoding", "gzip")]
        assert call(app, method="POST", path=path, headers=headers, chunks=[])[0] == 415


def test_bodies_under_way_have_so_much_memory(tmp_path):
    """A quarter of it for one submitter, and no more than there is for all."""
    tokens = [invited(tmp_path, name) for name in ("Ada", "Ada's friend", "Bo", "Cy", "Di", "Ed")]
    with Submitters(tmp_path / "submitters.db") as people:
        limits = ServerSettings(memory=4000, max_bytes=1000, body_seconds=1.0)
        app, statuses = make_app({"broken": Broken(ContentError("x"))}, people, limits), []

        def submit(token, size):
            headers, path = (
                [("authorization", f"Bearer {token}"), ("content-type", "text/csv")],
                "/api/boards/broken/submissions",
            )
            chunks = [b"x" * size, *[b""] * 99]
            statuses.append(call(app, method="POST", path=path, headers=headers, chunks=chunks, pause=0.05)[0])

        def together(*asked):
            statuses.clear()
            threads = [threading.Thread(target=submit, args=one) for one in asked]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return sorted(statuses)

        assert together((tokens[0], 600), (tokens[0], 600), (tokens[1], 600)) == [408, 408, 429]
        assert together(*((token, 900) for token in tokens)) == [408] * 4 + [429] * 2
        assert together((tokens[0], 600)) == [408], "it is given back"


RIGHT = np.where(np.arange(ROWS) % 10 == 0, np.where(LABELS == "cat", "dog", "cat"), LABELS)


def test_the_server_takes_a_metric(tmp_path, state):
    from dpselect.holdout.server.boards import open_boards
    from dpselect.holdout.server.uploads import Upload

    made(tmp_path, ("accuracy", "f1"))
    board = open_boards([tmp_path])["x"]
    predictions = dict(zip(map(str, range(ROWS)), RIGHT.tolist(), strict=True))
    values = []
    for metric in (None, "accuracy", "f1"):
        body = json.dumps({"predictions": predictions, "metric": metric}).encode()
        question = board.question(Upload(body, "application/json", {}), "Ada", own_stakes=False)
        values.append((question.fingerprint, question.ask()))
    assert values[0][0] == values[1][0] != values[2][0]
    assert [answer.value is None for _, answer in values] == [False, False, True], "one metric on the leaderboard"
    assert values[2][1].body["value"] == pytest.approx(f1_score(LABELS == "cat", RIGHT == "cat"), abs=0.02)
    other = Upload(json.dumps({"predictions": predictions, "metric": "auc"}).encode(), "application/json", {})
    with pytest.raises(ArgumentError, match="metric"):
        board.question(other, "Ada", own_stakes=False)
