// A server of the OpenAI Agents SDK for Node, with the conversion to function tools that an agent makes.
import { load, message, run, tool } from "./harness.mjs";

const { MCPServerStdio, getAllMcpTools, Agent, RunContext } = await load("@openai/agents");

await run(async (command, args) => {
    const server = new MCPServerStdio({ command, args, env: process.env, clientSessionTimeoutSeconds: 60 });
    await server.connect();
    const agent = new Agent({ name: "agent", mcpServers: [server] });
    const tools = await getAllMcpTools({ mcpServers: [server], runContext: new RunContext(), agent });
    const result = await server.callTool(tool, message);
    await server.close();
    return [tools.map(({ name }) => name), result];
});
