"""Tools of AutoGen, which makes a model of pydantic from every schema."""

from autogen_core import CancellationToken
from autogen_ext.tools.mcp import StdioServerParams, mcp_server_tools
from harness import MESSAGE, TOOL, run, text_of, variables


async def use(program, args):
    tools = await mcp_server_tools(StdioServerParams(command=program, args=args, env=variables()))
    tool = next(tool for tool in tools if tool.name == TOOL)
    result = await tool.run_json(MESSAGE, CancellationToken())
    return [tool.name for tool in tools], text_of(result)


run(use)
