"""The server of holdouts and gates: what it tells, what it counts, and what it keeps to itself."""

import asyncio
import importlib
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import jsonschema
import pytest

from dpselect.errors import ArgumentError, BudgetError, ContentError, StudyError
from dpselect.holdout import Gate
from dpselect.holdout.server import ServerSettings
from dpselect.holdout.server.boards import open_boards
from dpselect.holdout.server.submitters import Submitters
from dpselect.holdout.server.uploads import Upload
from tests.holdout.server.app_cases import asked
from tests.holdout.server.serving import invited, make_gate, make_holdout, served

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
make_app = importlib.import_module("dpselect.holdout.server.app").make_app


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A server with one of each, for tests that leave the other ones' quotas alone; and its folder."""
    folder = tmp_path_factory.mktemp("served")
    guesses = make_holdout(folder / "pets.holdout", answers=50, questions=200)
    better = make_gate(folder / "my.gate", consultations=200)
    assert Gate.open(folder / "my.gate").ask(better)  # so that no test depends on who asks first
    with served(folder, folder) as server:
        yield server, folder, guesses, better


@pytest.mark.full
def test_a_claim_is_confirmed_and_stands_on_the_leaderboard(tmp_path, state):
    guesses = make_holdout(tmp_path / "pets.holdout")
    with served(tmp_path, tmp_path) as server:
        ada, bo = invited(tmp_path, "Ada"), invited(tmp_path, "Bo <script>")
        status, found = server.submit("pets", {"predictions": guesses, "claim": 0.9}, ada)
        assert (status, found["agrees"], found["value"], found["questions_left"]) == (200, True, 0.9, 999)
        worse = {name: 1 - value for name, value in guesses.items()}
        status, found = server.submit("pets", {"predictions": worse}, bo)
        assert (status, found["agrees"], found["answers_left"]) == (200, None, 4)
        time.sleep(1.1)  # what is public is kept for a second
        _, _, board = server.ask("GET", "/api/boards/pets")
        assert [row["submitter"] for row in board["leaderboard"]] == ["Ada", "Bo <script>"]
        assert board["questions_left"] == 998
        _, headers, page = server.ask("GET", "/boards/pets")
        assert b"Bo &lt;script&gt;" in page
        assert b"<script" not in page
        assert "default-src 'none'" in headers["content-security-policy"]
        low, high = board["leaderboard"][0]["interval"]
        assert f"{low:.4g} to {high:.4g}".encode() in page


@pytest.mark.full
def test_a_gate_says_one_word_and_shows_no_loser(tmp_path, state):
    better = make_gate(tmp_path / "my.gate")
    with served(tmp_path, tmp_path / "my.gate") as server:
        ada, bo = invited(tmp_path, "Ada"), invited(tmp_path, "Bo")
        answers = [
            server.ask("POST", "/api/boards/my/submissions", {"outcomes": better}, token=who) for who in (ada, bo)
        ]
        assert [found for _, _, found in answers] == [{"verdict": "accepted"}, {"verdict": "rejected"}]
        assert len({(status, headers["content-length"]) for status, headers, _ in answers}) == 1
        for path in ("/api/boards", "/api/boards/my", "/boards/my"):
            assert "Bo" not in str(server.ask("GET", path)[2])
        _, _, board = server.ask("GET", "/api/boards/my")
        assert [row["submitter"] for row in board["leaderboard"]] == ["Ada"]
        assert not {"asks", "asked", "log_purse"} & board.keys()


@pytest.mark.full
def test_candidates_are_named_by_each_submitter_for_themselves(tmp_path, state):
    """Else a free answer would say that someone else has asked about the same candidate."""
    better = make_gate(tmp_path / "my.gate")
    worse = dict.fromkeys(better, 0)
    with served(tmp_path, tmp_path / "my.gate") as server:
        ada, bo = invited(tmp_path, "Ada"), invited(tmp_path, "Bo")
        for token, count in ((ada, 1), (ada, 1), (bo, 2)):
            assert server.submit("my", {"outcomes": worse, "candidate": "a"}, token)[0] == 200
            assert Gate.open(tmp_path / "my.gate").status()["asked"] == count


def test_that_somebody_else_has_asked_the_same_is_not_said(world):
    server, folder, guesses, _ = world
    ada, bo = invited(folder, "first"), invited(folder, "second")
    for token, repeated in ((ada, False), (ada, True), (bo, False), (bo, True)):
        status, found = server.submit("pets", {"predictions": guesses, "claim": 0.91}, token)
        assert (status, found["repeated"]) == (200, repeated)


def test_a_repeated_question_counts_once(world):
    server, folder, guesses, _ = world
    token = invited(folder, "repeats", questions=2)
    for claim, left in ((0.905, 1), (0.905, 1), (0.895, 0), (0.905, 0)):
        assert server.submit("pets", {"predictions": guesses, "claim": claim}, token)[0] == 200
        assert server.ask("GET", "/api/boards/pets/quota", token=token)[2]["questions_left"] == left


def test_quotas(world):
    server, folder, guesses, better = world
    few = invited(folder, "few", questions=3, answers=1)
    for fields, wanted in (({"claim": 0.9}, 200), ({"claim": 0.1}, 200), ({"claim": 0.89}, 409)):
        status, found = server.submit("pets", {"predictions": guesses, **fields}, few)
        assert status == wanted
    assert found["error"]["code"] == "quota"
    status, found = server.submit("my", {"outcomes": better}, invited(folder, "elsewhere", boards=["pets"]))
    assert (status, found["error"]["code"]) == (403, "not_yours")
    plain, staking = invited(folder, "plain"), invited(folder, "staking", own_stakes=True)
    before = asked(folder)
    assert server.submit("my", {"outcomes": better, "stake": 1e-6}, plain)[0] == 422
    assert asked(folder) == before
    assert server.submit("my", {"outcomes": better, "stake": 1e-6}, staking)[0] == 200
    assert server.ask("GET", "/api/boards/my/quota", token=plain)[2]["questions_left"] == 1000


def test_tables_are_taken_too(world):
    server, folder, guesses, better = world
    token = invited(folder, "tables")
    table = "id,prediction\n" + "".join(f"{name},{value}\n" for name, value in guesses.items())
    submissions = "/api/boards/pets/submissions"
    status, _, found = server.ask("POST", f"{submissions}?claim=0.88", table.encode(), token=token, media="text/csv")
    assert (status, found["agrees"]) == (200, True)
    lines = "\n".join(json.dumps({"id": name, "outcome": value}) for name, value in better.items())
    for media, content in (
        ("application/x-ndjson; charset=utf-8", lines),
        ("text/csv", "id,outcome\n" + "".join(f"{name},{value}\n" for name, value in better.items())),
    ):
        assert server.submit("my", content.encode(), token, media=media)[0] == 200


def test_tokens(world):
    server, folder, guesses, _ = world
    token = invited(folder, "spy")
    fields = {"predictions": guesses, "claim": 0.9}
    for wrong in (None, token[:-1], token + "x", "dps_", "ä"):
        headers = {} if wrong is None else {"Authorization": f"Bearer {wrong}".encode().decode("latin-1")}
        status, _, found = server.ask("POST", "/api/boards/pets/submissions", fields, headers=headers)
        assert (status, found["error"]["code"]) == (401, "unauthorized")
    with Submitters(folder / "submitters.db") as people:
        with pytest.raises(ArgumentError, match="taken"):
            people.invite("spy", questions=1)
        people.revoke("spy")
        assert server.submit("pets", fields, token)[0] == 401
        assert server.submit("pets", fields, people.invite("spy", questions=1))[0] == 200
        with pytest.raises(ArgumentError):
            people.revoke("no one")
    content = b"".join(path.read_bytes() for path in folder.glob("submitters.db*"))
    assert b"spy" in content
    assert token.encode() not in content
    assert (folder / "submitters.db").stat().st_mode & 0o77 == 0


def test_nothing_of_a_submission_is_logged(world):
    server, folder, guesses, _ = world
    token = invited(folder, "Zebediah")
    server.submit("pets", {"predictions": guesses, "claim": 0.87125}, token)
    server.submit("pets", {"predictions": {**guesses, "row 1": "capybara"}, "claim": 7125.5}, token)
    server.ask("GET", "/api/boards/capybara?x=7125", token=token)
    lines = server.lines.read_text()
    assert "/api/boards/{board}/submissions 422" in lines
    for word in ("Zebediah", "7125", "capybara", token, "127.0.0.1 "):
        assert word not in lines


def test_the_document_describes_what_is_answered(world):
    server, folder, guesses, better = world
    token = invited(folder, "reader")
    _, _, document = server.ask("GET", "/openapi.json")
    components = {"components": document["components"]}

    def check(value, schema):
        jsonschema.Draft202012Validator({**schema, **components}).validate(value)

    seen = {
        "/api/boards": server.ask("GET", "/api/boards")[2],
        "/api/boards/{board}": server.ask("GET", "/api/boards/pets")[2],
        "/api/boards/{board}/quota": server.ask("GET", "/api/boards/my/quota", token=token)[2],
    }
    for path, value in seen.items():
        check(value, document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"])
    post = document["paths"]["/api/boards/{board}/submissions"]["post"]
    for board, fields in (("pets", {"predictions": guesses, "claim": 0.92}), ("my", {"outcomes": better})):
        check(fields, post["requestBody"]["content"]["application/json"]["schema"])
        status, found = server.submit(board, fields, token)
        check(found, post["responses"][str(status)]["content"]["application/json"]["schema"])
    for board, fields, who in (("pets", {}, token), ("no", {}, token), ("my", {}, "x")):
        status, found = server.submit(board, fields, who)
        check(found, post["responses"][str(status)]["content"]["application/json"]["schema"])
    with pytest.raises(jsonschema.ValidationError):
        check({"verdict": "perhaps"}, document["components"]["schemas"]["Verdict"])


def test_many_at_once_are_counted_once_each(world):
    server, folder, guesses, _ = world
    token, before = invited(folder, "crowd"), asked(folder)[0]
    statuses = []

    def submit(number):
        for claim in (0.88 + number / 1000, 0.9):
            statuses.append(server.submit("pets", {"predictions": guesses, "claim": claim}, token)[0])

    threads = [threading.Thread(target=submit, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 16
    # 0.89 and 0.9 among them may have been asked before, by other tests
    assert 7 <= asked(folder)[0] - before <= 9
    assert server.ask("GET", "/api/boards/pets/quota", token=token)[2]["questions_left"] in (1000 - 8, 1000 - 9)


@pytest.mark.full
def test_limits_of_size_and_rate(tmp_path, state):
    make_holdout(tmp_path / "pets.holdout")
    token = invited(tmp_path)
    with served(tmp_path, tmp_path, flags=("--max-bytes", "1000", "--rate", "5", "--address-rate", "20")) as server:
        for body, headers in ((b"x" * 1001, {}), (b"", {"Content-Length": "999999999999"})):
            status, _, found = server.ask(
                "POST", "/api/boards/pets/submissions", body, token=token, media="text/csv", headers=headers
            )
            assert (status, found["error"]["code"]) == (413, "too_large")
        statuses = [server.ask("GET", "/api/boards/pets/quota", token=token)[0] for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        assert 429 in [server.ask("GET", "/", headers={"X-Forwarded-For": f"10.0.0.{i}"})[0] for i in range(20)]


@pytest.mark.full
def test_behind_a_proxy(tmp_path, state):
    make_holdout(tmp_path / "pets.holdout")
    flags = ("--root-path", "/held-out", "--trust-proxy", "127.0.0.1", "--rate", "100", "--address-rate", "3")
    with served(tmp_path, tmp_path, flags=flags) as server:
        assert server.url.endswith("/held-out")
        _, _, document = server.ask("GET", "/openapi.json", headers={"X-Forwarded-For": "10.0.0.1"})
        assert document["servers"] == [{"url": "/held-out"}]
        # both with the prefix and without it, as proxies do it
        for address, path in (("10.0.0.2", "/boards/pets"), ("10.0.0.3", "/held-out/boards/pets")):
            status, _, page = server.ask("GET", path, headers={"X-Forwarded-For": address})
            assert status == 200
            assert b'href="../"' in page
        statuses = [server.ask("GET", "/", headers={"X-Forwarded-For": "10.0.0.4"})[0] for _ in range(4)]
        assert statuses == [200, 200, 200, 429]


def scope_of(method, path, headers):
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": [(name.encode(), value.encode()) for name, value in headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }


def call(app, *, method="GET", path="/", headers=(), chunks=(b"",), pause=0.0):
    """One request to an application in this process: its status and body."""
    waiting, said = list(chunks), []

    async def receive():
        await asyncio.sleep(pause)
        return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

    async def send(message):
        said.append(message)

    asyncio.run(app(scope_of(method, path, headers), receive, send))
    return said[0]["status"], b"".join(message.get("body", b"") for message in said)


class Broken:
    """A board whose questions fail in a way that no one foresaw, with a secret in the message."""

    name, kind, identifier = "broken", "gate", "x"

    def __init__(self, error):
        self.error = error

    def describe(self):
        return {"name": self.name, "kind": self.kind}

    def question(self, upload, submitter, *, own_stakes):
        from dpselect.holdout.server.boards import BoardQuestion

        def ask():
            raise self.error

        return BoardQuestion(fingerprint=b"x", ask=ask)


@pytest.mark.parametrize(
    ("error", "wanted", "left"),
    [
        (RuntimeError("capybara"), 500, 4),
        (StudyError("/srv/capybara.gate is damaged"), 503, 4),
        (BudgetError("the purse is empty"), 409, 5),
        (ContentError("column 'id' lacks ids"), 422, 5),
    ],
)
def test_errors_say_nothing_and_what_may_have_been_asked_stays_counted(tmp_path, caplog, error, wanted, left):
    token = invited(tmp_path, questions=5)
    headers = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
    with Submitters(tmp_path / "submitters.db") as people, caplog.at_level("INFO"):
        app = make_app({"broken": Broken(error)}, people, ServerSettings())
        path = "/api/boards/broken/submissions"
        status, body = call(app, method="POST", path=path, headers=headers, chunks=[b"{}"])
        assert status == wanted
        assert people.left(people.by_token(token), "x")[0] == left
    assert b"capybara" not in body
    assert "capybara" not in caplog.text


def test_a_slow_body_is_not_waited_for(tmp_path):
    token = invited(tmp_path)
    headers = [("authorization", f"Bearer {token}"), ("content-type", "text/csv")]
    with Submitters(tmp_path / "submitters.db") as people:
        app = make_app({"broken": Broken(None)}, people, ServerSettings(body_seconds=0.1))
        path = "/api/boards/broken/submissions"
        status, _ = call(app, method="POST", path=path, headers=headers, chunks=[b"x"] * 99, pause=0.05)
    assert status == 408


def test_too_many_ids_are_refused_before_they_wait(tmp_path, state):
    """Nothing is kept for a question, that would wait for its turn, but what has the right size."""
    guesses, better = make_holdout(tmp_path / "pets.holdout"), make_gate(tmp_path / "my.gate")
    boards = open_boards([tmp_path])
    wrong = [
        ("pets", {"predictions": {**guesses, "one more": 1}}),
        ("my", {"outcomes": {**better, "one more": 1}}),
        ("my", {"outcomes": {**better, "task 1": [1] * 1000}}),
    ]
    for name, fields in wrong:
        with pytest.raises(ContentError):
            boards[name].question(Upload(json.dumps(fields).encode(), "application/json", {}), "Ada", own_stakes=False)
    for name, fields in (("pets", {"predictions": guesses}), ("my", {"outcomes": better})):
        boards[name].question(Upload(json.dumps(fields).encode(), "application/json", {}), "Ada", own_stakes=False)


def test_what_is_served(tmp_path, state):
    with pytest.raises(ArgumentError, match="nothing to serve"):
        open_boards([tmp_path])
    make_holdout(tmp_path / "a.holdout")
    make_gate(tmp_path / "b")
    assert {name: board.kind for name, board in open_boards([tmp_path, tmp_path / "b"]).items()} == {
        "a": "holdout",
        "b": "gate",
    }
    make_gate(tmp_path / "a.gate")
    with pytest.raises(ArgumentError, match="different names"):
        open_boards([tmp_path])
    with pytest.raises(StudyError):
        open_boards([tmp_path / "none"])
    with pytest.raises(StudyError):
        open_boards([Path(__file__)])


@pytest.mark.full
def test_the_extra_is_named_when_it_is_missing(tmp_path):
    code = (
        "import sys; sys.modules['uvicorn'] = sys.modules['starlette'] = None\n"
        "sys.argv = ['dpselect', 'holdout', 'serve', 'x']\nfrom dpselect.cli import main; main()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (ran.returncode, 'pip install "dpselect[server]"' in ran.stderr) == (2, True)
