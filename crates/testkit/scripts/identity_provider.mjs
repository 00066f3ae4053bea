// An OAuth 2.1 authorization server for tests: npm `oidc-provider` on a free loopback port. Prints its issuer URL as one line
// of JSON, and ends when its standard input ends. Argument: the folder with the installed package.
//
// Beside the endpoints of its metadata it has routes for tests only:
// - POST /test/rotate adds a new generation of signing keys and signs with it; older keys stay in the JWKS.
// - POST /test/retire removes all keys but those of the newest generation.
// - GET /test/requests counts the requests of the hub by path.
// - GET /test/approve?account=NAME&to=URL follows an authorization request as a browser whose user NAME accepts everything, and
//   returns the redirect to the client as `{"location": …}`. The user `careful` grants only `sheets:read` at first, and
//   everything from the second time on.
//
// Token requests may have further parameters: `alg` (RS256, PS256, ES256, EdDSA), `format` (`opaque`), `groups` (separated by
// commas), and `age`, the number of seconds by which `iat` and `exp` are earlier.

import { createServer } from "node:http";
import { createPublicKey, generateKeyPairSync, randomUUID, verify } from "node:crypto";
import { once } from "node:events";

const [folder] = process.argv.slice(2);
const { Provider, errors, interactionPolicy } = await import(`${folder}/oidc-provider/lib/index.js`);

// Standard output carries the issuer URL only, without the notices of the provider about its defaults.
Object.assign(console, { info: () => {}, warn: () => {} });

const ALGORITHMS = { RS256: "RSA", PS256: "RSA", ES256: "EC", EdDSA: "OKP" };
const SCOPES = "sheets:read sheets:write mail:send";
const GROUPS = { ann: ["platform"], bob: ["office"] };

const generateKeys = () => {
    const pairs = [
        generateKeyPairSync("rsa", { modulusLength: 2048 }),
        generateKeyPairSync("ec", { namedCurve: "P-256" }),
        generateKeyPairSync("ed25519"),
    ];
    return pairs.map(({ privateKey }) => ({ ...privateKey.export({ format: "jwk" }), use: "sig", kid: randomUUID() }));
};

const client = (client_id, more) => ({ client_id, client_secret: `${client_id}-secret`, redirect_uris: [], ...more });
const programs = ["ci", "nightly", "report"].map((name) =>
    client(name, { grant_types: ["client_credentials"], response_types: [] }),
);
const person = client("desktop", {
    client_secret: undefined,
    application_type: "native",
    token_endpoint_auth_method: "none",
    grant_types: ["authorization_code", "refresh_token"],
    redirect_uris: ["http://127.0.0.1/callback"],
});
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
const hub = client("hub", { grant_types: [EXCHANGE, "client_credentials"], response_types: [] });

// Both prompts are answered by `approve`.
const policy = interactionPolicy.base();

const body = (ctx) => ctx?.oidc?.body ?? {};

const configuration = (generations) => ({
    clients: [...programs, person, hub],
    jwks: { keys: generations.flat() },
    // Clients that register name the scopes of the resource.
    scopes: ["openid", "offline_access", ...SCOPES.split(" ")],
    // Groups are in ID tokens, too, for logins at the console.
    claims: { openid: ["sub", "groups"], profile: ["name"], email: ["email"] },
    findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id, name: id, groups: GROUPS[id] ?? [] }) }),
    pkce: { required: () => true },
    issueRefreshToken: (ctx, client) => client.grantTypeAllowed("refresh_token"),
    interactions: { policy, url: (ctx, interaction) => `/interaction/${interaction.uid}` },
    cookies: { keys: ["for tests"] },
    clientDefaults: { id_token_signed_response_alg: "RS256" },
    enabledJWA: { idTokenSigningAlgValues: ["RS256", "ES256", "EdDSA", "PS256"] },
    ttl: { AccessToken: 3600, ClientCredentials: 3600, Grant: 3600, Interaction: 60, Session: 3600, IdToken: 3600, RefreshToken: 7200 },
    extraTokenClaims: (ctx, token) => {
        const groups = body(ctx).groups?.split(",") ?? GROUPS[token.accountId];
        return groups && { groups };
    },
    formats: {
        customizers: {
            jwt: (ctx, token, { payload }) => {
                const age = Number(body(ctx).age ?? 0);
                payload.iat -= age;
                payload.exp -= age;
            },
        },
    },
    features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        introspection: { enabled: true, allowedPolicy: (ctx, client) => client.clientId === "hub" },
        revocation: { enabled: true },
        registration: { enabled: true },
        resourceIndicators: {
            enabled: true,
            useGrantedResource: () => true,
            defaultResource: () => undefined,
            getResourceServerInfo: (ctx, resource) => {
                const { alg = "RS256", format = "jwt" } = body(ctx);
                const key = generations[0].find(({ kty }) => kty === ALGORITHMS[alg]);
                return { audience: resource, scope: SCOPES, accessTokenFormat: format, jwt: { sign: { alg, kid: key.kid } } };
            },
        },
    },
});

const server = createServer();
server.listen(0, "127.0.0.1");
await once(server, "listening");
const issuer = `http://127.0.0.1:${server.address().port}`;

// Token exchange (RFC 8693): an access token of this provider for one of another resource, for the same account.
async function exchangeToken(ctx) {
    const { params, client } = ctx.oidc;
    const parts = params.subject_token.split(".").map((part) => Buffer.from(part, "base64url"));
    const { kid } = JSON.parse(parts[0]);
    const key = generations.flat().find((key) => key.kid === kid);
    const { d, p, q, dp, dq, qi, ...publicKey } = key;
    const signed = params.subject_token.slice(0, params.subject_token.lastIndexOf("."));
    if (!verify("sha256", Buffer.from(signed), createPublicKey({ key: publicKey, format: "jwk" }), parts[2])) {
        throw new errors.InvalidGrant("the signature of the subject token is wrong");
    }
    const subject = JSON.parse(parts[1]);
    if (subject.iss !== issuer || subject.exp < Date.now() / 1000) throw new errors.InvalidGrant("the subject token is not valid");
    if (params.subject_token_type !== ACCESS_TOKEN) throw new errors.InvalidRequest("subject_token_type");
    const token = new provider.AccessToken({
        accountId: subject.sub,
        client,
        clientId: client.clientId,
        grantId: randomUUID(),
        gty: "exchange",
        scope: SCOPES,
    });
    const info = await configuration(generations).features.resourceIndicators.getResourceServerInfo(ctx, params.resource);
    token.resourceServer = new provider.ResourceServer(params.resource, info);
    ctx.body = {
        access_token: await token.save(),
        issued_token_type: ACCESS_TOKEN,
        token_type: "Bearer",
        expires_in: token.expiration,
    };
}

let generations = [generateKeys()];
let provider;
let handle;
const restart = () => {
    provider = new Provider(issuer, configuration(generations));
    provider.on("server_error", (ctx, error) => console.error(error));
    const parameters = ["subject_token", "subject_token_type", "requested_token_type", "resource", "scope"];
    provider.registerGrantType(EXCHANGE, exchangeToken, parameters);
    handle = provider.callback();
};
restart();

let careful = true;
const isGranted = (account, scope) => account !== "careful" || !careful || scope === "sheets:read";

async function finishInteraction(request, response) {
    const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
    const account = session?.accountId ?? request.headers["x-account"];
    if (prompt.name === "login") {
        return provider.interactionFinished(request, response, { login: { accountId: account } });
    }
    const grant = grantId
        ? await provider.Grant.find(grantId)
        : new provider.Grant({ accountId: account, clientId: params.client_id });
    const { missingOIDCScope = [], missingResourceScopes = {} } = prompt.details;
    for (const scope of missingOIDCScope) {
        if (isGranted(account, scope)) grant.addOIDCScope(scope);
        else grant.rejectOIDCScope(scope);
    }
    for (const [resource, scope] of Object.entries(missingResourceScopes).flatMap(([r, all]) => all.map((one) => [r, one]))) {
        if (isGranted(account, scope)) grant.addResourceScope(resource, scope);
        else grant.rejectResourceScope(resource, scope);
    }
    if (account === "careful") careful = false;
    const result = { consent: { grantId: await grant.save() } };
    return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

async function approve(account, to) {
    const cookies = new Map();
    let url = new URL(to);
    for (let steps = 0; steps < 10 && url.origin === issuer; steps += 1) {
        const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
        const response = await fetch(url, { redirect: "manual", headers: { cookie, "x-account": account } });
        for (const set of response.headers.getSetCookie()) {
            const [name, value] = set.split(";")[0].split("=");
            cookies.set(name, value);
        }
        const location = response.headers.get("location");
        if (!location) throw new Error(`${response.status} ${await response.text()}`);
        url = new URL(location, url);
    }
    return { location: url.href };
}

const requests = {};

async function answer(request, response) {
    const { pathname, searchParams } = new URL(request.url, issuer);
    const reply = (value) => response.setHeader("content-type", "application/json").end(JSON.stringify(value));
    const route = `${request.method} ${pathname}`;
    if (pathname.startsWith("/interaction/")) return finishInteraction(request, response);
    if (route === "GET /test/approve") return reply(await approve(searchParams.get("account"), searchParams.get("to")));
    if (route === "GET /test/requests") return reply(requests);
    if (route === "POST /test/rotate") generations.unshift(generateKeys());
    else if (route === "POST /test/retire") generations = generations.slice(0, 1);
    else {
        requests[pathname] = (requests[pathname] ?? 0) + 1;
        return handle(request, response);
    }
    restart();
    return reply({ keys: generations.length });
}

server.on("request", (request, response) => {
    answer(request, response).catch((error) => {
        console.error(error);
        response.statusCode = 500;
        response.end(String(error));
    });
});

process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
process.stdout.write(`${JSON.stringify({ issuer })}\n`);
