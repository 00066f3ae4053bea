// Tools of LangChain.js, from @langchain/mcp-adapters.
import { load, message, run, tool } from "./harness.mjs";

const { MultiServerMCPClient } = await load("@langchain/mcp-adapters");

await run(async (command, args) => {
    const mcpServers = { hub: { transport: "stdio", command, args, env: process.env } };
    const client = new MultiServerMCPClient({ mcpServers, throwOnLoadError: true });
    const tools = await client.getTools();
    const result = await tools.find(({ name }) => name === tool).invoke(message);
    await client.close();
    return [tools.map(({ name }) => name), result];
});
