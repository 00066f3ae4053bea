// Responses to two updates of a page arrive in the other order: the later state stays.

import { gotoLive } from "./session.mjs";

/** Runs in the page: keeps the response to the first update until `window.release` is called. */
function holdFirstResponse() {
    const send = window.fetch;
    window.fetch = async (url, options) => {
        const response = await send(url, options);
        if (url === location.href && !window.release) await new Promise((resolve) => (window.release = resolve));
        return response;
    };
}

export async function run(session, { root }) {
    const page = await session.openConsole(await session.request("link"));
    const rows = page.locator("main tbody tr");
    await gotoLive(page, `${root}/console/calls`);
    await page.evaluate(holdFirstResponse);
    await session.request("call");
    await page.waitForFunction(() => window.release);
    await session.request("call");
    await rows.nth(1).waitFor();
    await page.evaluate(async () => {
        window.release();
        // Long enough to replace the content.
        await new Promise((resolve) => setTimeout(resolve, 300));
    });
    session.equal(await rows.count(), 2, "the calls after a late response");
}
