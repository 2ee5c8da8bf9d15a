"""A server made with the reference SDK. Usage: server.py stdio | server.py http PORT."""

import asyncio
import os
import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

server = MCPServer("reference", instructions="Tools for tests.")


@server.tool(annotations=ToolAnnotations(title="Addition", read_only_hint=True))
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def fail(reason: str) -> str:
    """Fails for a reason."""
    raise ToolError(reason)


@server.tool()
async def wait(file: str, ctx: Context) -> str:
    """Waits until it is cancelled, which it notes in a file."""
    with open(file, "a") as notes:
        notes.write("started\n")
    try:
        for second in range(3600):
            await ctx.report_progress(second, 3600)
            await asyncio.sleep(1)
    except asyncio.CancelledError:
        with open(file, "a") as notes:
            notes.write("cancelled\n")
        raise
    return "waited"


@server.tool()
async def grow(name: str, ctx: Context) -> str:
    """Adds a tool."""
    server.add_tool(lambda: name, name=name, description="A new tool.")
    await ctx.session.send_tool_list_changed()  # For revisions with a handshake.
    await ctx.notify_tools_changed()
    return name


@server.tool()
def crash() -> str:
    """Ends the server."""
    print("goodbye", file=sys.stderr, flush=True)
    os._exit(3)


if sys.argv[1] == "http":
    server.run("streamable-http", port=int(sys.argv[2]))
else:
    server.run("stdio")
