// Calls through the form: a built-in tool, and a tool whose schema has a union, nested arrays and references. The call appears
// live in the list of calls, and can be made again with the same arguments.

import { gotoLive, isSameDocument, markDocument, pressOn, tabTo } from "./session.mjs";

const json = (page) => page.locator("#trial-json");
const value = async (page) => JSON.parse(await json(page).inputValue());
const result = (page) => page.locator("#trial-result");

/** Waits until the JSON beside the form is this value. */
async function awaitJson(session, page, expected) {
    const wanted = JSON.stringify(expected);
    await page
        .waitForFunction((text) => JSON.stringify(JSON.parse(document.getElementById("trial-json").value)) === text, wanted)
        .catch(async () => session.equal(await value(page), expected, "the JSON beside the form"));
}

/** Finds a tool by keyboard alone, and calls it. */
async function calculate(session, page) {
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await page.getByRole("heading", { name: /^Tools/ }).waitFor();
    // The script of the page, which handles the keys, runs before this event.
    await page.waitForLoadState("load");
    await page.keyboard.press("/");
    await page.keyboard.type("calculate an expression");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\?q=calculate/);
    await pressOn(page, page.getByRole("link", { name: "calculate", exact: true }));
    await page.locator("#trial .trial").waitFor();
    session.equal(await page.locator(".trial-actions button:visible").allInnerTexts(), ["Call"], "the buttons before a call");
    await tabTo(page, page.getByLabel(/^expression/).first());
    await page.keyboard.type("6 * 7");
    await awaitJson(session, page, { expression: "6 * 7" });
    await page.keyboard.press("Control+Enter");
    await result(page).locator(".state.good").waitFor();
    session.check((await result(page).innerText()).includes("42"), "the result is not shown");
    await page.waitForFunction(() => document.activeElement?.id === "trial-head");
    // The result of an earlier call does not stay below an attempt that is refused.
    await page.getByLabel(/^expression/).first().fill("");
    await json(page).fill("{}");
    await pressOn(page, page.getByRole("button", { name: "Call", exact: true }));
    await page.locator(".sf-error:visible").first().waitFor();
    await page.waitForFunction(() => document.getElementById("trial-result").textContent === "");
}

/** Fills the form of `draw` from an empty one. */
async function fillUnion(session, page) {
    const variant = page.getByLabel("Variant: shape");
    await tabTo(page, variant);
    await variant.selectOption({ label: "Polygon" });
    session.equal((await value(page)).shape.kind, "polygon", "the constant of the variant");
    await page.getByRole("button", { name: "Add item: rings" }).press("Enter");
    await page.getByRole("button", { name: "Add item: Item 1" }).press("Enter");
    await page.getByLabel("x", { exact: false }).first().fill("1.50");
    await page.getByLabel("y", { exact: false }).first().fill("12345678901234567890");
    session.check((await json(page).inputValue()).includes("12345678901234567890"), "digits of a number are lost");
    await page.getByLabel(/^layer/).fill("2");
}

async function checkInvalid(session, page) {
    const layer = page.getByLabel(/^layer/);
    await layer.fill("12");
    const message = page.locator(".sf-slot:has(> .sf-field.sf-invalid) .sf-error:visible");
    await message.waitFor();
    session.check(/9/.test(await message.innerText()), `the message of the hub: ${await message.innerText()}`);
    session.equal(await layer.getAttribute("aria-invalid"), "true", "aria-invalid of the field");
    const described = await layer.getAttribute("aria-describedby");
    const ids = await message.evaluate((element) => element.id);
    session.check(described.split(" ").includes(ids), "the message describes the field");
    await layer.fill("3");
    await message.waitFor({ state: "hidden" });
    // JSON changes the form, too.
    const text = await json(page).inputValue();
    await json(page).fill(text.replace(/"layer": 3/, '"layer": 4'));
    session.equal(await layer.inputValue(), "4", "the field after a change of the JSON");
    await json(page).fill("{");
    await page.getByText("This is not valid JSON").waitFor();
    // Neither the check of the change before nor a click sends it: the hub would answer with 400.
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.getByText("This is not valid JSON").waitFor();
    session.equal(await json(page).getAttribute("aria-invalid"), "true", "aria-invalid of the JSON");
    await json(page).fill(text);
    session.equal(await json(page).getAttribute("aria-invalid"), null, "aria-invalid of the corrected JSON");
    session.equal(await layer.inputValue(), "3", "the field after a change of the JSON");
}

/** Arguments that are too long are stored in part: they cannot be used again. */
async function repeatTruncated(session, page, root) {
    await page.goto(`${root}/console/tools/draw`);
    await page.locator("#trial .trial").waitFor();
    await json(page).fill(JSON.stringify({ shape: { kind: "circle", radius: 1 }, extra: "x".repeat(20_000) }));
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Call tool", exact: true }).click();
    await result(page).locator(".state").waitFor();
    await page.goto(`${root}/console/calls`);
    await page.locator("main tbody a").first().click();
    await page.getByText("$truncated").first().waitFor();
    const again = page.getByRole("link", { name: "Call again with these arguments" });
    if ((await again.count()) === 0) return;
    await again.click();
    await page.locator("#trial .trial").waitFor();
    session.check(!(await json(page).inputValue()).includes("$truncated"), "a truncated text is used as arguments");
    await page.locator("#trial-message", { hasText: "too long" }).waitFor();
}

export async function run(session, { root }) {
    const page = await session.openConsole(await session.request("link"));
    await calculate(session, page);

    const list = await page.context().newPage();
    await gotoLive(list, `${root}/console/calls`);
    await list.getByRole("cell", { name: "calculate" }).waitFor();
    await markDocument(list);

    await page.goto(`${root}/console/tools/draw`);
    await page.locator("#trial .trial").waitFor();
    await fillUnion(session, page);
    await checkInvalid(session, page);
    await session.checkAccessibility(page, "the filled form");
    const sent = await json(page).inputValue();
    await pressOn(page, page.getByRole("button", { name: "Call", exact: true }));
    const question = page.getByRole("dialog");
    session.check((await question.innerText()).includes("draw"), "the question names the tool");
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "detached" });
    session.equal(await result(page).innerText(), "", "nothing is called after Escape");
    // Enter in a field of one line calls, too.
    await page.getByLabel(/^layer/).press("Enter");
    await pressOn(page, question.getByRole("button", { name: "Call tool", exact: true }));
    await result(page).locator(".state.good").waitFor();
    session.check((await result(page).innerText()).includes("12345678901234567890"), "the result has the number as it was sent");

    const row = list.getByRole("row", { name: /draw/ });
    await row.waitFor();
    session.check(await isSameDocument(list), "the list was loaded again instead of updated");
    // The form, the list and the page of the call show the same duration.
    const duration = /\d+(\.\d)? (µs|ms|s)\b/;
    const [shown] = (await result(page).locator("#trial-state", { hasText: duration }).innerText()).match(duration);
    session.check((await row.innerText()).includes(shown), `the duration ${shown} in the list: ${await row.innerText()}`);
    session.equal(await result(page).getByRole("link", { name: "Open this call" }).count(), 1, "the link to the record");
    session.equal(await row.getByRole("link", { name: "draw" }).count(), 1, "the link to the tool");
    await row.getByRole("link").first().click();
    await list.getByRole("heading", { name: "draw" }).waitFor();
    session.check((await list.locator("dl.facts").innerText()).includes(shown), `the duration ${shown} of the call`);
    await list.getByRole("link", { name: "Call again with these arguments" }).click();
    await list.locator("#trial .trial").waitFor();
    session.equal(JSON.parse(await json(list).inputValue()).shape.kind, "polygon", "the arguments of the earlier call");
    session.equal((await json(list).inputValue()).replace(/\s/g, ""), sent.replace(/\s/g, ""), "the arguments of the earlier call");
    session.equal(await list.getByLabel(/^layer/).inputValue(), "3", "the field of the earlier call");
    await repeatTruncated(session, page, root);
}
