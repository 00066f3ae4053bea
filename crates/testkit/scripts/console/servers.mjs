// A server that fails: its page shows the error and the standard error, and a restart after the fix connects it.

import { isSameDocument, markDocument, pressOn } from "./session.mjs";

export async function run(session, { root }) {
    session.tolerate(/Failed to load resource: .* status of 502/);
    const page = await session.openConsole(await session.request("link"));
    const attention = page.locator("section", { hasText: "Needs attention" });
    await attention.getByRole("link", { name: "broken" }).waitFor();
    await pressOn(page, attention.getByRole("link", { name: "broken" }));
    await page.getByRole("heading", { name: "broken" }).waitFor();
    await page.locator("p.problem").waitFor();
    const log = page.locator("pre.log");
    session.check((await log.innerText()).includes("cannot read the key file"), "the standard error is not shown");
    await markDocument(page);

    const restart = page.getByRole("button", { name: "Restart", exact: true });
    const question = page.getByRole("dialog");
    const starts = async () => (await session.request("starts")).count;
    const before = await starts();
    await pressOn(page, restart);
    session.check((await question.innerText()).includes("broken"), "the question names the server");
    await pressOn(page, question.getByRole("button", { name: "Cancel" }));
    await question.waitFor({ state: "detached" });
    session.equal(await starts(), before, "starts of the server after Cancel");

    await pressOn(page, restart);
    await pressOn(page, question.getByRole("button", { name: "Restart server", exact: true }));
    await page.locator("#toast p").first().waitFor();
    session.check((await starts()) > before, "Restart starts the server");
    await page.locator("p.problem").waitFor();

    await session.request("repair");
    await pressOn(page, restart);
    await pressOn(page, question.getByRole("button", { name: "Restart server", exact: true }));
    await page.locator(".head .state", { hasText: /^connected$/ }).waitFor();
    await page.getByRole("link", { name: "repaired" }).waitFor();
    session.equal(await page.locator("p.problem").count(), 0, "problems of the repaired server");
    session.check(await isSameDocument(page), "the page was loaded again instead of updated");
}
