// The hub restarts at the same address while pages are open: the session survives, and the pages update by themselves.

import { gotoLive, isSameDocument, markDocument } from "./session.mjs";

export async function run(session, { root }) {
    session.tolerate(/net::ERR_(CONNECTION_REFUSED|CONNECTION_RESET|INCOMPLETE_CHUNKED_ENCODING|EMPTY_RESPONSE|ABORTED)/);
    const page = await session.openConsole(await session.request("link"));
    await gotoLive(page, `${root}/console/calls`);
    await page.getByText("No calls yet.").waitFor();
    await markDocument(page);
    const form = await page.context().newPage();
    await form.goto(`${root}/console/tools/calculate`);
    await form.locator("#trial .trial").waitFor();
    await form.getByLabel(/^expression/).first().fill("40 + 2");

    for (const [how, count] of [["stop", 1], ["kill", 2]]) {
        await session.request(how);
        await session.request("start");
        await session.request("call");
        const rows = page.locator("main tbody tr");
        await page.waitForFunction((wanted) => document.querySelectorAll("main tbody tr").length === wanted, count);
        session.check(await isSameDocument(page), "the page was loaded again instead of updated");
        session.check((await rows.first().innerText()).includes("calculate"), "the call after the restart");
    }
    session.equal(await form.getByLabel(/^expression/).first().inputValue(), "40 + 2", "the input survives");
    await form.getByRole("button", { name: "Call", exact: true }).click();
    await form.locator("#trial-result .state.good").waitFor();
    session.check((await form.locator("#trial-result").innerText()).includes("42"), "the session survives");
    await page.waitForFunction(() => document.querySelectorAll("main tbody tr").length === 3);
}
