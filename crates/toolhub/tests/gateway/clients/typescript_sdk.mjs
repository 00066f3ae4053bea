// Goes through everything that a client does with the official TypeScript SDK of the legacy revisions, and prints what
// came of it as JSON. Arguments: the SDK's folder, the transport (`http`, `sse`, `stdio`), and the URL or the command.

const [folder, transport, ...target] = process.argv.slice(2);
const part = (name) => import(`${folder}/dist/esm/${name}.js`);
const { Client } = await part("client/index");
const { StreamableHTTPClientTransport } = await part("client/streamableHttp");
const { SSEClientTransport } = await part("client/sse");
const { StdioClientTransport } = await part("client/stdio");
const { CreateMessageRequestSchema, ElicitRequestSchema } = await part("types");

const capabilities = { sampling: {}, elicitation: {} };
const client = new Client({ name: "typescript", version: "1" }, { capabilities });
client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
    const asked = [params.messages[0].content].flat()[0];
    return { role: "assistant", model: "none", content: { type: "text", text: `heard: ${asked.text}` } };
});
client.setRequestHandler(ElicitRequestSchema, () => ({
    action: "accept",
    content: { username: "ada", email: "ada@example.org" },
}));

const ways = {
    http: () => new StreamableHTTPClientTransport(new URL(target[0])),
    sse: () => new SSEClientTransport(new URL(target[0])),
    stdio: () => new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env }),
};
await client.connect(ways[transport]());

const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
const textOf = async (name, args) => (await call(name, args)).content[0].text;
const report = {};
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
console.log(JSON.stringify(report));
await client.close();
process.exit(0);
