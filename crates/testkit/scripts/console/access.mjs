// Keys: one is made, works, gets another secret and is revoked. The simulator shows what it may do, and which recorded calls
// other rules would refuse.

import { pressOn } from "./session.mjs";

export async function run(session, { root, gateway }) {
    session.tolerate(/Failed to load resource: .* status of (400|409)/);
    const page = await session.openConsole(await session.request("link"));
    const status = async (key) => {
        const response = await fetch(`${gateway}/api/v1/me`, { headers: { authorization: `Bearer ${key}` } });
        return response.status;
    };
    const question = page.getByRole("dialog");
    const confirm = (action) => pressOn(page, question.getByRole("button", { name: action, exact: true }));
    /** Reads the secret that is shown once, and closes it. */
    const secret = async () => {
        const shown = page.getByRole("dialog", { name: /not shown again/ });
        await shown.waitFor();
        await session.checkAccessibility(page, "the secret of a key");
        const text = await shown.locator("pre").innerText();
        await pressOn(page, shown.getByRole("button", { name: "Done" }));
        return text;
    };

    await page.goto(`${root}/console/access`);
    await page.getByLabel("Name", { exact: true }).fill("ann");
    await page.getByLabel("viewer", { exact: true }).check();
    await page.getByLabel("Calls per day").fill("50");
    const make = page.locator("#new-key").getByRole("button", { name: "Make key" });
    await pressOn(page, make);
    await confirm("Make key");
    const first = await secret();
    const row = page.getByRole("row", { name: /ann/ });
    await row.waitFor();
    session.check(/caller/.test(await row.innerText()) && /viewer/.test(await row.innerText()), "the roles of the key");
    session.check((await row.innerText()).includes("50"), "the calls per day of the key");
    session.check(!(await page.locator("main").innerText()).includes(first), "the page shows the secret");
    session.equal(await status(first), 200, "the status with the new key");

    // The same name again is refused.
    await page.getByLabel("Name", { exact: true }).fill("ann");
    await pressOn(page, make);
    if (await question.count()) await confirm("Make key");
    await page.locator("#new-key .field-error", { hasText: "ann" }).waitFor();

    for (const [tool, given] of Object.entries({ calculate: { expression: "6*7" }, get_time: { zone: "UTC" } })) {
        const headers = { authorization: `Bearer ${first}` };
        const call = await fetch(`${gateway}/api/v1/tools/${tool}:call`, {
            method: "POST",
            headers,
            body: JSON.stringify({ arguments: given }),
        });
        session.equal([call.status, (await call.json()).success], [200, true], `a call of ${tool}`);
    }
    await simulate(session, page);

    await pressOn(page, row.getByRole("button", { name: "Rotate" }));
    await confirm("Replace secret");
    const second = await secret();
    session.check(second !== first, "the secret is the same");
    session.equal([await status(first), await status(second)], [401, 200], "the statuses after Rotate");
    await page.waitForFunction(() => document.activeElement?.dataset?.post?.endsWith("/ann:rotate"));

    await pressOn(page, row.getByRole("button", { name: "Revoke" }));
    await pressOn(page, question.getByRole("button", { name: "Cancel" }));
    session.equal(await status(second), 200, "the status after Cancel");
    await pressOn(page, row.getByRole("button", { name: "Revoke" }));
    session.check((await question.innerText()).includes("the key “ann”"), "the question names the key");
    await confirm("Revoke key");
    await row.waitFor({ state: "detached" });
    session.equal(await status(second), 401, "the status after Revoke");
    // The button is gone: the focus is at the content.
    await page.waitForFunction(() => document.activeElement?.id === "main");
    await makeClientKey(session, page, { root, gateway, status, confirm });
}

/** The page of clients makes a key for a client, and shows the text for its file once with that key. */
async function makeClientKey(session, page, { root, gateway, status, confirm }) {
    await page.goto(`${root}/console/clients`);
    await page.getByRole("link", { name: "key:ann" }).waitFor();
    await pressOn(page, page.getByRole("button", { name: "Make a key for Cursor" }));
    session.check((await page.getByRole("dialog").innerText()).includes("“cursor”"), "the question names the key");
    await confirm("Make key");
    const shown = page.getByRole("dialog", { name: /not shown again/ });
    await shown.waitFor();
    await session.checkAccessibility(page, "the key of a client");
    await session.screenshot(page, "client-key");
    const [key, snippet] = await shown.locator("pre").allInnerTexts();
    session.equal(await status(key), 200, "the status with the key of the client");
    const server = JSON.parse(snippet).mcpServers.toolhub;
    session.equal([server.url, server.headers.Authorization], [`${gateway}/mcp`, `Bearer ${key}`], "the text for the client");
    await pressOn(page, shown.getByRole("button", { name: "Done" }));
    await shown.waitFor({ state: "detached" });
    // A dialog is hidden a moment before it is removed.
    await page.waitForFunction((secret) => !document.documentElement.outerHTML.includes(secret), key);
    // The name is taken: the next key has another one.
    await page.reload();
    await pressOn(page, page.getByRole("button", { name: "Make a key for Cursor" }));
    session.check((await page.getByRole("dialog").innerText()).includes("“cursor-2”"), "the name of the next key");
    await page.keyboard.press("Escape");
}

async function simulate(session, page) {
    const simulator = page.locator("#simulator");
    const rules = simulator.getByLabel("Rules as JSON");
    // Hints where there is nothing to decide.
    await pressOn(page, simulator.getByRole("button", { name: "What may it do?" }));
    await simulator.locator(".field-error", { hasText: "Fill in a caller and a tool" }).waitFor();
    await simulator.getByLabel("Caller (principal)").fill("key:ann");
    await simulator.getByLabel("Tool").fill("calculate");
    await rules.fill('[{"name": "none", "effect": "forbid", "tools": ["calculate"]}, {"name": "all", "effect": "allow"}]');
    const decide = simulator.getByRole("button", { name: "What may it do?" });
    await pressOn(page, decide);
    const decision = simulator.getByRole("row", { name: /native/ });
    await decision.waitFor();
    session.equal((await decision.getByRole("cell").allInnerTexts()).slice(1, 3), ["forbid", "forbid"], "the decision");
    await simulator.getByText("Nothing allows this call.").waitFor();
    await rules.fill('[{"name": "all", "effect": "allow"}]');
    await pressOn(page, decide);
    await simulator.getByRole("cell", { name: "allow", exact: true }).first().waitFor();

    // The key has called `calculate` and `get_time`.
    await rules.fill('[{"name": "times", "effect": "allow", "tools": ["get_time"]}]');
    await pressOn(page, simulator.getByRole("button", { name: "Which calls would be refused?" }));
    await simulator.getByText(/^1 of 2 calls would be refused or held/).waitFor();
    session.equal(await simulator.getByRole("row", { name: /calculate/ }).count(), 1, "the refused calls");
    await rules.fill("[");
    await pressOn(page, decide);
    await simulator.locator(".field-error", { hasText: "JSON" }).waitFor();
    // Nothing is changed.
    await page.reload();
    await simulator.locator("textarea").waitFor();
    session.equal(JSON.parse(await rules.inputValue()), [], "the rules in force");
}
