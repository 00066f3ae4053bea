// Lists and calls tools through a protected gateway with the official TypeScript SDKs, and prints the results as JSON.
// Arguments: the folder of the SDK's packages, and JSON like that of `team_client.py` (`mode` is `auto` for the SDK of both eras,
// `legacy` for the one before it).

const [folder, json] = process.argv.slice(2);
const details = JSON.parse(json);

const part = (name) => import(`${folder}/@modelcontextprotocol/sdk/dist/esm/${name}.js`);
const modern = await import(`${folder}/@modelcontextprotocol/client/dist/index.mjs`);
const legacy = { ...(await part("client/index")), ...(await part("client/streamableHttp")) };
const sdk = details.mode === "auto" ? modern : legacy;

const seen = [];

class Login {
    constructor({ account, approve }) {
        Object.assign(this, { account, approve });
    }
    redirectUrl = "http://127.0.0.1:5555/callback";
    clientMetadata = {
        client_name: "team",
        redirect_uris: [this.redirectUrl],
        application_type: "native",
        token_endpoint_auth_method: "none",
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
    };
    clientInformation = () => this.client;
    saveClientInformation = (client) => void (this.client = client);
    tokens = () => this.saved;
    saveTokens = (tokens) => void (this.saved = tokens);
    saveCodeVerifier = (verifier) => void (this.verifier = verifier);
    codeVerifier = () => this.verifier;
    async redirectToAuthorization(url) {
        seen.push(url.searchParams.get("scope"));
        const query = new URLSearchParams({ account: this.account, to: url.href });
        const { location } = await (await fetch(`${this.approve}?${query}`)).json();
        this.parameters = new URL(location).searchParams;
    }
}

const login = details.login && new Login(details.login);
const headers = details.key ? { Authorization: `Bearer ${details.key}` } : {};
const open = () =>
    new sdk.StreamableHTTPClientTransport(new URL(details.url), { requestInit: { headers }, authProvider: login });
const create = () =>
    new sdk.Client({ name: "team", version: "1" }, details.mode === "auto" ? { versionNegotiation: { mode: "auto" } } : {});

let client = create();
let transport = open();
const isUnauthorized = (error) => /unauthorized/i.test(`${error?.name} ${error?.message}`);
try {
    await client.connect(transport);
} catch (error) {
    if (!login || !isUnauthorized(error)) throw error;
    // The SDK has registered and sent its user to the provider; the application passes the code on and connects again.
    const { parameters } = login;
    await transport.finishAuth(details.mode === "auto" ? parameters : parameters.get("code"));
    [client, transport] = [create(), open()];
    await client.connect(transport);
}

async function call(name, args) {
    try {
        const result = await client.callTool({ name, arguments: args });
        const reference = result._meta?.["toolhub/reference"] ?? null;
        return { text: result.content[0].text, error: Boolean(result.isError), reference };
    } catch (error) {
        return { code: error.code, message: error.message };
    }
}

const report = { tools: (await client.listTools()).tools.map((tool) => tool.name).sort(), calls: [] };
for (const [name, args] of details.calls) report.calls.push(await call(name, args));
report.seen = seen;
console.log(JSON.stringify(report));
await client.close();
process.exit(0);
