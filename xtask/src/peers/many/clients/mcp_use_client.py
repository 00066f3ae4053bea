"""A session of mcp-use."""

from harness import MESSAGE, TOOL, run, text_of, variables
from mcp_use import MCPClient


async def use(program, args):
    config = {"mcpServers": {"hub": {"command": program, "args": args, "env": variables()}}}
    client = MCPClient.from_dict(config)
    session = await client.create_session("hub")
    names = [tool.name for tool in await session.list_tools()]
    called = text_of(await session.call_tool(TOOL, MESSAGE))
    await client.close_all_sessions()
    return names, called


run(use)
