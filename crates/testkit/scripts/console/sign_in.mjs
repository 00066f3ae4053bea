// The one-time link and the end of a session.

import { pressOn } from "./session.mjs";

export async function run(session, { root, gateway }) {
    session.tolerate(/Failed to load resource: .* status of (401|403)/);
    const link = await session.request("link");
    const page = await session.openConsole(link);
    session.equal(page.url(), `${root}/console/`, "the address after the link");

    const other = await (await session.newContext()).newPage();
    const second = await other.goto(link);
    session.equal(second.status(), 403, "the status of a used link");
    await other.getByRole("heading", { name: "This link is not valid any more" }).waitFor();
    await other.getByText("toolhub console").waitFor();
    await other.goto(`${root}/console/tools`);
    await other.getByRole("heading", { name: "Log in to the console" }).waitFor();

    // The session works in all tabs of the browser.
    const tab = await page.context().newPage();
    await tab.goto(`${root}/console/tools`);
    await tab.getByRole("heading", { name: /^Tools/ }).waitFor();

    const before = await page.context().cookies();
    session.check(before.some(({ name, httpOnly, sameSite }) => name.startsWith("toolhub_console_") && httpOnly && sameSite === "Lax"), "the cookie of the session");
    // Other programs on this machine know its address, but not the host name of the console.
    const neighbour = await session.newContext();
    await neighbour.addCookies(before.map((cookie) => ({ ...cookie, domain: new URL(gateway).hostname })));
    const elsewhere = await (await neighbour.newPage()).goto(`${gateway}/console/`);
    session.equal(elsewhere.status(), 401, "the cookie at another host name");

    await pressOn(page, page.getByRole("button", { name: "Log out" }));
    await page.getByRole("heading", { name: "Log in to the console" }).waitFor();
    await page.getByText("toolhub console").waitFor();
    const after = await page.context().cookies();
    session.check(after.every(({ name }) => !name.startsWith("toolhub_console_")), "the cookie is removed");
    const reloaded = await tab.reload();
    session.equal(reloaded.status(), 401, "another tab after the end of the session");

    const thief = await session.newContext();
    await thief.addCookies(before);
    const stolen = await thief.newPage();
    const answer = await stolen.goto(`${root}/console/`);
    session.equal(answer.status(), 401, "the old cookie on a page");
    const api = await stolen.goto(`${root}/api/v1/tools`);
    session.equal(api.status(), 401, "the old cookie at the API");
}
