"""Malformed requests: none is answered with more than a 4xx, and none is charged."""

import json
import random
import socket
from urllib.parse import urlsplit

import pytest

from dpselect.holdout import Gate, Holdout
from tests.holdout.server.serving import invited, make_gate, make_holdout, served

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    guesses = make_holdout(folder / "pets.holdout")
    better = make_gate(folder / "my.gate")
    token = invited(folder, own_stakes=True)
    with served(folder, folder) as server:
        yield server, folder, {"pets": ("predictions", guesses), "my": ("outcomes", better)}, token


def exposure(folder):
    return Holdout.open(folder / "pets.holdout").status()["asked"], Gate.open(folder / "my.gate").status()["asked"]


ODD = [
    "",
    "-1",
    "nan",
    "1e400",
    "0x1",
    "1_0",
    "null",
    "\x00",
    "é",
    "\u202e",
    "9" * 5000,
    "{}",
    "'; DROP TABLE submission",
]


QUERIES = ["claim=x", "claim=1&claim=1", "stake=%00", "x=1", "claim=%FF", "&&=;", "claim=7e9", "stake=0", "claim="]
MEDIA = ["", "text/plain", "multipart/form-data; boundary=x", "application/json+x", "é", ";", "/" * 500]
PLACES = [
    *(
        "/api/boards/none/submissions",
        "/api/boards/%00/submissions",
        "//",
        "/%2e%2e/etc/passwd",
        "/api",
        "/boards/../my",
    ),
    *("/api/boards/" + "x" * 5000, "/boards/%ff%fe", "/openapi.json/x", "/api/boards/my/submissions/"),
]


def odd_json(draw, field, values):
    """A JSON body that is no submission, as text or bytes."""
    names = list(values)
    whole = json.dumps({field: values})
    some = draw.choice(names)
    wrong = [
        whole[: draw.randrange(len(whole))],
        whole + draw.choice(["}", "x", "{}", "\x00"]),
        json.dumps([values]),
        json.dumps({field: list(values)}),
        json.dumps({field: draw.choice([None, 1, "x", True, []])}),
        json.dumps({field: {name: value for name, value in values.items() if name != some}}),
        json.dumps({field: {**values, draw.choice(ODD[:10]) + "!": 1}}),
        json.dumps({field: values, "more": 1}),
        json.dumps({field: values, draw.choice(["stake", "claim"]): draw.choice([*ODD, [], {}, True, 7, -1])}),
        json.dumps({field: values, "incumbent": draw.choice([values, [], 1, "x"])}),
        json.dumps({field: values, "candidate": draw.choice(["", "x" * 300, "a\nb", 1, [], "\ud800"])}),
        whole[:-2] + f', "{some}": 1}}}}',
        f'{{"{field}": ' + "[" * 100_000,
        f'{{"{field}": ' + '{"a":' * 20_000 + "1" + "}" * 20_001,
        f'{{"{field}": {{"{some}": ' + "9" * 5000 + "}}",
        json.dumps({field: {**values, "\ud800": 1}}),
        whole.encode("utf-16"),
        whole.encode()[:-2] + b"\xff\xfe}}",
        "",
        "null",
    ]
    if field == "predictions":
        wrong.append(json.dumps({field: {**values, some: draw.choice([None, [], {}, [1], "", "nan", "\ud800"])}}))
    else:
        wrong.append(json.dumps({field: {**values, some: draw.choice([[], [1, 1], [[1]] * 2])}}))
    return draw.choice(wrong)


def odd_table(draw, field, values):
    """A table that is no submission."""
    column, names = field[:-1], list(values)
    rows = [f"{name},{value}" for name, value in values.items()]
    head = f"id,{column}"
    wrong = [
        [head],
        [head, *rows[:-1]],
        [head, *rows, rows[0]],
        [head, *rows, f"{names[0]}x,1"],
        [head, *rows[:-1], f"{names[-1]}"],
        [head, *rows[:-1], f"{names[-1]},1,2"],
        [head, *rows[:-1], ",1"],
        [f"id,{column},{column}", *(f"{row},1" for row in rows)],
        [draw.choice(["id", "x,y", "id;prediction", "\x00,id", f"id,{column}\x00", *ODD]), *rows],
        rows,
        [],
    ]
    text = "\n".join(draw.choice(wrong))
    return draw.choice([text, text, text.replace(",", "\t"), text.encode("utf-16"), "\ufeff" * 2 + text, '"' + text])


def odd_request(draw, contents):
    """A method, a path, headers and a body of which one thing at least is wrong; whether the token is right."""
    board = draw.choice(list(contents))
    field, values = contents[board]
    submissions = f"/api/boards/{board}/submissions"
    kind = draw.randrange(8)
    if kind <= 2:
        return "POST", submissions, {"Content-Type": "application/json"}, odd_json(draw, field, values), True
    if kind <= 4:
        media = draw.choice(["text/csv", "text/csv; charset=x", "application/x-ndjson"])
        return "POST", submissions, {"Content-Type": media}, odd_table(draw, field, values), True
    good = json.dumps({field: values})
    if kind == 5:
        table = f"id,{field[:-1]}\n" + "".join(f"{name},{value}\n" for name, value in values.items())
        return "POST", f"{submissions}?{draw.choice(QUERIES)}", {"Content-Type": "text/csv"}, table, True
    if kind == 6:
        media = draw.choice(MEDIA).encode("utf-8").decode("latin-1")
        return "POST", submissions, {"Content-Type": media}, good, draw.random() < 0.5
    path = draw.choice([*PLACES, f"/api/boards/{board}"])
    method = draw.choice(["POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW", "OPTIONS"])
    return method, path, {"Content-Type": "application/json"}, good, draw.random() < 0.5


RAW = [
    b"\x00" * 64,
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost\r\n\r\n",
    b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: " + b"y" * 200_000 + b"\r\n\r\n",
    b"POST /api/boards/my/submissions HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\nx",
    b"POST /api/boards/my/submissions HTTP/1.1\r\nHost: x\r\nContent-Length: 1e3\r\n\r\nx",
    b"POST /api/boards/my/submissions HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nxxxxxx",
    b"POST /api/boards/my/submissions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc",
    b"GET / HTTP/1.1\r\nHost: x\r\n X: folded\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n\r\n",
]


def raw_status(url, sent):
    """What a few bytes on the wire are answered with; 0 for no word."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port), timeout=10) as wire:
        try:
            wire.sendall(sent)
            wire.shutdown(socket.SHUT_WR)
            answer = wire.recv(65536)
        except TimeoutError:
            raise
        except OSError:  # the server has ended the connection: which error that is depends on when
            return 0
    return int(answer.split()[1]) if answer else 0


@pytest.mark.full
@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_malformed_submissions(world, count):
    server, folder, contents, token = world
    before, draw, seen = exposure(folder), random.Random(count), set()
    for _ in range(count):
        method, path, headers, body, known = odd_request(draw, contents)
        headers = {**headers, "Authorization": f"Bearer {token if known else draw.choice(['x', token[:-1]])}"}
        body = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
        status, _, found = server.ask(method, path, body, headers=headers, media=headers["Content-Type"])
        seen.add(status)
        assert 400 <= status < 500, (method, path, body[:80], found)
    assert exposure(folder) == before
    assert {401, 404, 405, 415, 422} <= seen
    assert server.ask("GET", "/api/boards/my/quota", token=token)[2]["questions_left"] == 1000


def test_bytes_that_are_no_request(world):
    server, *_ = world
    draw = random.Random(1)
    for sent in [*RAW, *(draw.randbytes(draw.randrange(1, 200)) for _ in range(50))]:
        assert raw_status(server.url, sent) < 500, sent[:60]
    assert server.ask("GET", "/healthz")[0] == 200
    assert "Traceback" not in server.lines.read_text()
