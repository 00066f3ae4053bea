// Tools of Genkit.
import { load, message, run, tool } from "./harness.mjs";

const { genkit } = await load("genkit");
const { createMcpClient } = await load("@genkit-ai/mcp");

await run(async (command, args) => {
    const client = createMcpClient({ name: "hub", mcpServer: { command, args, env: process.env } });
    await client.ready();
    const tools = await client.getActiveTools(genkit({}));
    const result = await tools.find(({ __action }) => __action.name.endsWith(tool))(message);
    await client.disable();
    return [tools.map(({ __action }) => __action.name), result];
});
