// A server whose every text is hostile: all pages show it as text. No script runs, no dialog opens, nothing is blocked by the
// content policy (so nothing was tried), and no page is wider than the window.

import { load } from "./pages.mjs";

const WIDTHS = [360, 1280];

/** Everything that no page may contain: elements and attributes that only a hostile text could have made. */
async function checkMarkup(session, page, label) {
    const found = await page.evaluate(() => {
        const own = new Set(["icon", "chart", "chart waterfall"]);
        const isForeign = (element) => {
            if (element.localName === "script") return !element.src.startsWith(location.origin);
            if (element.localName === "svg") return !own.has(element.getAttribute("class"));
            if (element.localName === "img") return !/^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]*$/.test(element.src);
            if (["iframe", "object", "embed", "base", "math"].includes(element.localName)) return true;
            const attributes = [...element.attributes];
            if (attributes.some(({ name }) => /^on/i.test(name))) return true;
            const link = element.getAttribute("href") ?? element.getAttribute("formaction");
            return link !== null && !/^(data:,$|https?:)/.test(new URL(link, location.href).href);
        };
        return [...document.querySelectorAll("*")].filter(isForeign).map((element) => element.outerHTML.slice(0, 200));
    });
    for (const markup of found) session.report(`${label}: markup of a hostile text: ${markup}`);
}

async function inspect(session, page, label) {
    await checkMarkup(session, page, label);
    // The width of a table must not depend on how long a call took.
    await page.evaluate(() => document.querySelectorAll("td.number").forEach((cell) => (cell.textContent = "123456 min")));
    await session.checkOverflow(page, label);
}

/** The visible part: these pages are too long for a picture of all of it. */
const capture = (session, page, name) => session.screenshot(page, name, { fullPage: false });

/** Opens what is folded, so that it takes space as well. */
const unfold = (page) => page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));

async function callThroughForm(session, page, { base, tool, shown, label }) {
    await load(page, `${base}tools/${encodeURIComponent(tool)}`);
    await unfold(page);
    for (const field of await page.locator("#trial .sf-form input[type=text]:not([readonly])").all()) {
        if (await field.isVisible()) await field.fill("<img src=x onerror=hostileScriptRan()>");
    }
    for (const choice of await page.locator("#trial .sf-form select").all()) {
        if (await choice.isVisible()) await choice.selectOption({ index: 1 });
    }
    await inspect(session, page, `${label} form`);
    await page.locator("#trial .trial-actions button.primary").click();
    await page.locator("dialog button.primary").click();
    await page.locator("#trial-result .state").waitFor();
    const result = await page.locator("#trial-result").innerText();
    session.check(result.includes(shown), `${label} the result of ${tool} does not show the text: ${result.slice(0, 300)}`);
    await inspect(session, page, `${label} result`);
    await capture(session, page, `${label} ${tool.slice(0, 40)}`);
}

export async function run(session, { root, calls, paths, shown }) {
    session.tolerate(/Failed to load resource: .* status of (400|404)/);
    const base = `${root}/console/`;
    const page = await session.openConsole(await session.request("link"));
    await load(page, `${base}servers/hostile`);
    const log = await page.locator("pre.log").innerText();
    session.check(log.includes(shown), `the standard error of the server is not shown: ${log.slice(0, 300)}`);
    await load(page, `${base}tools?source=hostile`);
    const links = await page.locator("main tbody a").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
    const own = links.map((link) => link.replace(/^\.\//, ""));
    for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 900 });
        for (const path of [...paths, ...own]) {
            const status = await load(page, base + path);
            session.check([200, 404].includes(status), `the status of ${path}: ${status}`);
            await unfold(page);
            await inspect(session, page, `${width} ${path.slice(0, 80)}`);
            await capture(session, page, `${width} ${path.slice(0, 80)}`);
        }
        for (const call of calls) await callThroughForm(session, page, { base, ...call, label: `${width}` });
        await load(page, `${base}calls`);
        await inspect(session, page, `${width} calls`);
        const links = await page.locator("main tbody td:first-child a").evaluateAll((all) => all.map((link) => link.href));
        session.check(links.length >= calls.length, `${links.length} calls are recorded`);
        // The newest call is the first one.
        for (const [index, call] of [...calls].reverse().entries()) await inspectRecord(session, page, { link: links[index], ...call, label: `${width}` });
    }
}

/** The page of a recorded call, and the form with its arguments. */
async function inspectRecord(session, page, { link, tool, shown, label }) {
    await load(page, link);
    session.equal(await page.locator("h1").innerText(), tool, "the tool of the call");
    await unfold(page);
    const text = await page.locator("main").innerText();
    session.check(text.includes(shown), `${label} the page of the call of ${tool} does not show the text: ${text.slice(0, 300)}`);
    await inspect(session, page, `${label} the call of ${tool}`);
    await capture(session, page, `${label} call ${tool}`);
    await page.getByRole("link", { name: "Call again with these arguments" }).click();
    await page.locator("#trial .trial").waitFor();
    await inspect(session, page, `${label} the arguments of ${tool}`);
}
