"""Tools of LlamaIndex, from llama-index-tools-mcp."""

from harness import MESSAGE, TOOL, run, text_of, variables
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


async def use(program, args):
    client = BasicMCPClient(program, args=args, env=variables())
    tools = await McpToolSpec(client=client).to_tool_list_async()
    tool = next(tool for tool in tools if tool.metadata.name == TOOL)
    output = await tool.acall(**MESSAGE)
    return [tool.metadata.name for tool in tools], text_of(output.raw_output.content)


run(use)
