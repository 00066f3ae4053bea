// The official TypeScript client, version 2, which negotiates the newest revision.
import { load, message, run, tool } from "./harness.mjs";

const { Client } = await load("@modelcontextprotocol/client");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");

await run(async (command, args) => {
    const client = new Client({ name: "client", version: "1" }, { versionNegotiation: { mode: "auto" } });
    await client.connect(new StdioClientTransport({ command, args, env: process.env }));
    const { tools } = await client.listTools();
    const result = await client.callTool({ name: tool, arguments: message });
    await client.close();
    return [tools.map(({ name }) => name), result];
});
