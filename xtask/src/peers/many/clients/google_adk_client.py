"""A toolset of Google's Agent Development Kit, with the declarations that a model would get."""

from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from harness import MESSAGE, TOOL, run, text_of, variables
from mcp import StdioServerParameters


async def use(program, args):
    server = StdioServerParameters(command=program, args=args, env=variables())
    toolset = McpToolset(connection_params=StdioConnectionParams(server_params=server, timeout=60))
    tools = await toolset.get_tools()
    names = [tool._get_declaration().name for tool in tools]
    session = await toolset._mcp_session_manager.create_session()
    called = text_of(await session.call_tool(TOOL, MESSAGE))
    await toolset.close()
    return names, called


run(use)
