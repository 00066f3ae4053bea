// A server is added with the form: the preview writes nothing, an error is shown, and the added server connects. It is disabled,
// enabled and removed again, and the focus stays at the button.

import { pressOn, tabTo } from "./session.mjs";

const has = (session, server) => session.request("servers").then((servers) => servers.includes(server));

export async function run(session, { root, command }) {
    session.tolerate(/Failed to load resource: .* status of (400|409)/);
    const page = await session.openConsole(await session.request("link"));
    const open = async () => {
        await page.goto(`${root}/console/servers`);
        await page.locator("#add-server form").waitFor();
    };
    await open();
    const [name, reach, values] = ["Name", "Command, URL or JSON", "Variables or headers"].map((label) => page.getByLabel(label));
    const preview = page.getByRole("region", { name: "Change of the file" });
    const message = page.locator("#add-server .field-error");

    const isFocused = (control) => control.evaluate((element) => element === document.activeElement);
    const refused = async (control, text) => {
        await pressOn(page, page.getByRole("button", { name: "Preview" }));
        await message.filter({ hasText: text }).waitFor();
        session.equal(await control.getAttribute("aria-invalid"), "true", `aria-invalid after ${text}`);
        session.check(await isFocused(control), `the focus after ${text}`);
    };

    // What is wrong is said at its field.
    await reach.fill(command);
    await refused(name, "needs a name");
    await name.fill("my server!");
    await refused(name, "letters, digits");
    await name.fill("notes");
    session.equal(await name.getAttribute("aria-invalid"), null, "aria-invalid of a corrected name");
    await values.fill("FOO BAR");
    await refused(values, "write NAME=VALUE");
    await values.fill("");
    await reach.fill('{"mcpServers": {');
    await pressOn(page, page.getByRole("button", { name: "Preview" }));
    await message.filter({ hasText: "not valid JSON" }).filter({ hasText: "line 1" }).waitFor();
    await reach.fill("");

    // Without a command there is nothing to add.
    await name.fill("notes");
    await pressOn(page, page.getByRole("button", { name: "Preview" }));
    await message.filter({ hasText: /./ }).waitFor();
    session.check(await preview.isHidden(), "a preview of nothing");

    await reach.fill(command);
    await values.fill("NOTES_KEY=a=b: c");
    await pressOn(page, page.getByRole("button", { name: "Preview" }));
    await preview.waitFor();
    const change = await preview.innerText();
    for (const part of ["mcp.json", '"notes"', '"NOTES_KEY": "a=b: c"'])
        session.check(change.includes(part), `the preview has no ${part}: ${change}`);
    session.equal(await message.innerText(), "", "the message of a preview");
    session.equal(await has(session, "notes"), false, "the file after a preview");
    await session.checkAccessibility(page, "the preview");

    // Leaving the page cancels.
    await open();
    session.equal(await name.inputValue(), "", "the form after leaving the page");
    session.equal(await has(session, "notes"), false, "the file after leaving the page");

    await name.fill("notes");
    await reach.fill(command);
    await pressOn(page, page.getByRole("button", { name: "Add", exact: true }));
    await page.waitForURL(/\/servers\/notes$/);
    session.equal(await has(session, "notes"), true, "the file after Add");
    await page.getByRole("link", { name: "read_note" }).waitFor();

    // The same name again is refused.
    await open();
    await name.fill("notes");
    await reach.fill(command);
    await pressOn(page, page.getByRole("button", { name: "Add", exact: true }));
    await message.filter({ hasText: "notes" }).waitFor();

    await page.goto(`${root}/console/servers/notes`);
    const question = page.getByRole("dialog");
    const press = async (label) => {
        const button = page.getByRole("button", { name: label, exact: true });
        await pressOn(page, button);
        // Some actions have no question.
        if (!(await question.count())) return;
        session.check((await question.innerText()).includes("the server “notes”"), `the question of ${label} names the server`);
        await pressOn(page, question.getByRole("button", { name: `${label} server`, exact: true }));
    };
    await press("Test");
    await page.waitForFunction(
        () => document.activeElement?.dataset?.post?.endsWith(":test") && !document.activeElement.disabled,
    );
    await page.locator("#toast p", { hasText: "The server works" }).waitFor();
    await press("Disable");
    await page.getByRole("button", { name: "Enable", exact: true }).waitFor();
    const focused = await page.evaluate(() => document.activeElement !== document.body);
    session.check(focused, "the focus is lost after an action");
    await press("Enable");
    await page.getByRole("button", { name: "Disable", exact: true }).waitFor();

    await tabTo(page, page.getByRole("button", { name: "Remove", exact: true }));
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "detached" });
    session.equal(await has(session, "notes"), true, "the file after Escape");
    await press("Remove");
    await page.waitForURL(/\/servers$/);
    session.equal(await has(session, "notes"), false, "the file after Remove");

    // After several servers were added, the list shows the states of all.
    await open();
    const [program, ...args] = command.split(" ");
    await reach.fill(JSON.stringify({ mcpServers: { one: { command: program, args }, two: { command: program, args } } }));
    await pressOn(page, page.getByRole("button", { name: "Add", exact: true }));
    for (const id of ["one", "two"]) await page.getByRole("row", { name: id }).locator(".state").waitFor();
}
