"""Running the server: addresses that it cannot listen on, and how it stops."""

import signal
import threading
import time

import pytest

from dpselect.errors import ArgumentError
from dpselect.holdout import Gate, GateRules
from dpselect.holdout.server import serve
from tests.holdout.server.serving import invited, make_gate, served

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


@pytest.mark.full
def test_it_stops_in_peace(tmp_path, state):
    better = make_gate(tmp_path / "my.gate", rules=GateRules(answer_seconds=1.0))
    token, found = invited(tmp_path), []
    with served(tmp_path, tmp_path) as server:
        asking = threading.Thread(target=lambda: found.append(server.submit("my", {"outcomes": better}, token)))
        begun = time.monotonic()
        asking.start()
        while Gate.open(tmp_path / "my.gate").status()["asked"] == 0:
            time.sleep(0.01)
        server.process.send_signal(signal.SIGTERM)
        asking.join()
        assert time.monotonic() - begun > 1.0, "answers come at multiples of a second here"
        assert found == [(200, {"verdict": "accepted"})]
        assert server.process.wait(20) == 0
    assert "Traceback" not in server.lines.read_text()


@pytest.mark.parametrize("listen", ["8080", ":80", "127.0.0.1:x", "127.0.0.1:99999", "999.0.0.1:80"])
def test_places_that_cannot_be_listened_on(tmp_path, state, listen):
    make_gate(tmp_path / "my.gate")
    with pytest.raises(ArgumentError, match="listen"):
        serve([tmp_path], submitters=tmp_path / "submitters.db", listen=listen)
