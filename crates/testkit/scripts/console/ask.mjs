// The page "Ask" without a model: an answer with its steps, in both languages, and a change that is confirmed first.

import { pressOn } from "./session.mjs";

/** Sends a request by keyboard. Returns the part of the conversation that it makes. */
async function ask(page, request) {
    const turns = page.locator(".conversation > section");
    const before = await turns.count();
    await page.locator("#ask-request").fill(request);
    await page.keyboard.press("Enter");
    const turn = turns.nth(before);
    await turn.getByRole("heading", { name: request }).waitFor();
    return turn;
}

async function calculate(session, page, request) {
    const turn = await ask(page, request);
    await turn.locator("li .state.good").waitFor();
    await turn.locator(".answer", { hasText: "42" }).waitFor();
    await turn.locator("p.muted", { hasText: /Working|处理中/ }).waitFor({ state: "detached" });
    session.equal(await turn.locator("li a").allInnerTexts(), ["calculate"], `the steps of ${request}`);
    session.check(
        await page.locator("#ask-request").evaluate((field) => field === document.activeElement),
        "the field has the focus",
    );
    return turn;
}

/** Asks for a deletion and answers the question. Returns the number of calls that the server has got. */
async function remove(session, page, button) {
    const turn = await ask(page, "delete the note `groceries`");
    const choice = turn.getByRole("button", { name: button });
    await choice.waitFor();
    session.check((await turn.innerText()).includes("groceries"), "the question has the arguments");
    await session.checkAccessibility(page, "the question of the agent");
    const before = (await session.request("calls")).count;
    await pressOn(page, choice);
    await turn.locator("p.muted", { hasText: "Working" }).waitFor({ state: "detached" });
    session.equal(await turn.getByRole("button").count(), 0, "the buttons after the answer");
    return (await session.request("calls")).count - before;
}

export async function run(session, { root }) {
    const page = await session.openConsole(await session.request("link"));
    await page.goto(`${root}/console/ask`);
    // The plan shows what would run, and runs nothing.
    await page.locator("#ask-request").fill("delete the note `groceries`");
    await pressOn(page, page.getByRole("button", { name: "Show the plan" }));
    const plan = page.locator(".plan");
    await plan.getByText("groceries", { exact: false }).first().waitFor();
    session.check(/may change something/.test(await plan.innerText()), "the plan names the change");
    await session.checkAccessibility(page, "a plan");
    session.equal((await session.request("calls")).count, 0, "calls after a plan");
    const turn = await calculate(session, page, "calculate 2*21");
    session.equal(await plan.innerText(), "", "the plan after the request");
    session.equal(await remove(session, page, "Do not run"), 0, "calls after a refusal");
    session.equal(await remove(session, page, "Run it"), 1, "calls after a confirmation");
    // A step leads to its call.
    await turn.locator("li a").click();
    await page.getByRole("heading", { name: "calculate" }).waitFor();
    session.check((await page.locator("main").innerText()).includes("42"), "the call has the result");
    await page.goto(`${root}/console/preferences?lang=zh&theme=light`);
    await page.goto(`${root}/console/ask`);
    await calculate(session, page, "计算 2*21");
}
