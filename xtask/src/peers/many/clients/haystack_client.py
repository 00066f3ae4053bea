"""A toolset of Haystack."""

from harness import MESSAGE, TOOL, run, text_of, variables
from haystack_integrations.tools.mcp import MCPToolset, StdioServerInfo


def use(program, args):
    info = StdioServerInfo(command=program, args=args, env=variables())
    toolset = MCPToolset(server_info=info, eager_connect=True)
    tools = list(toolset)
    tool = next(tool for tool in tools if tool.name == TOOL)
    called = text_of(tool.invoke(**MESSAGE))
    toolset.close()
    return [tool.name for tool in tools], called


run(use)
