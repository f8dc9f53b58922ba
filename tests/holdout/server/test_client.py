"""The client of the server: what it sends, prints and raises."""

import http.server
import json
import socket
import sys
import threading

import pytest

from dpselect.cli import main
from dpselect.errors import ArgumentError, BudgetError, ContentError
from dpselect.holdout import Gate
from dpselect.holdout.server import HoldoutClient
from dpselect.holdout.server.client import ServerError
from tests.holdout.server.serving import invited, make_gate, make_holdout, served

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


def test_a_token_is_not_sent_through_a_proxy_in_the_clear(monkeypatch):
    seen = []

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.headers.get("Authorization"))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Listener) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_port}")
        with pytest.raises(RuntimeError):
            HoldoutClient("http://localhost:1", token="dps_secret", timeout=5).quota("pets")
        proxy.shutdown()
        thread.join()
    assert seen == []
    with pytest.raises(ArgumentError, match="user"):
        HoldoutClient("https://ada:secret@example.org", token="x")


def test_what_a_server_says_does_not_steer_the_terminal(monkeypatch):
    class Listener(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            content = json.dumps({"error": {"code": "quota", "message": "\x1b[2Jgone" + "x" * 10_000}}).encode()
            self.send_response(409)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Listener) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with pytest.raises(BudgetError) as refused:
            HoldoutClient(f"http://127.0.0.1:{server.server_port}", token="x").quota("pets")
        thread.join()
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) <= 2000


@pytest.mark.parametrize("status", ["200 OK", "500 Failed"])
def test_a_server_that_dies_while_it_answers_is_one_that_gave_none(status):
    """An answer that is cut off is the client's own error, not one of the library that it reads with."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def cut_off():
            with server.accept()[0] as caller:
                caller.recv(1 << 16)
                caller.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 22\r\n\r\n{{".encode())

        thread = threading.Thread(target=cut_off)
        thread.start()
        with pytest.raises(ServerError) as found:
            HoldoutClient(f"http://127.0.0.1:{server.getsockname()[1]}").boards()
        thread.join()
    assert found.value.code == ("unreachable" if status == "200 OK" else "unknown")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A server with one of each, for tests that leave the other ones' quotas alone; and its folder."""
    folder = tmp_path_factory.mktemp("served")
    guesses = make_holdout(folder / "pets.holdout", answers=50, questions=200)
    better = make_gate(folder / "my.gate", consultations=200)
    assert Gate.open(folder / "my.gate").ask(better)  # so that no test depends on who asks first
    with served(folder, folder) as server:
        yield server, folder, guesses, better


def test_the_client(world, monkeypatch):
    server, folder, guesses, better = world
    client = HoldoutClient(server.url + "/", token=invited(folder, "client", questions=2))
    found = client.score("pets", ids=list(guesses), predictions=list(guesses.values()), claim=0.9)
    assert found["agrees"] is True
    assert client.ask("my", better, candidate="x") is False
    assert client.quota("pets")["questions_left"] == 1
    assert client.board("my")["kind"] == "gate"
    assert {board["name"] for board in client.boards()} == {"pets", "my"}
    with pytest.raises(ContentError, match="nothing was charged"):
        client.score("pets", ids=[1], predictions=[1])
    client.ask("my", better)
    with pytest.raises(BudgetError):
        client.ask("my", better)
    with pytest.raises(ServerError) as refused:
        HoldoutClient(server.url, token="x").quota("my")
    assert refused.value.code == "unauthorized"
    with pytest.raises(ArgumentError, match="https"):
        HoldoutClient("http://example.org", token="x")
    with pytest.raises(ServerError):
        HoldoutClient("http://127.0.0.1:1").boards()
    assert "client" not in repr(client).lower().replace("holdoutclient", "")


@pytest.fixture
def run(monkeypatch, capsys):
    """The command line: exit status, standard output, standard error."""

    def ran(*words):
        monkeypatch.setattr(sys, "argv", ["dpselect", *words])
        with pytest.raises(SystemExit) as left:
            main()
        return left.value.code, *capsys.readouterr()

    return ran


def test_the_command_that_submits(world, tmp_path, run, monkeypatch):
    server, folder, guesses, better = world
    people = ("--submitters", str(folder / "submitters.db"))
    token = run("holdout", "invite", "Cy", "--questions", "2", *people)[1].strip()
    table, outcomes, other = tmp_path / "guesses.csv", tmp_path / "outcomes.csv", tmp_path / "other.csv"
    table.write_text("id,prediction\n" + "".join(f"{name},{value}\n" for name, value in guesses.items()))
    outcomes.write_text("id,outcome\n" + "".join(f"{name},{value}\n" for name, value in better.items()))
    other.write_text("id,prediction\nrow 0,1\n")

    def submit(file, board, *flags, token=token):
        monkeypatch.setenv("DPSELECT_TOKEN", token)
        return run("holdout", "submit", str(file), "--to", f"{server.url}/boards/{board}", *flags)

    status, said, _ = submit(table, "pets", "--claim", "0.9")
    assert (status, said.splitlines()[0]) == (0, "yes: 0.9 is confirmed")
    assert submit(outcomes, "my")[:2] == (0, "rejected\n")
    status, said, complaint = submit(other, "pets")
    assert (status, said) == (2, "")
    assert "nothing was charged" in complaint
    assert submit(table, "pets", token="")[0] == 2
    assert submit(table, "pets", token="wrong")[0] == 1
    assert json.loads(submit(table, "pets", "--json")[1])["agrees"] is None
    assert submit(table, "pets", "--claim", "0.8")[0] == 3
    assert run("holdout", "revoke", "Cy", *people)[0] == 0
    assert submit(table, "pets")[0] == 1
