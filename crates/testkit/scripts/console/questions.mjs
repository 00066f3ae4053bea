// A server that asks while its tool runs: a form, an address and a model's reply, each answered in the page.

import { pressOn } from "./session.mjs";

export async function run(session, { root }) {
    session.tolerate(/Failed to load resource: .* status of 422/);
    const page = await session.openConsole(await session.request("link"));
    const result = page.locator("#trial-result");
    const call = async (tool) => {
        await page.goto(`${root}/console/tools/${tool}`);
        await page.locator("#trial .trial").waitFor();
        await pressOn(page, page.getByRole("button", { name: "Call", exact: true }));
        await pressOn(page, page.getByRole("dialog").getByRole("button", { name: "Call tool", exact: true }));
    };
    const question = page.getByRole("region", { name: "Question of the server" });
    const answered = async (expected, what) => {
        await result.locator(".state.good").waitFor();
        session.check((await result.innerText()).includes(expected), `${what}: ${await result.innerText()}`);
    };

    await call("book");
    await question.waitFor();
    await page.getByText("half", { exact: false }).waitFor();
    session.equal(await question.locator("b").count(), 0, "markup of the question");
    await session.checkAccessibility(page, "a question of a server");
    await pressOn(page, question.getByRole("button", { name: "Send" }));
    await question.locator(".field-error", { hasText: "day" }).waitFor();
    await question.getByLabel(/^day/).fill("Monday");
    await pressOn(page, question.getByRole("button", { name: "Send" }));
    await answered("Monday", "the answer of the form");

    await call("book");
    await pressOn(page, question.getByRole("button", { name: "Decline" }));
    await answered("decline", "the refusal");

    // Only addresses of the web become links.
    await call("open_script");
    await question.waitFor();
    session.equal(await question.getByRole("link").count(), 0, "a link to a script");
    await pressOn(page, question.getByRole("button", { name: "Done" }));
    await answered("accept", "the answer to the address");

    await call("think");
    await question.getByLabel("Your reply instead of a model's").fill("forty-two");
    await pressOn(page, question.getByRole("button", { name: "Reply" }));
    await answered("forty-two", "the reply");
}
