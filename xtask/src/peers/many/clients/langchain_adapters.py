"""Tools of LangChain, from langchain-mcp-adapters."""

from harness import MESSAGE, TOOL, run, text_of, variables
from langchain_mcp_adapters.client import MultiServerMCPClient


async def use(program, args):
    hub = {"command": program, "args": args, "transport": "stdio", "env": variables()}
    tools = await MultiServerMCPClient({"hub": hub}).get_tools()
    tool = next(tool for tool in tools if tool.name == TOOL)
    return [tool.name for tool in tools], text_of(await tool.ainvoke(MESSAGE))


run(use)
