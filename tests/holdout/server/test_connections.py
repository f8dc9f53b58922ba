"""Connections that keep the server waiting: they end, and they keep no one who asks from being answered."""

import asyncio
import http.client
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from dpselect.holdout.server import ServerSettings
from dpselect.holdout.server.limits import KnownAddresses, TooOften
from tests.holdout.server.serving import invited, make_gate, memory_of, served

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import uvicorn

from dpselect.holdout.server.connections import Door, descriptors, patient

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@asynccontextmanager
async def serving(wait=None, answer=b"", **limits):
    """A server that answers everything, after `wait`; its port."""

    async def app(scope, receive, send):
        if wait is not None:
            await wait.wait()
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(answer))]}
        )
        await send({"type": "http.response.body", "body": answer})

    config = uvicorn.Config(app, http=patient(ServerSettings(**limits)), ws="none", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as place:
        running = asyncio.create_task(server.serve(sockets=[place]))
        while not server.started:
            await asyncio.sleep(0)
        yield place.getsockname()[1]
        server.should_exit = True
        await running


async def opened(port, sent=b"", address="127.0.0.1"):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
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
        async with serving(idle_seconds=60.0, idle_connections=3) as port:
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
        async with serving(idle_seconds=0.05, wait=go) as port:
            asked = await opened(port, REQUEST)
            for half in (b"", b"GET / HTTP/1.1\r\nHost"):
                assert await ended(await opened(port, half))
            go.set()
            assert await answered(asked)
            assert await ended(asked), "after its answer it is idle too"

    asyncio.run(run())


async def unread(port, address="127.0.0.1"):
    """A connection with requests whose answers are more than the kernel keeps, of which none is read."""
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.setblocking(False)
        wire.bind((address, 0))
        await asyncio.get_running_loop().sock_connect(wire, ("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=wire.dup(), limit=1)
    writer.transport.pause_reading()
    writer.write(REQUEST * 100)
    await writer.drain()
    return reader, writer


async def cut_off(connection):
    """Wait until the server has ended it, with its answers on the way or not."""
    connection[1].transport.resume_reading()
    connection[0]._limit = 1 << 30
    try:
        return await asyncio.wait_for(connection[0].read(), 20)
    except ConnectionResetError:
        return b""


LARGE = bytes(8 << 20)


def test_a_peer_that_does_not_read_is_not_waited_for():
    async def run():
        async with serving(write_seconds=0.1, answer=LARGE) as port:
            silent = [await unread(port) for _ in range(3)]
            await asyncio.sleep(0.3)
            assert max([len(await cut_off(one)) for one in silent]) < len(LARGE), "the first answer was not waited for"

    asyncio.run(run())


def test_of_too_many_that_do_not_read_the_longest_silent_are_closed():
    async def run():
        async with serving(idle_connections=3, answer=LARGE) as port:
            silent = [await unread(port) for _ in range(8)]
            assert await answered(await opened(port, REQUEST))
            assert max([len(await cut_off(one)) for one in silent[:4]]) < len(LARGE)
            for _, writer in silent:
                writer.transport.abort()

    asyncio.run(run())


def test_answers_that_nobody_reads_take_so_much_memory():
    async def run():
        async with serving(answer=bytes(40 << 20)) as port:
            first, second = await unread(port), await unread(port)
            await asyncio.sleep(0.1)
            assert len(await cut_off(first)) < 40 << 20
            second[1].transport.abort()

    asyncio.run(run())


def test_connections_of_one_address_and_of_all():
    async def run():
        go = asyncio.Event()
        async with serving(address_connections=3, connections=5, wait=go) as port:
            busy = [await opened(port, REQUEST) for _ in range(3)]
            await asyncio.sleep(0.05)
            assert await ended(await opened(port, REQUEST)), "one too many, where none of the others waits for its peer"
            idle = [await opened(port, address=f"127.0.0.{other}") for other in (2, 3, 4)]
            assert await ended(idle[0])
            go.set()
            assert all([await answered(one) for one in busy])
            assert await answered(await opened(port, REQUEST)), "of its own address one is idle now"
            assert not idle[2][0].at_eof()
            for _, writer in idle:
                writer.close()

    asyncio.run(run())


@pytest.mark.parametrize(("proxies", "refused"), [("", 3), ("127.0.0.2", 3), ("127.0.0.0/8", 0), ("*", 0)])
def test_so_many_new_connections_of_an_address_are_heard(proxies, refused):
    with Door(socket.AF_INET, ServerSettings(address_rate=2, trusted_proxies=proxies)) as door:
        door.bind(("127.0.0.1", 0))
        door.listen(50)
        door.setblocking(False)
        flood = [socket.create_connection(door.getsockname()) for _ in range(7)]
        other = socket.create_connection(door.getsockname(), source_address=("127.0.0.2", 0))
        heard = [door.accept() for _ in range(8 - refused)]
        assert [client[0] for _, client in heard] == ["127.0.0.1"] * (7 - refused) + ["127.0.0.2"]
        with pytest.raises(BlockingIOError):
            door.accept()
        for one in flood[7 - refused :]:
            assert one.recv(1) == b""
        for one in (*flood, other, *(one for one, _ in heard)):
            one.close()


@pytest.mark.skipif(sys.platform != "linux", reason="needs addresses of 127.0.0.0/8")
@pytest.mark.parametrize(
    ("proxies", "heard"), [("", (1, 2, 9)), ("127.0.0.4", (1, 2, 4, 9)), ("*", (1, 2, 3, 4, 5, 9))]
)
def test_new_connections_of_very_many_addresses_leave_room_for_those_that_are_known(proxies, heard):
    known = KnownAddresses()
    known.add("127.0.0.9")
    with Door(socket.AF_INET, ServerSettings(new_connections=2, trusted_proxies=proxies), known) as door:
        door._unknown = TooOften(120, lambda: 0.0, at_once=2)
        door.bind(("127.0.0.1", 0))
        door.listen(50)
        door.setblocking(False)
        flood = [
            socket.create_connection(door.getsockname(), source_address=(f"127.0.0.{place}", 0))
            for place in (1, 2, 3, 4, 5, 9)
        ]
        taken = [door.accept() for _ in heard]
        assert [client[0] for _, client in taken] == [f"127.0.0.{place}" for place in heard]
        with pytest.raises(BlockingIOError):
            door.accept()
        for one in (*flood, *(one for one, _ in taken)):
            one.close()


@pytest.mark.parametrize("proxies", ["127.0.0.1, ::1", "10.0.0.0/8,127.0.0.0/8", "*"])
def test_a_proxy_may_have_all_connections(proxies):
    async def run():
        go = asyncio.Event()
        async with serving(address_connections=1, trusted_proxies=proxies, wait=go) as port:
            busy = [await opened(port, REQUEST) for _ in range(4)]
            go.set()
            assert all([await answered(one) for one in busy])

    asyncio.run(run())


def test_another_address_is_no_proxy():
    async def run():
        go = asyncio.Event()
        async with serving(address_connections=1, trusted_proxies="10.0.0.1, ::1", wait=go) as port:
            busy = await opened(port, REQUEST)
            await asyncio.sleep(0.05)
            assert await ended(await opened(port, REQUEST))
            go.set()
            assert await answered(busy)

    asyncio.run(run())


def test_a_request_of_two_lengths_ends_the_connection():
    both = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"
    old = b"POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"

    async def run():
        async with serving() as port:
            for sent in (both, old):
                reader, _ = await opened(port, sent + REQUEST)
                answer = await asyncio.wait_for(reader.read(), 20)
                assert answer.startswith(b"HTTP/1.1 400 ")
                assert answer.count(b"HTTP/1.1") == 1, "what follows is no request"

    asyncio.run(run())


def test_the_rest_of_a_body_that_is_not_wanted_is_not_parsed():
    """The answer is read, though the peer continues sending, and the connection ends."""
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def run():
        async with serving(idle_seconds=1.0) as port:
            reader, writer = await opened(port, head + b"1\r\nx\r\n")
            assert await answered((reader, writer))
            writer.write(b"this is no chunk at all" * 10_000 + REQUEST)
            assert await asyncio.wait_for(reader.read(), 20) == b"", "and no second answer"

    asyncio.run(run())


def test_requests_that_wait_for_no_answer_take_turns_with_those_of_others():
    async def run():
        async with serving() as port:
            reader, writer = await opened(port, REQUEST * 3)
            begun = time.monotonic()
            for _ in range(3):
                assert await answered((reader, writer))
            assert 0.9 < time.monotonic() - begun < 10
            writer.write(REQUEST)
            begun = time.monotonic()
            assert await answered((reader, writer))
            assert time.monotonic() - begun < 0.4

    asyncio.run(run())


def test_descriptors_are_left_for_files():
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, before[1]))
        assert descriptors() == 64
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


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


def under_strangers(folder, count, seconds, spread, descriptors=None):
    """What other requests take meanwhile, in seconds, shortest first; and the memory of the server."""
    make_gate(folder / "my.gate")
    flags = ("--rate", "600", "--address-rate", "600")
    with served(folder, folder / "my.gate", flags=flags, descriptors=descriptors) as server:
        port, token, took = urlsplit(server.url).port, invited(folder), []
        command = [sys.executable, "-m", "tests.holdout.server.strangers", *map(str, (port, count, seconds, spread))]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as strangers:
            try:
                assert strangers.stdout.readline() == b"all begun\n"
                end = time.monotonic() + seconds / 2
                while time.monotonic() < end:
                    path = ("/healthz", "/api/boards", "/api/boards/my/quota")[len(took) % 3]
                    begun = time.monotonic()
                    wire = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=("127.0.0.9", 0))
                    wire.request("GET", path, headers={"Authorization": f"Bearer {token}"})
                    assert wire.getresponse().status == 200
                    wire.close()
                    took.append(time.monotonic() - begun)
                    time.sleep(0.12)
            finally:
                strangers.kill()
        return sorted(took), memory_of(server.process)


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="needs addresses of 127.0.0.0/8, and /proc")
@pytest.mark.parametrize(("count", "spread", "descriptors"), [(120, 0, 128), (400, 1, None)])
def test_others_are_answered_whoever_does_not_read(tmp_path, state, count, spread, descriptors):
    took, memory = under_strangers(tmp_path, count, 10, spread, descriptors)
    assert len(took) > 5
    assert took[-1] < 5
    assert memory < 512


FLOOD = """
import socket, sys, time
end = time.monotonic() + 4
while time.monotonic() < end:
    for place in range(1000):
        with socket.socket() as one:
            one.settimeout(2)
            one.bind((f"127.2.{place // 250}.{place % 250 + 1}", 0))
            one.connect(("127.0.0.1", int(sys.argv[1])))
            one.send(b"GET /healthz HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
"""


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="needs addresses of 127.0.0.0/8")
def test_a_submitter_is_answered_during_a_flood_from_very_many_addresses(tmp_path, state):
    """Who has shown a token is heard each time, while of the flood a few connections a second are."""
    make_gate(tmp_path / "my.gate")
    with served(tmp_path, tmp_path / "my.gate", flags=("--rate", "600")) as server:
        port, headers = urlsplit(server.url).port, {"Authorization": f"Bearer {invited(tmp_path)}"}

        def status(path):
            wire = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=("127.0.0.9", 0))
            wire.request("GET", path, headers=headers)
            return wire.getresponse().status

        assert status("/api/boards/my/quota") == 200
        with subprocess.Popen([sys.executable, "-c", FLOOD, str(port)], stderr=subprocess.DEVNULL) as flood:
            time.sleep(1.5)
            assert [status(path) for path in ("/healthz", "/api/boards", "/api/boards/my/quota")] == [200] * 3
            flood.kill()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs addresses of 127.0.0.0/8, and /proc")
def test_ten_thousand_slow_peers(tmp_path, state):
    took, memory = under_strangers(tmp_path, 10_000, 120, 1)
    assert took[int(len(took) * 0.99)] < 1
    assert memory < 512
