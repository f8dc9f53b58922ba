"""The OpenAPI document and the server say the same."""

import gzip
import json
from contextlib import suppress

import pytest

from tests.holdout.server.serving import invited, make_gate, make_holdout, served

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

SUBMISSIONS = "/api/boards/{board}/submissions"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    guesses, better = make_holdout(folder / "pets.holdout", questions=100), make_gate(folder / "my.gate")
    token = invited(folder, own_stakes=True)
    with served(folder, folder) as server:
        yield server, token, guesses, better, server.ask("GET", "/openapi.json")[2]


def test_each_documented_get_is_answered(world):
    server, token, _, _, document = world
    for path, operations in document["paths"].items():
        if "get" in operations:
            status, _, found = server.ask("GET", path.replace("{board}", "pets"), token=token)
            assert str(status) in operations["get"]["responses"], (path, found)
            assert status == 200
    assert {"/healthz", "/openapi.json"} <= document["paths"].keys()


def test_the_options_of_the_document_are_taken_with_each_kind_of_body(world):
    server, token, guesses, better, document = world
    post = document["paths"][SUBMISSIONS]["post"]
    table = "id,prediction\n" + "".join(f"{name},{value}\n" for name, value in guesses.items())
    outcomes = "id,outcome\n" + "".join(f"{name},{value}\n" for name, value in better.items())
    lines = "\n".join(json.dumps({"id": name, "outcome": value}) for name, value in better.items())
    sent = {
        "application/json": {"pets": {"predictions": guesses}, "my": {"outcomes": better, "stake": None}},
        "text/csv": {"pets": table.encode(), "my": outcomes.encode()},
        "application/x-ndjson": {"my": lines.encode()},
    }
    assert sent.keys() == post["requestBody"]["content"].keys()
    values = {"claim": "0.9", "metric": "accuracy", "stake": "1e-3", "candidate": "x"}
    options = [one["name"] for one in post["parameters"] if one["in"] == "query"]
    assert options == list(values)
    for number, (media, bodies) in enumerate(sent.items()):
        values["stake"] = f"1e-{3 * number + 3}"  # of what the one before has left
        for board, body in bodies.items():
            for option in options[:2] if board == "pets" else options[2:]:
                query = f"{option}={values[option]}"
                path = f"{SUBMISSIONS.replace('{board}', board)}?{query}"
                status, _, found = server.ask("POST", path, body, token=token, media=media)
                assert status == 200, (media, board, option, found)


def test_an_option_stands_once(world):
    server, token, guesses, _, _ = world
    path = f"{SUBMISSIONS.replace('{board}', 'pets')}?claim=0.9"
    status, _, found = server.ask("POST", path, {"predictions": guesses, "claim": 0.8}, token=token)
    assert (status, found["error"]["code"]) == (422, "malformed")


def test_a_compressed_body_is_of_no_kind_that_is_taken(world):
    server, token, guesses, _, document = world
    path, body = SUBMISSIONS.replace("{board}", "pets"), json.dumps({"predictions": guesses}).encode()
    for coding in ("gzip", "br", "identity, gzip", "x"):
        status, headers, found = server.ask(
            "POST", path, gzip.compress(body), token=token, headers={"Content-Encoding": coding}
        )
        assert (status, found["error"]["code"], headers["Accept-Encoding"]) == (415, "encoding", "identity")
    assert "415" in document["paths"][SUBMISSIONS]["post"]["responses"]
    assert server.ask("POST", path, body, token=token, headers={"Content-Encoding": "identity"})[0] == 200


@pytest.mark.full
def test_requests_made_from_the_document(world):
    """All of schemathesis's checks; 422 is left to valid bodies, whose ids no schema can hold."""
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, given, seed, settings
    from hypothesis.errors import Unsatisfiable

    server, token, *_ = world
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    taken = schema.config.checks.positive_data_acceptance
    taken.expected_statuses = [*taken.expected_statuses, "422"]
    seen = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in schemathesis.GenerationMode:
            cases = operation.as_strategy(generation_mode=mode)

            @seed(1)
            @settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), database=None)
            @given(case=cases)
            def answer(case):
                response = case.call_and_validate(headers={"Authorization": f"Bearer {token}"})
                seen.add(response.status_code)

            with suppress(Unsatisfiable):  # nothing can be wrong in a request without parameters
                answer()
    assert {200, 422} <= seen
    assert max(seen) < 500
