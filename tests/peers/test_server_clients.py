"""The server of holdouts and gates, as two tools see it that know its OpenAPI document alone.

schemathesis 4 runs each of its checks on requests that it makes. openapi-python-client 0.29 writes a client, which is
imported and used.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

from tests.holdout.server.serving import invited, make_gate, make_holdout, served

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytestmark = pytest.mark.peers

# 422 is the answer to a valid body with other ids than those of the board, which no schema holds
SETTINGS = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "401", "403", "404", "409", "422", "429"]
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    guesses = make_holdout(folder / "pets.holdout", questions=100)
    make_gate(folder / "my.gate")
    token = invited(folder, own_stakes=True)
    with served(folder, folder) as server:
        yield server, token, guesses


def test_requests_of_schemathesis(compare, world, tmp_path):
    """All checks in all phases, with no check switched off: each documented operation passes."""
    pytest.importorskip("schemathesis")
    server, token, _ = world
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    program = "import sys; from schemathesis.cli import schemathesis; sys.exit(schemathesis())"
    options = ["--checks", "all", "--seed", "1", "--max-examples", "40", "--no-color"]
    command = ["run", f"{server.url}/openapi.json", "-H", f"Authorization: Bearer {token}", *options]
    paths = server.ask("GET", "/openapi.json")[2]["paths"]
    done = subprocess.run(
        [sys.executable, "-c", program, *command], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    with compare("schemathesis", live=True) as peer:
        peer.holds(done.returncode == 0, done.stdout[-3000:], done.stderr[-500:])
        # the document itself is not counted
        operations = sum(method in ("get", "post") for path in paths.values() for method in path) - 1
        peer.holds(f"{operations} selected / {operations} total" in done.stdout, operations, done.stdout[-3000:])


def test_a_generated_client(compare, world, tmp_path, monkeypatch):
    """Each operation of the generated client answers with the type that the document gives.

    It writes no call for bodies of CSV and of JSON lines, of which it says so.
    """
    pytest.importorskip("openapi_python_client")
    server, token, guesses = world
    (tmp_path / "openapi.json").write_text(json.dumps(server.ask("GET", "/openapi.json")[2]))
    command = ["generate", "--path", "openapi.json", "--output-path", "board_client", "--meta", "none"]
    done = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", *command], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    monkeypatch.syspath_prepend(tmp_path)
    made = importlib.import_module("board_client")
    models = importlib.import_module("board_client.models")
    client = made.AuthenticatedClient(base_url=server.url, token=token)

    def call(name, *path, **body):
        return importlib.import_module(f"board_client.api.default.{name}").sync_detailed(*path, client=client, **body)

    with compare("openapi-python-client", live=True) as peer:
        for name, path in (
            ("get_healthz", ()),
            ("get_openapi_json", ()),
            ("get_api_boards", ()),
            ("get_api_boards_board", (models.GetApiBoardsBoardBoard("pets"),)),
            ("get_api_boards_board_quota", (models.GetApiBoardsBoardQuotaBoard("pets"),)),
        ):
            answer = call(name, *path)
            peer.holds(answer.status_code == 200 and answer.parsed is not None, name, answer)
        boards = call("get_api_boards").parsed
        peer.holds({board.name for board in boards} == {"pets", "my"}, boards)
        predictions = models.Predictions.from_dict({"predictions": guesses})
        name = "post_api_boards_board_submissions"
        answer = call(name, models.PostApiBoardsBoardSubmissionsBoard("pets"), body=predictions)
        peer.holds(answer.status_code == 200 and isinstance(answer.parsed, models.Score), answer)
        wrong = models.Predictions.from_dict({"predictions": {"nobody": 1}})
        answer = call(name, models.PostApiBoardsBoardSubmissionsBoard("pets"), body=wrong)
        peer.holds(answer.status_code == 422 and isinstance(answer.parsed, models.Error), answer)
        stranger = made.AuthenticatedClient(base_url=server.url, token="no such token")
        quota = importlib.import_module("board_client.api.default.get_api_boards_board_quota")
        answer = quota.sync_detailed(models.GetApiBoardsBoardQuotaBoard("pets"), client=stranger)
        peer.holds(answer.status_code == 401 and isinstance(answer.parsed, models.Error), answer)
