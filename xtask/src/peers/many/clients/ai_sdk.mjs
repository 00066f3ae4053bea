// Tools of the AI SDK.
import { load, message, run, tool } from "./harness.mjs";

const { createMCPClient, experimental_createMCPClient } = await load("@ai-sdk/mcp");
const stdio = await load("@ai-sdk/mcp/mcp-stdio");
const Transport = stdio.StdioMCPTransport ?? stdio.Experimental_StdioMCPTransport;

await run(async (command, args) => {
    const transport = new Transport({ command, args, env: process.env });
    const client = await (createMCPClient ?? experimental_createMCPClient)({ transport });
    const tools = await client.tools();
    const result = await tools[tool].execute(message, { toolCallId: "1", messages: [] });
    await client.close();
    return [Object.keys(tools), result];
});
