"""A gate as a tool of agents: a server of the Model Context Protocol."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from dpselect.errors import missing_extra
from dpselect.holdout import Gate
from dpselect.numerics.digits import rounded_down

__all__ = ["gate_server"]


def gate_server(
    gate: str | os.PathLike[str],
    grade: Callable[[str], Any],
    *,
    content: Callable[[str], bytes] | None = None,
) -> Any:
    """A server with the tools `ask` and `purse`. `gate_server(...).run()` serves it over standard input and output.

    Args:
        gate: the gate's file.
        grade: the outcomes of a candidate by task, as `Gate.ask` takes them. It is called once the ask is charged. An
            error in it counts as 0, and its output is discarded.
        content: what makes a candidate the one that it is, when the text that the agent gives is only its name, such as
            a path: the same content against the same incumbent is answered from the record.

    The server must run under another account than the agent, who could read the outcomes otherwise: see
    docs/how-to/gate-plugs.md. Raises `MissingExtraError` without the extra "mcp".
    """
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError:
        raise missing_extra("mcp", "a server of the Model Context Protocol") from None
    place = Gate.open(gate)
    server = MCPServer("dpselect-gate", instructions=f"Accepted means: {place.terms.claim}.", log_level="CRITICAL")

    @server.tool()
    def ask(candidate: str) -> str:
        """Ask whether a candidate is better than the incumbent: accepted or rejected. Each ask spends of the purse."""
        named = candidate.encode("utf-8", "surrogatepass") if content is None else content(candidate)
        return "accepted" if place.ask(lambda: grade(candidate), candidate=named) else "rejected"

    @server.tool()
    def purse() -> str:
        """The rest of the failure probability. Nothing can be asked once it is 0."""
        return rounded_down(place.purse)

    return server
