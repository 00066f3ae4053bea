// Messages beside the fields, values from outside, and labels.

import assert from "node:assert/strict";

import { object } from "./page.mjs";

export const cases = {
    "messages: at the nearest field, with aria-invalid, until it is edited; others are returned": async (form) => {
        await form.open(
            object({
                a: { type: "string", description: "About a" },
                l: { type: "array", items: object({ "x/y~z": { type: "string" } }) },
                u: { anyOf: [object({ q: { type: "string" } }), { type: "string" }] },
            }),
            { value: '{"a":"1","l":[{"x/y~z":"v"}],"u":{"q":"1"}}' },
        );
        const homeless = await form.setErrors([
            { path: "/a", message: "<b>bad</b>" },
            { path: "/l/0/x~1y~0z", message: "deep" },
            { path: "/l/7/k", message: "far" },
            { path: "/nope", message: "m" },
            { path: "", message: "whole" },
            { path: "zzz", message: "m" },
            { path: "/u/q", message: "in union" },
            { path: "/u", message: "at union" },
        ]);
        assert.deepEqual(homeless, [
            { path: "/nope", message: "m" },
            { path: "zzz", message: "m" },
        ]);
        assert.equal(await form.field("a").getAttribute("aria-invalid"), "true");
        const described = await form.field("a").evaluate((input) => {
            const ids = input.getAttribute("aria-describedby").split(" ");
            return ids.map((id) => document.getElementById(id).textContent);
        });
        assert.deepEqual(described, ["About a", "<b>bad</b>"]);
        assert.equal(await form.field("x/y~z").getAttribute("aria-invalid"), "true");
        assert.equal(await form.field("q").getAttribute("aria-invalid"), "true");
        const shown = await form.page.locator(".sf-error:visible").allTextContents();
        assert.deepEqual(shown.sort(), ["/7/k: far", "<b>bad</b>", "at union", "deep", "in union", "whole"].sort());
        await form.field("a").pressSequentially("2");
        assert.equal(await form.field("a").getAttribute("aria-invalid"), null);
        assert.deepEqual(await form.setErrors([]), []);
        assert.equal(await form.page.locator(".sf-error:visible").count(), 0);
        assert.equal(await form.page.locator("[aria-invalid]").count(), 0);
    },

    "messages: at a group that is not sent, and at a root of JSON": async (form) => {
        await form.open(object({ o: object({ a: { type: "string" } }), c: { const: 1 } }));
        const homeless = await form.setErrors(
            Object.entries({ "/o/a": "m", "/c": "n" }).map(([path, message]) => ({ path, message })),
        );
        assert.deepEqual(homeless, []);
        assert.deepEqual(await form.page.locator(".sf-error:visible").allTextContents(), ["/a: m", "n"]);
        await form.open("true");
        assert.deepEqual(await form.setErrors([{ path: "/o/a", message: "m" }]), []);
    },

    "values: text that is not JSON changes nothing, and no text resets the form": async (form) => {
        await form.open(object({ a: { type: "string", default: "d" } }), { value: '{"a":"1"}' });
        assert.equal(await form.setValue("{"), false);
        await form.expect('{"a":"1"}');
        assert.equal(await form.page.evaluate(() => window.form.setValue()), true);
        await form.expect('{"a":"d"}');
        assert.equal(await form.page.evaluate(() => window.form.getValue(2)), '{\n  "a": "d"\n}');
    },

    "Chinese labels": async (form) => {
        await form.open(object({ a: { type: "string", maxLength: 5 }, l: { type: "array" } }, { required: ["l", "a"] }), {
            isChinese: true,
        });
        assert.equal(await form.page.getByRole("button", { name: "添加一项：l" }).count(), 1);
        assert.match(await form.page.locator(".sf-hint").first().textContent(), /最多 5 个字符/);
        const keys = (name) =>
            form.page.evaluate((name) => [window.modules[name], window.modules[name].types].map(Object.keys), name);
        assert.deepEqual(await keys("LABELS_EN"), await keys("LABELS_ZH"));
    },

    "two forms on a page have no ids in common": async (form) => {
        const ids = await form.page.evaluate(() => {
            const schema = { type: "object", properties: { a: { type: "string", description: "x" } } };
            const place = document.getElementById("place");
            place.replaceChildren(window.modules.createForm(schema).element, window.modules.createForm(schema, {}).element);
            return [...place.querySelectorAll("[id]")].map((element) => element.id);
        });
        assert.equal(new Set(ids).size, ids.length);
    },
};
