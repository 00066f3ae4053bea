"""The official Python SDK, in the session API that all its versions have."""

from harness import MESSAGE, TOOL, run, text_of, variables
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def use(program, args):
    server = StdioServerParameters(command=program, args=args, env=variables())
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        return [tool.name for tool in tools], text_of(await session.call_tool(TOOL, MESSAGE))


run(use)
