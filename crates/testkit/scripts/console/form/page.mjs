// The form of the console on a page of its own, and what the cases do with it. The modules and styles are those that the hub
// serves, below its content policy. The page is the one that visitors without a session get: no other script runs there.

import assert from "node:assert/strict";

/** A schema of an object with these properties. */
export const object = (properties, more = {}) => ({ type: "object", properties, ...more });

export class FormPage {
    constructor(session, page) {
        Object.assign(this, { session, page });
    }

    /** Opens the page. `window.modules` has the exports of the modules, `#place` the form. */
    static async load(session, root) {
        session.tolerate(/Failed to load resource: .* status of 401/);
        const context = await session.newContext({ permissions: ["clipboard-read", "clipboard-write"] });
        const page = await context.newPage();
        await page.goto(`${root}/console/tools`);
        await page.evaluate(async (assets) => {
            const [form, json] = await Promise.all(["schema_form.js", "json_text.js"].map((name) => import(assets + name)));
            window.modules = { ...form, ...json };
            // A linear congruential generator: the same numbers in every run.
            window.randomNumbers = (seed) => {
                let state = seed;
                return (below) => {
                    state = (state * 1103515245 + 12345) % 2147483648;
                    return Math.floor((state / 2147483648) * below);
                };
            };
            const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: `${assets}schema_form.css` });
            const loaded = new Promise((resolve) => style.addEventListener("load", resolve));
            document.head.append(style);
            await loaded;
            const heading = Object.assign(document.createElement("h1"), { textContent: "Form" });
            const place = Object.assign(document.createElement("div"), { id: "place" });
            const main = Object.assign(document.createElement("main"), { id: "main" });
            main.append(heading, place);
            document.body.replaceChildren(main);
        }, `${root}/console/assets/`);
        return new FormPage(session, page);
    }

    /** Shows the form of a schema. Texts of numbers in a schema are exact if the schema is JSON text. */
    async open(schema, { value, isChinese } = {}) {
        const schemaText = typeof schema === "string" ? schema : JSON.stringify(schema);
        await this.page.evaluate(
            ([schema, value, isChinese]) => {
                window.changes = 0;
                const labels = isChinese ? window.modules.LABELS_ZH : undefined;
                window.form = window.modules.createForm(schema, { value, labels, onChange: () => (window.changes += 1) });
                document.getElementById("place").replaceChildren(window.form.element);
            },
            [schemaText, value, isChinese],
        );
    }

    value() {
        return this.page.evaluate(() => window.form.getValue());
    }

    setValue(text) {
        return this.page.evaluate((value) => window.form.setValue(value), text);
    }

    /** Shows messages. Returns those without a place. */
    setErrors(list) {
        return this.page.evaluate((errors) => window.form.setErrors(errors), list);
    }

    problems() {
        return this.page.evaluate(() => window.form.getProblems());
    }

    /** The input of the field with this label. */
    field(name) {
        const label = `> .sf-field > .sf-head > label > .sf-label-text:text-is(${JSON.stringify(name)})`;
        return this.page.locator(`.sf-slot:has(${label}) > .sf-field > .sf-body .sf-input`).first();
    }

    button(name) {
        return this.page.getByRole("button", { name, exact: true });
    }

    checkbox(name) {
        return this.page.getByRole("checkbox", { name, exact: true });
    }

    /** The choice between the variants of a union. */
    variant(name) {
        return this.page.getByRole("combobox", { name: `Variant: ${name}`, exact: true });
    }

    /** Checks the value of the form, as text. */
    async expect(text) {
        assert.equal(await this.value(), text);
    }

    /** Sets values and checks that the form returns them unchanged. */
    async roundTrip(schema, ...texts) {
        await this.open(schema);
        for (const text of texts) {
            assert.equal(await this.setValue(text), true, `refused ${text.slice(0, 80)}`);
            const isSame = await this.page.evaluate((value) => {
                const { equalJson, parseJson } = window.modules;
                return equalJson(parseJson(window.form.getValue()), parseJson(value), true);
            }, text);
            if (!isSame) assert.equal(await this.value(), text);
        }
    }
}
