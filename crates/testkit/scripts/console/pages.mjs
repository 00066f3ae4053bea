// Every page in both languages, both themes and two widths: no accessibility problem, no error, no policy violation, and no
// document that is wider than the window. Screenshots of all of them are kept.

import { McpClient } from "./session.mjs";

const WIDTHS = [360, 1280];
const THEMES = ["light", "dark"];

/** Loads a page and waits until its scripts have built their parts. Returns the status. */
export async function load(page, url) {
    const response = await page.goto(url);
    await page.locator("main#main h1").waitFor();
    if (await page.locator("#trial").count()) await page.locator("#trial .trial").waitFor();
    return response.status();
}

/** On a narrow screen the head of a table is not visible: each cell shows the name of its column. */
async function checkLabels(session, page, label) {
    const unnamed = await page.evaluate(() => {
        const isNarrow = innerWidth < 800;
        const cells = [...document.querySelectorAll(".scroll td:not(:empty)")].filter((cell) => cell.offsetParent);
        const shown = (cell) => getComputedStyle(cell, "::before").content;
        const expected = (cell) => JSON.stringify(cell.closest("table").querySelectorAll("th")[cell.cellIndex].textContent);
        return cells.filter((cell) => shown(cell) !== (isNarrow ? expected(cell) : "none")).map((cell) => `${cell.textContent.slice(0, 40)} (${shown(cell)})`);
    });
    if (unnamed.length > 0) session.report(`${label}: cells without the name of their column: ${unnamed.slice(0, 3).join(", ")}`);
}

async function inspect(session, page, { base, path, status, label, prefix }) {
    session.equal(await load(page, base + path), status, `the status of ${path}`);
    await session.checkOverflow(page, `${label} ${path}`);
    await session.checkAccessibility(page, `${label} ${path}`);
    await checkLabels(session, page, `${label} ${path}`);
    await session.screenshot(page, `${prefix}${path || "home"}-${label}`);
}

/** Visits the pages in one language. */
async function visit(session, { page, base, paths, lang, prefix }) {
    for (const theme of THEMES) {
        await page.goto(`${base}preferences?lang=${lang}&theme=${theme}`);
        await page.locator(`html[data-theme=${theme}][lang^=${lang}]`).waitFor();
        for (const width of WIDTHS) {
            await page.setViewportSize({ width, height: 900 });
            for (const [path, status] of Object.entries(paths)) await inspect(session, page, { base, path, status, label: `${lang} ${theme} ${width}`, prefix });
        }
    }
}

export async function run(session, { root, gateway, key, heldTool, paths, pathsWithoutSession, prefix = "" }) {
    session.tolerate(/Failed to load resource: .* status of (401|403|404)/);
    const base = `${root}/console/`;
    if (key) await (await new McpClient(gateway, key).connect()).call(heldTool, { row: 1 });
    const all = { ...paths };
    const first = await session.openConsole(await session.request("link"));
    // The pages of single calls have generated ids.
    await load(first, `${base}calls`);
    const calls = await first.locator("main tbody td:first-child a").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
    session.check(!key || calls.length > 0, "no calls are recorded");
    for (const link of calls) all[link.replace(/^\.\//, "")] = 200;
    const second = await session.openConsole(await session.request("link"));
    await Promise.all([
        visit(session, { page: first, base, paths: all, lang: "en", prefix }),
        visit(session, { page: second, base, paths: all, lang: "zh", prefix }),
    ]);
    // Pages without a session.
    const bare = await (await session.newContext()).newPage();
    for (const lang of ["en", "zh"]) await visit(session, { page: bare, base, paths: pathsWithoutSession, lang, prefix });
}
