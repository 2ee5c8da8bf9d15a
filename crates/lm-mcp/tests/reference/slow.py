"""A server whose only tool runs until it is cancelled, which it notes in a file. Usage: slow.py FILE."""

import asyncio
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("slow")


def note(text):
    with open(sys.argv[1], "a") as notes:
        notes.write(text + "\n")


@server.tool()
async def get_weather(location: str) -> str:
    """Returns the weather for a given location."""
    note("started")
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return location


server.run("stdio")
