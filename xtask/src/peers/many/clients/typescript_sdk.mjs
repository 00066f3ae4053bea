// The official TypeScript SDK, version 1.
import { load, message, run, tool } from "./harness.mjs";

const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");

await run(async (command, args) => {
    const client = new Client({ name: "client", version: "1" }, { capabilities: {} });
    await client.connect(new StdioClientTransport({ command, args, env: process.env }));
    const { tools } = await client.listTools();
    const result = await client.callTool({ name: tool, arguments: message });
    await client.close();
    return [tools.map(({ name }) => name), result];
});
