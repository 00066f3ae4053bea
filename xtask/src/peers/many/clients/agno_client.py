"""Tools of Agno."""

from agno.tools.mcp import MCPTools
from harness import MESSAGE, TOOL, run, text_of, variables
from mcp import StdioServerParameters


async def use(program, args):
    server = StdioServerParameters(command=program, args=args, env=variables())
    async with MCPTools(server_params=server, transport="stdio", timeout_seconds=60) as tools:
        return list(tools.functions), text_of(await tools.session.call_tool(TOOL, MESSAGE))


run(use)
