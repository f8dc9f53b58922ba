"""Connections that ask nothing: they end, and they keep nobody who asks from being answered."""

import asyncio
import socket
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from tests.serving import make_gate, served

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import uvicorn

from dpselect.holdout.server.connections import patient

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@asynccontextmanager
async def serving(seconds, most, wait=None):
    """A server that answers everything, after `wait`; its port."""

    async def app(scope, receive, send):
        if wait is not None:
            await wait.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    config = uvicorn.Config(app, http=patient(seconds, most), ws="none", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as place:
        running = asyncio.create_task(server.serve(sockets=[place]))
        while not server.started:
            await asyncio.sleep(0)
        yield place.getsockname()[1]
        server.should_exit = True
        await running


async def opened(port, sent=b""):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    await writer.drain()
    return reader, writer


async def ended(connection):
    """Wait until the server has closed it."""
    try:
        return await asyncio.wait_for(connection[0].read(), 60) == b""
    except ConnectionResetError:
        return True


async def answered(connection):
    return (await connection[0].readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")


def test_of_too_many_idle_connections_the_longest_idle_are_closed():
    async def run():
        async with serving(seconds=60.0, most=3) as port:
            idle = [await opened(port, half) for half in [b"", b"GET / HTTP/1.1\r\nHost"] * 5]
            assert await answered(await opened(port, REQUEST))
            assert all([await ended(one) for one in idle[:7]])
            assert await answered(await opened(port, REQUEST))
            assert not idle[-1][0].at_eof()
            for _, writer in idle:
                writer.close()

    asyncio.run(run())


def test_an_idle_connection_ends_and_a_running_request_does_not():
    async def run():
        go = asyncio.Event()
        async with serving(seconds=0.05, most=100, wait=go) as port:
            asked = await opened(port, REQUEST)
            for half in (b"", b"GET / HTTP/1.1\r\nHost"):
                assert await ended(await opened(port, half))
            go.set()
            assert await answered(asked)
            assert await ended(asked), "after its answer it is idle too"

    asyncio.run(run())


@pytest.mark.full
def test_a_server_with_hundreds_of_idle_connections_answers(tmp_path, state):
    make_gate(tmp_path / "my.gate")
    with served(tmp_path, tmp_path / "my.gate") as server:
        place = urlsplit(server.url)
        idle = [socket.create_connection((place.hostname, place.port)) for _ in range(500)]
        for one in idle[::2]:
            one.sendall(b"GET /healthz HTTP/1.1\r\nHos")
        assert server.ask("GET", "/healthz")[0] == 200
        for one in idle:
            one.close()
