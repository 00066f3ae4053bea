// Tools of Mastra, which turns every schema into one of Zod.
import { load, message, run, tool } from "./harness.mjs";

const { MCPClient } = await load("@mastra/mcp");

await run(async (command, args) => {
    const client = new MCPClient({ id: args.join(" "), servers: { hub: { command, args, env: process.env } }, timeout: 60000 });
    const tools = (await (client.listTools ?? client.getTools).call(client)) ?? {};
    const result = await tools[`hub_${tool}`].execute(message, {});
    await client.disconnect();
    return [Object.keys(tools), result];
});
