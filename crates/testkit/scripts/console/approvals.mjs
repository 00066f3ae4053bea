// Decisions of people: a changed tool definition and a held call.

import { McpClient, gotoLive, isSameDocument, markDocument, pressOn } from "./session.mjs";

async function callOnPage(page) {
    await page.locator("#trial .trial").waitFor();
    await pressOn(page, page.getByRole("button", { name: "Call", exact: true }));
    await pressOn(page, page.getByRole("dialog").getByRole("button", { name: "Call tool", exact: true }));
    const state = page.locator("#trial-result .state, #trial-result > .problem").first();
    await state.waitFor();
    return (await page.locator("#trial-result").innerText()).trim();
}

/** With `pin = "block"` a changed tool is held back until it is approved; with `"warn"` it only has a mark. */
export async function changedTool(session, { root, pin }) {
    const page = await session.openConsole(await session.request("link"));
    await page.goto(`${root}/console/tools/sheet`);
    await page.getByRole("heading", { name: "The definition has changed" }).waitFor();
    await page.locator(".head .state", { hasText: pin === "block" ? "held back" : "changed since it was approved" }).waitFor();
    const diff = page.getByRole("region", { name: "Changes" });
    const lines = async (name) => (await diff.locator(name).allInnerTexts()).map((line) => line.trim());
    session.equal(await lines("del"), ['-   "description": "Reads a sheet.",'], "the lines of the approved definition");
    session.equal(await lines("ins"), ['+   "description": "Sends the sheet away.",'], "the lines of the new definition");
    if (pin === "block") {
        session.equal(await page.locator("#trial").count(), 0, "forms of a tool that is held back");
        const listed = await page.context().newPage();
        await listed.goto(`${root}/console/tools?source=sheets`);
        await listed.getByRole("row", { name: /sheet.*held back/ }).waitFor();
    }
    session.equal((await session.request("calls")).count, 0, "calls before the approval");

    await pressOn(page, page.getByRole("button", { name: "Approve" }));
    await pressOn(page, page.getByRole("dialog").getByRole("button", { name: "Approve definition", exact: true }));
    await page.locator(".head .state.good", { hasText: "approved" }).waitFor();
    await diff.waitFor({ state: "detached" });
    const answer = await callOnPage(page);
    session.check(answer.includes("cells"), `the call after the approval: ${answer}`);
    session.equal((await session.request("calls")).count, 1, "calls after the approval");
}

export async function heldCall(session, { root, gateway, key }) {
    const client = await new McpClient(gateway, key).connect();
    const page = await session.openConsole(await session.request("link"));
    await gotoLive(page, `${root}/console/waiting`);
    await page.getByText("No call waits for a decision.").waitFor();
    await markDocument(page);

    const held = await client.call("write_sheet", { row: 7 });
    session.check(held.isError === true && JSON.stringify(held).includes("waits for approval"), `the held call: ${JSON.stringify(held)}`);
    const card = page.locator("section.card", { hasText: "write_sheet" });
    await card.waitFor();
    await page.locator("nav .count", { hasText: "1" }).waitFor();
    session.check(/"row": 7/.test(await card.innerText()) && (await card.innerText()).includes("key:ann"), "the arguments and the caller");
    session.equal((await session.request("calls")).count, 0, "calls before the decision");

    await pressOn(page, card.getByRole("button", { name: "Approve" }));
    await pressOn(page, page.getByRole("dialog").getByRole("button", { name: "Approve call", exact: true }));
    await page.getByText("No call waits for a decision.").waitFor();
    session.check(await isSameDocument(page), "the page was loaded again instead of updated");
    session.equal((await session.request("calls")).count, 0, "an approval alone runs nothing");
    const allowed = await client.call("write_sheet", { row: 7 });
    session.check(allowed.isError !== true, `the approved call: ${JSON.stringify(allowed)}`);
    session.equal((await session.request("calls")).count, 1, "calls after the approval");

    const again = await client.call("write_sheet", { row: 7 });
    session.check(again.isError === true, "one approval, one run");
    session.equal((await session.request("calls")).count, 1, "calls after a second attempt");
    await card.waitFor();
    await pressOn(page, card.getByRole("button", { name: "Deny" }));
    await page.getByText("No call waits for a decision.").waitFor();
    await pressOn(page, page.getByRole("link", { name: "Decided ones, too" }));
    await page.locator(".state", { hasText: "denied" }).waitFor();
    session.equal((await session.request("calls")).count, 1, "calls after the denial");
}

const SCENARIOS = { changedTool, heldCall };
export const run = (session, details) => SCENARIOS[details.part](session, details);
