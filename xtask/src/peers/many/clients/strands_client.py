"""The client of Strands Agents."""

from harness import MESSAGE, TOOL, run, text_of, variables
from mcp import StdioServerParameters, stdio_client
from strands.tools.mcp import MCPClient


def use(program, args):
    server = StdioServerParameters(command=program, args=args, env=variables())
    with MCPClient(lambda: stdio_client(server)) as client:
        names = [tool.tool_name for tool in client.list_tools_sync()]
        return names, text_of(client.call_tool_sync(tool_use_id="1", name=TOOL, arguments=MESSAGE)["content"])


run(use)
