"""Goes through everything that a client does with the official Python SDK, and prints what came of it as JSON.

The argument is a list of ways to go, as JSON: each a mode (`auto`, `legacy`), a transport (`http`, `sse`, `stdio`), and
the URL or the command.
"""

import json
import sys

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters

async def sample(context, params):
    asked = params.messages[0].content
    asked = asked[0] if isinstance(asked, list) else asked
    text = types.TextContent(type="text", text=f"heard: {asked.text}")
    return types.CreateMessageResult(role="assistant", content=text, model="none")


async def elicit(context, params):
    return types.ElicitResult(action="accept", content={"username": "ada", "email": "ada@example.org"})


def server(transport, target):
    if transport == "stdio":
        return StdioServerParameters(command=target[0], args=target[1:])
    return sse_client(target[0]) if transport == "sse" else target[0]


async def go(mode, transport, *target):
    report = {}
    async with Client(server(transport, target), mode=mode, sampling_callback=sample, elicitation_callback=elicit) as client:
        report["version"] = client.protocol_version
        report["tools"] = [tool.name for tool in (await client.list_tools()).tools]

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

        await client.call_tool("test_tool_with_progress", {}, progress_callback=progress)
        report["progress"] = heard
        report["sampled"] = await text_of("test_sampling", {"prompt": "hello"})
        report["elicited"] = await text_of("test_elicitation", {"message": "who?"})

        async def hold(scope):
            async def held(done, total, message):
                scope.cancel()

            await client.call_tool("hold", {}, progress_callback=held)

        with anyio.CancelScope() as scope:
            await hold(scope)
        report["cancelled"] = scope.cancelled_caught
        report["after"] = await text_of("greet", {"name": "again"})
    return report


async def main():
    print(json.dumps([await go(*way) for way in json.loads(sys.argv[1])]))


anyio.run(main)
