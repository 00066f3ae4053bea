"""The client of huggingface_hub, which turns definitions into tools of chat completions."""

from harness import MESSAGE, TOOL, run, text_of, variables
from huggingface_hub import MCPClient


async def use(program, args):
    async with MCPClient(model="none", base_url="http://127.0.0.1:1") as client:
        await client.add_mcp_server(type="stdio", command=program, args=args, env=variables())
        names = [tool["function"]["name"] for tool in client.available_tools]
        return names, text_of(await client.sessions[TOOL].call_tool(TOOL, MESSAGE))


run(use)
