// Calls a tool with the official TypeScript SDK before and after the gateway is started again, in one session.
// Arguments: the folder of the SDK's packages, and the URL. A line on stdout says that the first call is done; a line on
// stdin says that the gateway is back.

import { once } from "node:events";

const [folder, url] = process.argv.slice(2);

const part = (name) => import(`${folder}/@modelcontextprotocol/sdk/dist/esm/${name}.js`);
const { Client } = await part("client/index");
const { StreamableHTTPClientTransport } = await part("client/streamableHttp");
const { ToolListChangedNotificationSchema } = await part("types");

const client = new Client({ name: "typescript", version: "1" }, { capabilities: {} });
const changed = new Promise((resolve) => client.setNotificationHandler(ToolListChangedNotificationSchema, resolve));
const reconnectionOptions = {
    initialReconnectionDelay: 100,
    maxReconnectionDelay: 100,
    reconnectionDelayGrowFactor: 1,
    maxRetries: 300,
};
const transport = new StreamableHTTPClientTransport(new URL(url), { reconnectionOptions });
await client.connect(transport);
const greet = async (name) => (await client.callTool({ name: "greet", arguments: { name } })).content[0].text;
const session = transport.sessionId;
const report = { before: await greet("before") };
console.log("ready");
await once(process.stdin, "data");
report.after = await greet("after");
report.tools = (await client.listTools()).tools.map((tool) => tool.name);
// The stream that belongs to no request is open again, and tells that lists may have changed.
await changed;
if (transport.sessionId !== session) report.session = "another one";
await transport.terminateSession();
await client.close();
console.log(JSON.stringify(report));
process.exit(0);
