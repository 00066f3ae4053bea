// A session of mcp-use for Node.
import { load, message, run, tool } from "./harness.mjs";

const { MCPClient } = await load("mcp-use");

await run(async (command, args) => {
    const client = new MCPClient({ mcpServers: { hub: { command, args, env: process.env } } });
    const session = await client.createSession("hub");
    const tools = await session.listTools();
    const result = await session.callTool(tool, message);
    await client.closeAllSessions();
    return [tools.map(({ name }) => name), result];
});
