// Runs one scenario of this folder in a browser. The first line of standard input is an object with `scenario`, `packages` (the
// folder of the npm packages), `program` (the browser), `screenshots` (a folder) and `details` for the scenario. Each line of
// standard output is a message: `{"request", "value"}` asks the test to do something, and the next line of standard input is the
// response; `{"findings"}` is the last one. The script ends when standard input ends.

import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";

import { Session } from "./session.mjs";

/** A scenario that takes longer fails, unless it exports a time of its own. */
const SCENARIO_TIMEOUT_MS = 900_000;

const responses = [];
let first;
const start = new Promise((resolve) => {
    first = resolve;
});
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
    const value = JSON.parse(line);
    if (first) {
        first(value);
        first = undefined;
    } else {
        responses.shift()?.(value);
    }
});
lines.on("close", () => process.exit(1));

const send = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const request = (name, value = null) =>
    new Promise((resolve) => {
        responses.push(resolve);
        send({ request: name, value });
    });

const { scenario, packages, program, screenshots, details } = await start;
const require = createRequire(`${packages}/`);
const { chromium } = require("playwright-core");
const axeSource = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const { run, TIMEOUT_MS = SCENARIO_TIMEOUT_MS } = await import(`./${scenario}.mjs`);

const findings = [];
const browser = await chromium.launch({ executablePath: program });
const folder = `${screenshots}/${scenario}`;
mkdirSync(folder, { recursive: true });
const session = new Session({ browser, axeSource, findings, request, folder });
const timer = setTimeout(() => {
    send({ findings: [...findings, `${scenario}: not finished after ${TIMEOUT_MS} ms`] });
    process.exit(0);
}, TIMEOUT_MS);
try {
    await run(session, details);
} catch (error) {
    findings.push(`${scenario}: ${error.stack}`);
    await session.captureFailure();
}
clearTimeout(timer);
await browser.close();
process.stdout.write(`${JSON.stringify({ findings: [...new Set(findings)] })}\n`, () => process.exit(0));
