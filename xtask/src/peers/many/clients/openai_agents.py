"""A server of the OpenAI Agents SDK, with the conversion to function tools that an agent makes."""

from agents import Agent, RunContextWrapper
from agents.mcp import MCPServerStdio, MCPUtil
from harness import MESSAGE, TOOL, run, text_of, variables


async def use(program, args):
    params = {"command": program, "args": args, "env": variables()}
    async with MCPServerStdio(params=params, client_session_timeout_seconds=60) as server:
        tools = await MCPUtil.get_function_tools(server, False, RunContextWrapper(None), Agent(name="agent"))
        return [tool.name for tool in tools], text_of(await server.call_tool(TOOL, MESSAGE))


run(use)
