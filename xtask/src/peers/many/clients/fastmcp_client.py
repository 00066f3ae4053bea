"""The client of FastMCP."""

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from harness import MESSAGE, TOOL, run, text_of, variables


async def use(program, args):
    transport = StdioTransport(command=program, args=args, env=variables(), keep_alive=False)
    async with Client(transport) as client:
        names = [tool.name for tool in await client.list_tools()]
        return names, text_of((await client.call_tool(TOOL, MESSAGE)).content)


run(use)
