// Accessibility, width and the keyboard.

import assert from "node:assert/strict";

import { object } from "./page.mjs";

const RECIPIENT = object({ address: { type: "string", format: "email" }, name: { type: "string" } }, { required: ["address"] });
const PLAIN = object({ kind: { const: "plain" } }, { required: ["kind"] });
const THEMED = object({ kind: { const: "themed" }, colour: { type: "string" } }, { required: ["kind", "colour"] });

/** A schema with every kind of field. */
const REPORT = object(
    {
        title: {
            type: "string",
            minLength: 1,
            maxLength: 80,
            description: "Shown as the subject line.",
            title: "Subject of the report",
        },
        channel: { enum: ["email", "slack", "webhook"], description: "How to send it." },
        body: { type: "string", description: "Markdown text.", examples: ["# Heading"] },
        when: { type: ["string", "null"], format: "date-time", description: "Time of delivery; null means now." },
        retries: { type: "integer", minimum: 0, maximum: 10, default: 3 },
        token: { type: "string", format: "password" },
        mode: { const: "report" },
        confirm: { type: "boolean" },
        old: { type: "string", deprecated: true, examples: ["a", "b"] },
        recipients: { type: "array", minItems: 1, description: "People who get it.", items: RECIPIENT },
        tags: { type: "array", items: { type: "string" }, uniqueItems: true },
        style: { oneOf: [PLAIN, THEMED], description: "Looks." },
        headers: { type: "object", additionalProperties: { type: "string" } },
        meta: { description: "Anything." },
        point: { type: "array", prefixItems: [{ type: "number" }, { type: "number" }], items: false },
        a_rather_long_property_name_without_any_break_opportunity_in_it_at_all: { type: "string" },
    },
    {
        title: "send_report",
        description: "Creates a report and sends it to the given people.",
        required: ["title", "channel", "recipients", "mode", "confirm"],
    },
);
const REPORT_VALUE = JSON.stringify({
    title: "Weekly",
    channel: "email",
    when: null,
    retries: 3,
    mode: "report",
    confirm: false,
    recipients: [{ address: "a@example.com" }, { address: "b@example.com", name: "B" }],
    tags: ["x", "y"],
    style: { kind: "themed", colour: "red" },
    headers: { "X-A": "1" },
    meta: { a: [1] },
    point: [1, "bad"],
    unknown: 5,
});
const MESSAGES = {
    "/title": "Too short.",
    "/recipients": "Too many.",
    "/recipients/1/address": "No such person.",
    "": "Something is missing.",
    "/style/colour": "Unknown colour.",
};

/** A form with messages has no accessibility problem and is not wider than the window. */
async function checkAppearance(form, { theme, isChinese }) {
    const label = `the form, ${theme}, ${isChinese ? "Chinese" : "English"}`;
    await form.page.emulateMedia({ colorScheme: theme });
    await form.open(REPORT, { value: REPORT_VALUE, isChinese });
    await form.setErrors(Object.entries(MESSAGES).map(([path, message]) => ({ path, message })));
    await form.session.checkAccessibility(form.page, label);
    for (const width of [360, 1280]) {
        await form.page.setViewportSize({ width, height: 800 });
        await form.session.checkOverflow(form.page, `${label}, ${width}`);
        await form.session.screenshot(form.page, `${label}-${width}`);
    }
}

export const cases = {
    "accessibility: light, English": (form) => checkAppearance(form, { theme: "light", isChinese: false }),
    "accessibility: light, Chinese": (form) => checkAppearance(form, { theme: "light", isChinese: true }),
    "accessibility: dark, English": (form) => checkAppearance(form, { theme: "dark", isChinese: false }),
    "accessibility: dark, Chinese": (form) => checkAppearance(form, { theme: "dark", isChinese: true }),

    "the Tab key reaches every control": async (form) => {
        await form.open(REPORT, { value: REPORT_VALUE });
        const count = await form.page.evaluate(() => {
            const all = [...document.querySelectorAll("#place :is(input, select, textarea, button)")];
            return all.filter((element) => element.checkVisibility() && !element.disabled).length;
        });
        await form.page.evaluate(() => {
            document.activeElement?.blur();
            window.visited = new Set();
        });
        for (let presses = 0; presses < count + 2; presses += 1) {
            await form.page.keyboard.press("Tab");
            await form.page.evaluate(() => window.visited.add(document.activeElement));
        }
        const visited = await form.page.evaluate(() => [...window.visited].filter((element) => element.closest("#place")).length);
        assert.equal(visited, count);
    },
};
