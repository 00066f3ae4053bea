// The command line of mcporter.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { installed, message, run, tool } from "./harness.mjs";

const program = `${installed}/node_modules/.bin/mcporter`;

await run(async (command, args) => {
    writeFileSync("mcporter.json", JSON.stringify({ mcpServers: { hub: { command, args, env: process.env } } }));
    const mcporter = (...words) =>
        execFileSync(program, ["--config", "mcporter.json", ...words], { encoding: "utf8", maxBuffer: 1 << 28 });
    const { tools } = JSON.parse(mcporter("list", "hub", "--json"));
    const called = mcporter("call", `hub.${tool}`, "--args", JSON.stringify(message), "--output", "raw");
    return [tools.map(({ name }) => name), called.includes("Echo: hello") ? "Echo: hello" : called];
});
