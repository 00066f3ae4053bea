// Language, theme, keyboard shortcuts and the skip link. A change of language or theme stays on the page.

import { pressOn, tabTo } from "./session.mjs";

const background = (page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);

export async function run(session, { root }) {
    const base = `${root}/console/`;
    const page = await session.openConsole(await session.request("link"), { colorScheme: "light" });
    for (const path of ["tools?q=add+numbers&source=sheets", "tools/calculate", "servers/sheets", "calls?status=failed&text=a+b%26c"]) {
        await page.goto(base + path);
        const address = new URL(page.url());
        const query = address.searchParams.toString();
        const stays = (name) => {
            const now = new URL(page.url());
            session.equal([now.pathname, now.searchParams.toString()], [address.pathname, query], `${path}: the address after ${name}`);
        };
        await pressOn(page, page.getByRole("link", { name: "中文" }));
        await page.locator("html[lang=zh-CN]").waitFor();
        await page.getByRole("link", { name: "首页" }).waitFor();
        stays("a change of the language");
        await pressOn(page, page.getByRole("link", { name: "深色" }));
        await page.locator("html[data-theme=dark]").waitFor();
        stays("a change of the theme");
        const dark = await background(page);
        await page.getByRole("link", { name: "浅色" }).click();
        await page.locator("html[data-theme=light]").waitFor();
        session.check((await background(page)) !== dark, "the themes differ");
        await page.getByRole("link", { name: "English" }).click();
        await page.locator("html[lang=en]").waitFor();
        stays("all changes");
    }
    // The preference of the system counts with `auto`.
    await page.getByRole("link", { name: "Auto" }).click();
    await page.locator("html[data-theme=auto]").waitFor();
    const light = await background(page);
    await page.emulateMedia({ colorScheme: "dark" });
    session.check((await background(page)) !== light, "the theme of the system");

    const shortcuts = { h: "", q: "ask", t: "tools", s: "servers", c: "calls", w: "waiting", i: "skills", p: "profiles", l: "clients", k: "access", a: "audit", e: "settings" };
    const offered = await page.locator("a[data-shortcut]").evaluateAll((links) => links.map((link) => link.dataset.shortcut));
    session.equal(offered.sort(), Object.keys(shortcuts).sort(), "the shortcuts");
    for (const [key, path] of Object.entries(shortcuts)) {
        await page.keyboard.press("g");
        await page.keyboard.press(key);
        await page.waitForURL(base + path);
        await page.locator("nav a[aria-current=page]").waitFor();
    }
    await page.goto(`${base}tools`);
    await page.keyboard.press("/");
    const search = page.getByRole("searchbox", { name: "What should be done?" });
    session.check(await search.evaluate((element) => element === document.activeElement), "`/` moves to the search field");
    await page.keyboard.type("gt/");
    session.equal(await search.inputValue(), "gt/", "shortcuts are off while typing");
    session.equal(page.url(), `${base}tools`, "shortcuts are off while typing");

    await page.goto(`${base}calls`);
    await tabTo(page, page.getByRole("link", { name: "Skip to content" }));
    await page.keyboard.press("Enter");
    session.check(await page.evaluate(() => document.activeElement.id === "main"), "the skip link moves to the content");
    await page.goto(`${base}preferences?lang=zh&back=//example.com/`);
    session.equal(page.url(), base, "the address after a preference with a foreign link");
}
