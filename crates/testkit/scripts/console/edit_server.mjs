// The entry of a server is changed on its page: secrets stay masked and stay in the file, the change is shown first, and the
// change of someone else is not overwritten.

import { pressOn } from "./session.mjs";

export async function run(session, { root, secondScript }) {
    session.tolerate(/Failed to load resource: .* status of (412|422)/);
    const page = await session.openConsole(await session.request("link"));
    const open = async () => {
        await page.goto(`${root}/console/servers/notes`);
        await page.getByRole("link", { name: "Edit", exact: true }).click();
        await page.locator("#edit-server form").waitFor();
    };
    const file = () => session.request("file");
    const [args, values] = ["Arguments, one per line", "Variables, one per line"].map((label) => page.getByLabel(label));
    const diff = page.getByRole("region", { name: "Changes" });
    const dialog = page.getByRole("dialog");
    const save = page.getByRole("button", { name: "Save", exact: true });
    const message = page.locator("#edit-server .field-error");

    await open();
    await session.checkAccessibility(page, "the form of an entry");
    await session.screenshot(page, "edit-server");
    const secret = await values.inputValue();
    session.check(/^NOTES_KEY=\{\{secret \d\}\}$/m.test(secret), `the variables: ${secret}`);
    session.check(!(await page.content()).includes("hunter2"), "the page shows the secret");
    const [mode, script] = (await args.inputValue()).split("\n");
    session.equal(mode, "stdio", "the first argument");
    session.check(script !== secondScript, "the script before the change");

    // Nothing is changed: nothing is asked.
    await pressOn(page, save);
    await message.filter({ hasText: "Nothing is changed." }).waitFor();
    session.equal(await dialog.count(), 0, "a dialog without a change");

    // A secret cannot be moved to another variable.
    await values.fill(secret.replace("NOTES_KEY", "OTHER"));
    await pressOn(page, page.getByRole("button", { name: "Preview", exact: true }));
    await message.filter({ hasText: "stands for no secret" }).waitFor();
    await pressOn(page, page.getByRole("button", { name: "Discard" }));
    await page.waitForFunction((text) => document.getElementById("entry-values")?.value === text, secret);

    await args.fill(`stdio\n${secondScript}`);
    await values.fill(`${secret}\nLEVEL=3`);
    await pressOn(page, save);
    await diff.locator("ins", { hasText: "LEVEL" }).waitFor();
    session.check((await dialog.innerText()).includes("notes"), "the question names the server");
    await pressOn(page, dialog.getByRole("button", { name: "Cancel" }));
    session.check(!(await file()).includes("LEVEL"), "the file after Cancel");
    await pressOn(page, save);
    await pressOn(page, dialog.getByRole("button", { name: "Change server", exact: true }));
    await page.getByRole("link", { name: "write_note" }).waitFor();
    const written = await file();
    session.check(written.includes('"NOTES_KEY": "hunter2"') && written.includes('"LEVEL": "3"'), `the file: ${written}`);

    // Another program changes the entry meanwhile.
    await open();
    await session.request("change");
    await values.fill("");
    await pressOn(page, save);
    await message.filter({ hasText: "was changed since you read it" }).waitFor();
    session.check((await file()).includes("hunter2"), "a change of someone else is overwritten");
}
