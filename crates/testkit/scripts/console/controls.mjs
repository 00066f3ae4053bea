// Shows that the checks of the other scenarios find what they look for: each kind of problem is made on purpose, and its
// finding is removed. What is left is reported.

export async function run(session) {
    const page = await session.openConsole(await session.request("link"));
    const expect = async (pattern, cause) => {
        await cause();
        const deadline = Date.now() + 30_000;
        let index;
        while ((index = session.findings.findIndex((finding) => pattern.test(finding))) < 0) {
            if (Date.now() > deadline) throw new Error(`no finding matches ${pattern}: ${JSON.stringify(session.findings)}`);
            await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
        }
        session.findings.splice(0);
    };
    const insert = (markup) => () => page.evaluate((text) => document.getElementById("main").insertAdjacentHTML("beforeend", text), markup);
    await expect(/blocked by the content policy: script-src-attr/, insert("<img src='data:,' onerror='hostileScriptRan()'>"));
    await expect(/blocked by the content policy: img-src/, insert("<img src='http://127.0.0.1:9/x.png' alt=''>"));
    await expect(/blocked by the content policy: style-src/, insert("<p style='color: red'>x</p>"));
    await page.reload();
    await expect(/: console: on purpose/, () => page.evaluate(() => console.error("on purpose")));
    await expect(/Error: on purpose/, () => page.evaluate(() => void setTimeout(() => { throw new Error("on purpose"); })));
    await expect(/a dialog opened: on purpose/, () => page.evaluate(() => void setTimeout(() => alert("on purpose"))));
    await expect(/axe image-alt/, async () => {
        await page.evaluate(() => document.getElementById("main").append(document.createElement("img")));
        await session.checkAccessibility(page, "control");
    });
    await expect(/axe color-contrast/, async () => {
        await page.evaluate(() => {
            const text = document.createElement("p");
            text.textContent = "faint";
            text.style.color = "#eee";
            document.getElementById("main").append(text);
        });
        await page.emulateMedia({ colorScheme: "light" });
        await session.checkAccessibility(page, "control");
    });
    await expect(/px wider than the window: div/, async () => {
        await page.evaluate(() => {
            const wide = document.createElement("div");
            wide.textContent = "wide";
            wide.style.width = "4000px";
            document.getElementById("main").append(wide);
        });
        await session.checkOverflow(page, "control");
    });
    // Without the content policy the handler of a hostile text would run.
    const context = await session.newContext({ bypassCSP: true });
    const open = await context.newPage();
    await open.goto(await session.request("link"));
    await expect(/a script of a hostile text ran/, () =>
        open.evaluate(() => document.body.insertAdjacentHTML("beforeend", "<img src='data:,' onerror='hostileScriptRan()'>")),
    );
}
