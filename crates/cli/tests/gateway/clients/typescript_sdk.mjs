// Goes through everything that a client does with the official TypeScript SDK, and prints what came of it as JSON.
// Arguments: the folder of the SDK's packages, and a list of ways to go, as JSON: each a mode (`auto` for the SDK of both
// eras, `legacy` for the one before it), a transport (`http`, `sse`, `stdio`), and the URL or the command.

const [folder, ways] = process.argv.slice(2);

const part = (name) => import(`${folder}/@modelcontextprotocol/sdk/dist/esm/${name}.js`);
const { Client } = await part("client/index");
const { StreamableHTTPClientTransport } = await part("client/streamableHttp");
const { SSEClientTransport } = await part("client/sse");
const { StdioClientTransport } = await part("client/stdio");
const { CreateMessageRequestSchema, ElicitRequestSchema } = await part("types");
const modern = await import(`${folder}/@modelcontextprotocol/client/dist/index.mjs`);
const modernStdio = await import(`${folder}/@modelcontextprotocol/client/dist/stdio.mjs`);

const capabilities = { sampling: {}, elicitation: {} };
const info = { name: "typescript", version: "1" };
const sample = ({ params }) => {
    const asked = [params.messages[0].content].flat()[0];
    return { role: "assistant", model: "none", content: { type: "text", text: `heard: ${asked.text}` } };
};
const elicit = () => ({ action: "accept", content: { username: "ada", email: "ada@example.org" } });

const makers = {
    legacy() {
        const client = new Client(info, { capabilities });
        client.setRequestHandler(CreateMessageRequestSchema, sample);
        client.setRequestHandler(ElicitRequestSchema, elicit);
        return [client, StreamableHTTPClientTransport, SSEClientTransport, StdioClientTransport];
    },
    auto() {
        const client = new modern.Client(info, { capabilities, versionNegotiation: { mode: "auto" } });
        client.setRequestHandler("sampling/createMessage", sample);
        client.setRequestHandler("elicitation/create", elicit);
        const { StreamableHTTPClientTransport: Http, SSEClientTransport: Sse } = modern;
        return [client, Http, Sse, modernStdio.StdioClientTransport];
    },
};

async function go(mode, transport, ...target) {
    const [client, Http, Sse, Stdio] = makers[mode]();
    const opened = {
        http: () => new Http(new URL(target[0])),
        sse: () => new Sse(new URL(target[0])),
        stdio: () => new Stdio({ command: target[0], args: target.slice(1), env: process.env }),
    };
    await client.connect(opened[transport]());
    const call = (name, args, options) =>
        mode === "auto"
            ? client.callTool({ name, arguments: args }, options)
            : client.callTool({ name, arguments: args }, undefined, options);
    const textOf = async (name, args) => (await call(name, args)).content[0].text;
    const report = {};
    if (mode === "auto") report.version = client.getNegotiatedProtocolVersion();
    report.tools = (await client.listTools()).tools.map((tool) => tool.name);
    report.called = await textOf("greet", { name: "世界" });
    report.unknown = await call("no_such_tool", {}).then(JSON.stringify, (error) => error.code);
    report.progress = [];
    await call("test_tool_with_progress", {}, { onprogress: ({ progress }) => report.progress.push(progress) });
    report.sampled = await textOf("test_sampling", { prompt: "hello" });
    report.elicited = await textOf("test_elicitation", { message: "who?" });
    const abort = new AbortController();
    const held = call("hold", {}, { signal: abort.signal, onprogress: () => abort.abort() });
    report.cancelled = await held.then(() => false, () => true);
    report.after = await textOf("greet", { name: "again" });
    await client.close();
    return report;
}

const reports = [];
for (const way of JSON.parse(ways)) reports.push(await go(...way));
console.log(JSON.stringify(reports));
process.exit(0);
