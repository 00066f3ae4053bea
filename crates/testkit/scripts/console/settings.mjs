// The configuration file: a change is shown as a diff, written when it is confirmed, and never over a change of someone else.

import { pressOn } from "./session.mjs";

export async function run(session, { root }) {
    session.tolerate(/Failed to load resource: .* status of (412|422)/);
    const page = await session.openConsole(await session.request("link"));
    await page.goto(`${root}/console/settings`);
    const editor = page.getByLabel("Text of the file");
    const before = await editor.inputValue();
    session.check(before.includes("{{secret 1}}") && !(await page.content()).includes("hunter2"), "secrets are masked");
    const preview = page.getByRole("button", { name: "Preview", exact: true });
    const save = page.getByRole("button", { name: "Save", exact: true });
    const diff = page.getByRole("region", { name: "Changes" });
    const dialog = page.getByRole("dialog");

    // What the hub cannot use is refused, and stays in the editor.
    await editor.fill(before.replace("20s", "soon"));
    await pressOn(page, preview);
    await page.getByText("`soon` is not a time").waitFor();
    await pressOn(page, save);
    session.equal(await dialog.count(), 0, "a dialog for an invalid text");

    await editor.fill(before.replace("20s", "21s"));
    await pressOn(page, preview);
    await diff.locator("ins", { hasText: "21s" }).waitFor();
    await diff.locator("del", { hasText: "20s" }).waitFor();
    await session.checkAccessibility(page, "a change of the settings");
    await pressOn(page, save);
    await pressOn(page, dialog.getByRole("button", { name: "Cancel" }));
    session.check((await session.request("text")).includes("20s"), "nothing is written after Cancel");
    await pressOn(page, save);
    await pressOn(page, dialog.getByRole("button", { name: "Save file", exact: true }));
    await page.getByText("Saved.").waitFor();
    const written = await session.request("text");
    session.check(written.includes("21s") && written.includes('key = "hunter2"'), `the file: ${written}`);

    // Another program changes the file meanwhile.
    await session.request("change");
    await editor.fill((await editor.inputValue()).replace("21s", "22s"));
    await pressOn(page, save);
    await pressOn(page, dialog.getByRole("button", { name: "Save file", exact: true }));
    await page.getByText("the file was changed since you read it").waitFor();
    session.check((await editor.inputValue()).includes("22s"), "the edited text is lost");
    session.check(!(await session.request("text")).includes("22s"), "a change of someone else is overwritten");
    await pressOn(page, page.getByRole("button", { name: "Discard" }));
    session.check((await editor.inputValue()).includes("21s"), "Discard restores the text");
}
