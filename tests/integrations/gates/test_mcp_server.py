"""A gate as a server of the Model Context Protocol: verdicts, repeated asks, and nothing printed."""

import asyncio
import json
import sys

import pytest

from tests.root import ROOT

EXAMPLES = ROOT / "examples" / "gate"
TASKS = [f"task {number}" for number in range(60)]


@pytest.mark.full
def test_a_server_of_the_model_context_protocol(gate, tmp_path):
    pytest.importorskip("mcp.server.mcpserver")
    from mcp import ClientSession, StdioServerParameters, stdio_client

    (tmp_path / "answers.json").write_text(json.dumps(dict.fromkeys(TASKS, 7)))
    right, wrong = json.dumps(dict.fromkeys(TASKS, 7)), json.dumps(dict.fromkeys(TASKS, 8))

    async def talk():
        import os

        server = StdioServerParameters(
            command=sys.executable, args=[str(EXAMPLES / "mcp_server.py")], env=dict(os.environ), cwd=str(tmp_path)
        )
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            found = [tool.name for tool in (await session.list_tools()).tools]
            for candidate in (right, right, wrong, "no JSON", "no JSON"):
                answer = await session.call_tool("ask", {"candidate": candidate})
                found.append(answer.content[0].text)
            found.append((await session.call_tool("purse", {})).content[0].text)
        return found

    assert asyncio.run(talk())[:7] == ["ask", "purse", "accepted", "accepted", "rejected", "rejected", "rejected"]
    assert gate() == 3, "the same candidate against the same incumbent is not charged again"
