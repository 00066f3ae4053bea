// Takes the pictures of the console for the documents, as lossless WebP, which is smaller than PNG.

import { mkdirSync, writeFileSync } from "node:fs";

import { load } from "./pages.mjs";
import { McpClient } from "./session.mjs";

const WIDTH = 1280;
/** No loss. */
const QUALITY = 1;

/** Encodes a picture as WebP with the encoder of the browser. */
async function encode(converter, png) {
    const base64 = await converter.evaluate(
        async ([data, quality]) => {
            const bytes = Uint8Array.from(atob(data), (letter) => letter.codePointAt(0));
            const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
            const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
            canvas.getContext("2d").drawImage(bitmap, 0, 0);
            const encoded = await canvas.convertToBlob({ type: "image/webp", quality });
            const binary = Array.from(new Uint8Array(await encoded.arrayBuffer()), (byte) => String.fromCodePoint(byte));
            return btoa(binary.join(""));
        },
        [png.toString("base64"), QUALITY],
    );
    return Buffer.from(base64, "base64");
}

/** Fills the form of a tool and calls it. */
async function fillForm(page) {
    await page.getByLabel(/^(Variant: shape|类型：shape)/).selectOption({ label: "Circle" });
    await page.getByLabel(/^radius/).fill("12.5");
    await page.getByLabel(/^layer/).fill("3");
    await page.locator(".trial-actions .primary").click();
    await page.getByRole("dialog").locator(".primary").click();
    await page.locator("#trial-result .state.good").waitFor();
    // The part of the page that people look at first.
    await page.locator("#trial").evaluate((trial) => trial.closest("section").scrollIntoView());
}

export async function run(session, { root, gateway, folder, pictures }) {
    mkdirSync(folder, { recursive: true });
    // Without a client, the home page shows the first steps.
    await new McpClient(gateway).connect();
    const base = `${root}/console/`;
    const page = await session.openConsole(await session.request("link"));
    const converter = await (await session.browser.newContext()).newPage();
    for (const { name, lang, theme, path, height, fill } of pictures) {
        await page.setViewportSize({ width: WIDTH, height });
        await page.goto(`${base}preferences?lang=${lang}&theme=${theme}`);
        session.equal(await load(page, base + path), 200, `the status of ${path}`);
        if (path === "calls") {
            await page
                .getByRole("row", { name: /fetch_rates/ })
                .getByRole("link")
                .first()
                .click();
            await page.getByRole("heading", { name: "fetch_rates" }).waitFor();
        }
        if (fill) await fillForm(page);
        const png = await page.screenshot({ animations: "disabled", caret: "hide" });
        const webp = await encode(converter, png);
        session.check(webp.length > 5_000, `${name} is empty`);
        writeFileSync(`${folder}/${name}.webp`, webp);
    }
}
