"""Drives a server with the client of the reference SDK; prints each observation as a line of JSON.

Usage: client.py [--legacy] http URL | client.py [--legacy] stdio COMMAND ARGUMENT…, with lines of JSON on standard input:
{"list": true} | {"call": NAME, "arguments": {…}, "timeout": SECONDS, "progress": true} | {"cancel": NAME, "after": SECONDS}.
"""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters, stdio_client


def shown(result):
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def step(client, command):
    if command.get("list"):
        return {"tools": shown(await client.list_tools())["tools"], "version": client.protocol_version}
    if "call" in command:
        progress = []

        async def note(done, total, message):
            progress.append([done, message])

        result = await client.call_tool(
            command["call"],
            command.get("arguments"),
            read_timeout_seconds=command.get("timeout"),
            progress_callback=note if command.get("progress") else None,
        )
        return {"result": shown(result), "progress": progress}
    if "cancel" in command:
        task = asyncio.create_task(client.call_tool(command["cancel"], command.get("arguments")))
        await asyncio.sleep(command["after"])
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return {"cancelled": True}
        return {"cancelled": False}
    raise ValueError(command)


async def drive(target, mode):
    commands = [json.loads(line) for line in sys.stdin]
    async with Client(target, mode=mode) as client:
        for command in commands:
            try:
                print(json.dumps(await step(client, command)), flush=True)
            except MCPError as error:
                print(json.dumps({"error": str(error)}), flush=True)


arguments = sys.argv[1:]
mode = "auto"
if arguments[0] == "--legacy":
    mode, arguments = "legacy", arguments[1:]
kind, *rest = arguments
if kind == "stdio":
    target = stdio_client(StdioServerParameters(command=rest[0], args=rest[1:]))
else:
    target = rest[0]
asyncio.run(drive(target, mode))
