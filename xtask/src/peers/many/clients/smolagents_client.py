"""Tools of smolagents, through mcpadapt."""

from harness import MESSAGE, TOOL, run, text_of, variables
from mcp import StdioServerParameters
from smolagents import MCPClient


def use(program, args):
    server = StdioServerParameters(command=program, args=args, env=variables())
    with MCPClient(server, structured_output=False) as tools:
        tool = next(tool for tool in tools if tool.name == TOOL)
        return [tool.name for tool in tools], text_of(tool(**MESSAGE))


run(use)
