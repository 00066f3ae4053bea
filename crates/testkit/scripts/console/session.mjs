// What all scenarios share: browser contexts in which every problem becomes a finding, and checks of a page.

/** A condition that does not become true within this time fails the scenario. */
export const WAIT_MS = 30_000;

/** The function that hostile texts try to call. */
const HOSTILE_FUNCTION = "hostileScriptRan";
const POLICY_FUNCTION = "reportPolicyViolation";

export class Session {
    constructor({ browser, axeSource, findings, request, folder }) {
        Object.assign(this, { browser, axeSource, findings, request, folder });
        this.tolerated = [];
    }

    report(text) {
        if (!this.tolerated.some((pattern) => pattern.test(text))) this.findings.push(text);
    }

    /** Findings that match are expected from now on, such as the status 401 of a page. */
    tolerate(pattern) {
        this.tolerated.push(pattern);
    }

    /** A browser context of its own. Errors, dialogs, policy violations and scripts of hostile texts become findings. */
    async newContext(options = {}) {
        const context = await this.browser.newContext({ locale: "en-US", reducedMotion: "reduce", ...options });
        context.setDefaultTimeout(WAIT_MS);
        const where = (page) => page?.url().replace(/open\/\w+/, "open/…") ?? "";
        await context.exposeBinding(POLICY_FUNCTION, ({ page }, text) => this.report(`${where(page)}: blocked by the content policy: ${text}`));
        await context.exposeBinding(HOSTILE_FUNCTION, ({ page }) => this.report(`${where(page)}: a script of a hostile text ran`));
        await context.addInitScript((name) => {
            document.addEventListener("securitypolicyviolation", (event) => {
                window[name](`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`);
            });
        }, POLICY_FUNCTION);
        context.on("console", (message) => {
            const isPolicy = /content security policy|refused to/i.test(message.text());
            if (message.type() === "error" || isPolicy) {
                this.report(`${where(message.page())}: console: ${message.text()} (${where({ url: () => message.location().url })})`);
            }
        });
        context.on("weberror", (error) => this.report(`${where(error.page())}: ${error.error().stack}`));
        context.on("dialog", (dialog) => {
            this.report(`${where(dialog.page())}: a dialog opened: ${dialog.message()}`);
            dialog.dismiss().catch(() => {});
        });
        return context;
    }

    /** A page with a session of the console, opened with a one-time link. */
    async openConsole(link, options = {}) {
        const context = await this.newContext(options);
        const page = await context.newPage();
        await page.goto(link);
        await page.locator("main#main h1").waitFor();
        return page;
    }

    /** Fails the scenario if a condition is false. */
    check(condition, text) {
        if (!condition) throw new Error(text);
    }

    /** Compares two values, as JSON. */
    equal(found, expected, text) {
        const [left, right] = [JSON.stringify(found), JSON.stringify(expected)];
        this.check(left === right, `${text}: expected ${right}, found ${left}`);
    }

    /** Reports accessibility problems of a page. */
    async checkAccessibility(page, label) {
        if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(this.axeSource);
        const { violations } = await page.evaluate(() => window.axe.run());
        for (const { id, nodes } of violations) {
            const examples = nodes.slice(0, 3).map((node) => `${node.target.join(" ")}: ${node.failureSummary.split("\n").slice(1, 2).join("").trim()}`);
            this.report(`${label}: axe ${id}: ${examples.join(" | ")}`);
        }
    }

    /** Reports a document that is wider than the window. */
    async checkOverflow(page, label) {
        const excess = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        if (excess <= 0) return;
        const widest = await page.evaluate(() => {
            const right = (element) => element.getBoundingClientRect().right;
            // Elements inside a scrolling part do not widen the document.
            const scrolls = (element) => element.parentElement?.closest(".scroll, pre");
            const wide = [...document.body.querySelectorAll("*")].filter((element) => right(element) > innerWidth && !scrolls(element));
            return wide.slice(-3).map((element) => `${element.localName}.${element.className}`);
        });
        this.report(`${label}: the document is ${excess} px wider than the window: ${widest.join(", ")}`);
    }

    async screenshot(page, name, { fullPage = true } = {}) {
        await page.screenshot({ path: `${this.folder}/${name.replace(/[^a-z0-9]+/gi, "_")}.png`, fullPage });
    }

    /** Takes screenshots of all open pages after a failure. */
    async captureFailure() {
        const pages = this.browser.contexts().flatMap((context) => context.pages());
        for (const [index, page] of pages.entries()) {
            this.findings.push(`page ${index} was at ${page.url().replace(/open\/\w+/, "open/…")}`);
            await this.screenshot(page, `failure-${index}`).catch(() => {});
        }
    }
}

/** Presses Tab until an element has the focus: it can be reached with the keyboard. */
export async function tabTo(page, locator) {
    await locator.waitFor();
    for (let presses = 0; presses < 150; presses += 1) {
        if (await locator.evaluate((element) => element === document.activeElement)) return;
        await page.keyboard.press("Tab");
    }
    throw new Error(`the keyboard does not reach ${locator}`);
}

/** Moves the focus to an element with the Tab key and presses Enter. */
export async function pressOn(page, locator) {
    await tabTo(page, locator);
    await page.keyboard.press("Enter");
}

/** Loads a page and waits until its event stream is open: changes from now on are announced to it. */
export async function gotoLive(page, url) {
    const stream = page.waitForResponse((response) => response.url().includes("/api/v1/events"));
    await page.goto(url);
    await stream;
}

/** Marks a document, so that `isSameDocument` tells whether it was loaded again. */
export const markDocument = (page) => page.evaluate(() => void (window.documentMark = true));
export const isSameDocument = (page) => page.evaluate(() => window.documentMark === true);

/** A minimal MCP client. A hub without keys needs none. */
export class McpClient {
    constructor(root, key) {
        this.url = `${root}/mcp`;
        this.headers = {
            accept: "application/json, text/event-stream",
            ...(key ? { authorization: `Bearer ${key}` } : {}),
            "content-type": "application/json",
        };
        this.id = 0;
    }

    async send(message) {
        const body = JSON.stringify({ jsonrpc: "2.0", ...message });
        const response = await fetch(this.url, { method: "POST", headers: this.headers, body });
        const session = response.headers.get("mcp-session-id");
        if (session) this.headers["mcp-session-id"] = session;
        const text = await response.text();
        if (message.id === undefined) return undefined;
        const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
        const events = text.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5));
        const messages = (isStream ? events : [text]).filter((part) => part.trim() !== "").map((part) => JSON.parse(part));
        return messages.find(({ id }) => id === message.id);
    }

    async connect() {
        const clientInfo = { name: "browser-test", version: "1" };
        const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
        await this.send({ id: (this.id += 1), method: "initialize", params });
        this.headers["mcp-protocol-version"] = "2025-11-25";
        await this.send({ method: "notifications/initialized" });
        return this;
    }

    /** The result of a call. */
    async call(name, args) {
        const response = await this.send({ id: (this.id += 1), method: "tools/call", params: { name, arguments: args } });
        return response.result ?? response.error;
    }
}
