// The command line of the MCP inspector.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { installed, message, run, tool } from "./harness.mjs";

const launcher = `${installed}/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js`;

await run(async (command, args) => {
    const server = { type: "stdio", command, args, env: process.env };
    writeFileSync("inspector.json", JSON.stringify({ mcpServers: { hub: server } }));
    const inspect = (...method) => {
        const words = [launcher, "--cli", "--config", "inspector.json", "--server", "hub", ...method];
        return JSON.parse(execFileSync("node", words, { encoding: "utf8", maxBuffer: 1 << 28 }));
    };
    const { tools } = inspect("--method", "tools/list");
    const values = Object.entries(message).map(([name, value]) => `${name}=${value}`);
    const result = inspect("--method", "tools/call", "--tool-name", tool, "--tool-arg", ...values);
    return [tools.map(({ name }) => name), result];
});
