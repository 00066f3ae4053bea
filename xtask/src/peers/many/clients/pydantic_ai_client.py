"""A toolset of Pydantic AI."""

from harness import MESSAGE, TOOL, run, text_of, variables

try:
    from pydantic_ai.mcp import MCPServerStdio

    def toolset(program, args):
        return MCPServerStdio(program, args=args, env=variables(), timeout=60)

except ImportError:
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai.mcp import MCPToolset

    def toolset(program, args):
        return MCPToolset(StdioTransport(command=program, args=args, env=variables(), keep_alive=False))


async def use(program, args):
    async with toolset(program, args) as server:
        tools = await server.list_tools()
        return [tool.name for tool in tools], text_of(await server.direct_call_tool(TOOL, MESSAGE))


run(use)
