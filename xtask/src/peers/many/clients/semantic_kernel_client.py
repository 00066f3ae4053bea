"""A plugin of Semantic Kernel."""

from harness import MESSAGE, TOOL, run, text_of, variables
from semantic_kernel import Kernel
from semantic_kernel.connectors.mcp import MCPStdioPlugin


async def use(program, args):
    async with MCPStdioPlugin(
        name="hub", command=program, args=args, env=variables(), load_prompts=False, request_timeout=60
    ) as hub:
        plugin = Kernel().add_plugin(hub)
        return list(plugin.functions), text_of(await hub.call_tool(TOOL, **MESSAGE))


run(use)
