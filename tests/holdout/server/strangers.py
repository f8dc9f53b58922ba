"""Clients that keep a server waiting: `python -m tests.holdout.server.strangers PORT COUNT SECONDS SPREAD`.

They send nothing, half a head, a body byte by byte, or thousands of requests whose answers they do not read or read
byte by byte. One that was closed comes back after 10 to 20 seconds. All are from 127.0.0.0/8, with SPREAD 1 32 from one
address, with 0 all from one, and end by themselves.
"""

from __future__ import annotations

import asyncio
import random
import socket
import sys
import time

BURST = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 2500
POST = b"POST /api/boards/my/submissions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
KINDS = [(b"", b""), (b"GET / HTTP/1.1\r\nX", b"x"), (POST, b"x"), (BURST, b""), (BURST, BURST)]
"""What is sent at once, and what again every second."""


async def stranger(port: int, number: int, spread: int, end: float) -> None:
    loop = asyncio.get_running_loop()
    first, again = KINDS[number % len(KINDS)]
    group = 1 + number // 32 if spread else 1
    while time.monotonic() < end:
        with socket.socket() as wire:
            wire.setblocking(False)
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.bind((f"127.1.{group // 250}.{group % 250 + 1}", 0))
            try:
                await asyncio.wait_for(loop.sock_connect(wire, ("127.0.0.1", port)), 5)
                await _sent(loop, wire, first, end)
                while time.monotonic() < end:
                    await asyncio.sleep(1)
                    await _sent(loop, wire, again, end)
                    if number % 2 and first is BURST:
                        await asyncio.wait_for(loop.sock_recv(wire, 1), 5)
            except (OSError, TimeoutError):
                await asyncio.sleep(random.uniform(10, 20))


async def _sent(loop: asyncio.AbstractEventLoop, wire: socket.socket, content: bytes, end: float) -> None:
    await asyncio.wait_for(loop.sock_sendall(wire, content), max(end - time.monotonic(), 0.01))


async def main(port: int, count: int, seconds: float, spread: int) -> None:
    end = time.monotonic() + seconds
    tasks = []
    for number in range(count):
        tasks.append(asyncio.create_task(stranger(port, number, spread, end)))
        if number % 50 == 49:
            await asyncio.sleep(0.05)
    print("all begun", flush=True)
    await asyncio.wait(tasks, timeout=seconds + 10)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])))
