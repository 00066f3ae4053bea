// What the scripts of Node clients share: the two hubs to use, and the report about them as JSON.
import { pathToFileURL } from "node:url";

export const [installed, targets] = process.argv.slice(2);
export const message = { message: "hello" };
export const tool = process.env.TOOL;

// A module of the client's own `node_modules`; needs the flag `--experimental-import-meta-resolve`.
export const load = (name) => import(import.meta.resolve(name, pathToFileURL(`${installed}/`).href));

// Calls `use(command, args)`, which returns the names of the tools and the result of the call, for each hub.
export async function run(use) {
    const reports = [];
    for (const [program, ...args] of JSON.parse(targets)) {
        try {
            const [tools, result] = await use(program, args);
            reports.push({ tools, called: textOf(result) });
        } catch (error) {
            reports.push({ error: String(error).slice(0, 500) });
        }
    }
    console.log(`\n${JSON.stringify(reports)}`);
    process.exit(0);
}

// The text in a result, however the framework wraps it.
export function textOf(value) {
    if (typeof value === "string") {
        if (!/^[[{]/.test(value)) return value;
        try {
            return textOf(JSON.parse(value));
        } catch {
            return value;
        }
    }
    if (Array.isArray(value)) return value.length ? textOf(value[0]) : "";
    return value === null || typeof value !== "object" ? String(value) : textOf(value.text ?? value.content ?? value.result ?? "");
}
