"""What the operator of a server decides."""

from __future__ import annotations

from dataclasses import dataclass

from dpselect.errors import ArgumentError, integer, number

__all__ = ["ServerSettings"]


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Limits of a server, and what stands before it.

    Args:
        max_bytes: of the body of a submission.
        rate: requests a minute of one submitter.
        address_rate: requests a minute from one address.
        waiting: submissions that may wait for one holdout or gate.
        at_once: submissions of one submitter that may be under way.
        body_seconds: how long a body may take to arrive.
        idle_seconds: how long a connection may be open without a request.
        idle_connections: how many may be; of one more, the one that has waited longest is closed.
        stop_seconds: how long requests may go on once the server was asked to stop.
        root_path: the path below which a proxy shows the server.
        trusted_proxies: addresses whose forwarded headers are believed, by commas.

    >>> ServerSettings(rate=6).rate
    6.0
    """

    max_bytes: int = 16 << 20
    rate: float = 60.0
    address_rate: float = 600.0
    waiting: int = 64
    at_once: int = 8
    body_seconds: float = 30.0
    idle_seconds: float = 10.0
    idle_connections: int = 256
    stop_seconds: float = 30.0
    root_path: str = ""
    trusted_proxies: str = ""

    def __post_init__(self) -> None:
        for name in ("max_bytes", "waiting", "at_once", "idle_connections"):
            object.__setattr__(self, name, integer(name, getattr(self, name), at_least=1))
        for name in ("rate", "address_rate"):
            object.__setattr__(self, name, number(name, getattr(self, name), at_least=1.0))
        for name in ("body_seconds", "idle_seconds", "stop_seconds"):
            object.__setattr__(self, name, number(name, getattr(self, name), above=0.0))
        if self.root_path and (not self.root_path.startswith("/") or self.root_path.endswith("/")):
            raise ArgumentError(f"root_path must begin with a slash and not end with one, got {self.root_path!r}")
