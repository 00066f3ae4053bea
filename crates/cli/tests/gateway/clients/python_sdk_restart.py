"""Calls a tool with the official Python SDK before and after the gateway is started again, in one session.

The argument is the URL. A line on stdout says that the first call is done; a line on stdin says that the gateway is back.
"""

import json
import sys

import anyio
from mcp import Client


async def main():
    async with Client(sys.argv[1], mode="legacy") as client:
        async def greet(name):
            return (await client.call_tool("greet", {"name": name})).content[0].text

        report = {"before": await greet("before")}
        print("ready", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)
        report["after"] = await greet("after")
        report["tools"] = [tool.name for tool in (await client.list_tools()).tools]
    print(json.dumps(report))


anyio.run(main)
