"""Goes through everything that a client does with FastMCP, and prints what came of it as JSON.

The argument is a list of ways to go, as JSON: each a mode (`auto`, `legacy`), a transport (`http`, `sse`, `stdio`), and
the URL or the command.
"""

import json
import sys

import anyio
from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from mcp import MCPError

async def sample(messages, params, context):
    asked = messages[0].content
    asked = asked[0] if isinstance(asked, list) else asked
    return f"heard: {asked.text}"


async def elicit(message, response_type, params, context):
    return {"username": "ada", "email": "ada@example.org"}


def server(transport, target):
    if transport == "stdio":
        return StdioTransport(command=target[0], args=target[1:], keep_alive=False)
    return SSETransport(target[0]) if transport == "sse" else StreamableHttpTransport(target[0])


async def go(mode, transport, *target):
    report = {}
    async with Client(server(transport, target), mode=mode, sampling_handler=sample, elicitation_handler=elicit) as client:
        report["tools"] = [tool.name for tool in await client.list_tools()]

        async def text_of(name, arguments):
            return (await client.call_tool(name, arguments)).content[0].text

        report["called"] = await text_of("greet", {"name": "世界"})
        try:
            report["unknown"] = str(await client.call_tool("no_such_tool", {}))
        except MCPError as error:
            report["unknown"] = error.error.code
        heard = []

        async def progress(done, total, message):
            heard.append(done)

        await client.call_tool("test_tool_with_progress", {}, progress_handler=progress)
        report["progress"] = heard
        report["sampled"] = await text_of("test_sampling", {"prompt": "hello"})
        report["elicited"] = await text_of("test_elicitation", {"message": "who?"})
        with anyio.CancelScope() as scope:

            async def held(done, total, message):
                scope.cancel()

            await client.call_tool("hold", {}, progress_handler=held)
        report["cancelled"] = scope.cancelled_caught
        report["after"] = await text_of("greet", {"name": "again"})
    return report


async def main():
    print(json.dumps([await go(*way) for way in json.loads(sys.argv[1])]))


anyio.run(main)
