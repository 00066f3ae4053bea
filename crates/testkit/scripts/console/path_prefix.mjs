// A reverse proxy that serves the hub below `/hub/`: pages, assets, API calls, event streams and redirects work.

import { createServer, request as forward } from "node:http";
import { once } from "node:events";

import { gotoLive, isSameDocument, markDocument } from "./session.mjs";

const PREFIX = "/hub";

/** Strips the prefix and leaves the rest as it is, the host included. */
function startProxy(target, outside) {
    const server = createServer((incoming, outgoing) => {
        if (!incoming.url.startsWith(`${PREFIX}/`)) {
            outside.push(`${incoming.method} ${incoming.url}`);
            outgoing.writeHead(404).end("outside of the prefix\n");
            return;
        }
        const { hostname, port } = new URL(target);
        const path = incoming.url.slice(PREFIX.length);
        const options = { hostname, port, path, method: incoming.method, headers: incoming.headers };
        const passed = forward(options, (answer) => {
            outgoing.writeHead(answer.statusCode, answer.headers);
            answer.pipe(outgoing);
        });
        passed.on("error", () => outgoing.destroy());
        outgoing.on("close", () => passed.destroy());
        incoming.pipe(passed);
    });
    server.listen(0, "127.0.0.1");
    return once(server, "listening").then(() => server);
}

export async function run(session, { root, gateway }) {
    session.tolerate(/Failed to load resource: .* status of (401|403)/);
    const outside = [];
    const proxy = await startProxy(gateway, outside);
    const front = `http://${new URL(root).hostname}:${proxy.address().port}${PREFIX}`;
    const link = (await session.request("link")).replace(root, front);
    const page = await session.openConsole(link);
    session.equal(page.url(), `${front}/console/`, "the redirect of the link");
    await page.goto(`${front}/console`);
    session.equal(page.url(), `${front}/console/`, "the redirect to the slash");

    for (const path of ["", "tools", "tools/calculate", "servers", "servers/sheets", "calls", "waiting", "ask", "skills", "profiles", "clients", "access", "audit"]) {
        const response = await page.goto(`${front}/console/${path}`);
        session.equal(response.status(), 200, `the status of ${path}`);
        session.check(await page.evaluate(() => [...document.styleSheets].every((sheet) => sheet.cssRules.length > 0)), `styles of ${path}`);
        const targets = await page.locator("a[href]").evaluateAll((links) => links.map(({ href }) => href));
        session.equal(targets.filter((target) => !target.startsWith(`${front}/`)), [], `links of ${path}`);
    }
    await page.goto(`${front}/console/clients`);
    const { port } = new URL(front);
    const addresses = await page.locator("main pre.command", { hasText: "http" }).allInnerTexts();
    session.check(addresses.length > 3, "the addresses for clients");
    for (const address of addresses) session.check(address.includes(`:${port}${PREFIX}/mcp`), `the address for clients: ${address}`);
    const list = await page.context().newPage();
    await gotoLive(list, `${front}/console/calls`);
    await list.getByText("No calls yet.").waitFor();
    await markDocument(list);
    await page.goto(`${front}/console/tools/calculate`);
    await page.locator("#trial .trial").waitFor();
    await page.getByLabel(/^expression/).first().fill("6 * 7");
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.locator("#trial-result .state.good").waitFor();
    await list.getByRole("row", { name: /calculate/ }).waitFor();
    session.check(await isSameDocument(list), "the list was loaded again instead of updated");
    await list.getByRole("row", { name: /calculate/ }).getByRole("link").first().click();
    await list.getByRole("link", { name: "Call again with these arguments" }).click();
    await list.locator("#trial .trial").waitFor();

    await page.getByRole("link", { name: "中文" }).click();
    await page.locator("html[lang=zh-CN]").waitFor();
    session.equal(new URL(page.url()).pathname, `${PREFIX}/console/tools/calculate`, "the redirect of a preference");
    await page.getByRole("button", { name: "退出登录" }).click();
    await page.getByRole("heading", { name: "登录控制台" }).waitFor();
    session.equal(page.url(), `${front}/console/`, "the address after the end of the session");
    session.equal(outside, [], "requests outside of the prefix");
    await page.context().close();
    proxy.closeAllConnections();
    proxy.close();
}
