// Single values: texts, numbers, choices, null, defaults, and whether a property is sent.

import assert from "node:assert/strict";

import { object } from "./page.mjs";

export const cases = {
    "texts: a required one is sent, an optional one only if it is typed or chosen": async (form) => {
        await form.open(object({ a: { type: "string" }, b: { type: "string" } }, { required: ["a"] }));
        await form.expect('{"a":""}');
        await form.field("b").click();
        await form.page.keyboard.type("hi");
        await form.expect('{"a":"","b":"hi"}');
        assert.equal(await form.checkbox("Send: b").isChecked(), true);
        await form.field("b").press("Control+a");
        await form.page.keyboard.press("Delete");
        await form.expect('{"a":""}');
        await form.checkbox("Send: b").focus();
        await form.page.keyboard.press("Space");
        await form.expect('{"a":"","b":""}');
        await form.field("b").pressSequentially("x");
        await form.field("b").press("Backspace");
        await form.expect('{"a":"","b":""}');
        await form.field("b").pressSequentially("keep");
        await form.checkbox("Send: b").press("Space");
        await form.expect('{"a":""}');
        assert.equal(await form.checkbox("Send: b").evaluate((element) => element === document.activeElement), true);
        await form.checkbox("Send: b").press("Space");
        await form.expect('{"a":"","b":"keep"}');
        assert.ok((await form.page.evaluate(() => window.changes)) > 5);
    },

    "texts: a required one that a value does not have stays missing until it is typed": async (form) => {
        await form.open(object({ a: { type: "string" } }, { required: ["a"] }));
        await form.setValue("{}");
        await form.expect("{}");
        assert.equal(await form.checkbox("Send: a").isVisible(), false);
        await form.field("a").pressSequentially("x");
        await form.expect('{"a":"x"}');
        assert.equal(await form.checkbox("Send: a").isVisible(), false);
    },

    "a required list that a value does not have is filled in": async (form) => {
        await form.open(object({ l: { type: "array", items: { type: "string" } } }, { required: ["l"] }));
        await form.setValue("{}");
        await form.expect("{}");
        await form.checkbox("Fill in: l").click();
        await form.expect('{"l":[]}');
        assert.equal(await form.checkbox("Fill in: l").isVisible(), false);
    },

    "numbers are sent as typed": async (form) => {
        await form.open(object({ n: { type: "number" }, i: { type: "integer" } }, { required: ["n"] }));
        await form.expect("{}");
        for (const text of ["9007199254740993", "1e400", "1.0", "-0", "0.10"]) {
            await form.field("n").fill(text);
            await form.expect(`{"n":${text}}`);
        }
        await form.field("n").fill("1.");
        await form.expect("{}");
        assert.deepEqual(await form.problems(), [
            { path: "/n", message: "Not a number. Write it as in JSON, for example 12, -0.5 or 1e9." },
        ]);
        assert.equal(await form.field("n").getAttribute("aria-invalid"), "true");
        await form.field("n").fill("1.5");
        assert.deepEqual(await form.problems(), []);
        assert.equal(await form.field("n").getAttribute("aria-invalid"), null);
    },

    "booleans, enum, const": async (form) => {
        await form.open(
            object(
                {
                    b: { type: "boolean" },
                    r: { type: "boolean" },
                    e: { enum: ["x", "y"] },
                    m: { enum: [1, "1", null, ""] },
                    c: { const: "fixed" },
                    k: { const: { a: [1] } },
                },
                { required: ["r", "c"] },
            ),
        );
        await form.expect('{"r":false,"c":"fixed"}');
        await form.field("b").selectOption("true");
        await form.field("e").selectOption("y");
        await form.field("m").selectOption('"1"');
        await form.checkbox("Send: k").check();
        await form.expect('{"b":true,"r":false,"e":"y","m":"1","c":"fixed","k":{"a":[1]}}');
        await form.field("b").selectOption("not set");
        await form.field("m").selectOption("null");
        await form.expect('{"r":false,"e":"y","m":null,"c":"fixed","k":{"a":[1]}}');
    },

    "exact numbers in enum, const and default": async (form) => {
        const properties = '{"e":{"enum":[9007199254740993,1.0]},"c":{"const":1e400},"d":{"type":"number","default":1.50}}';
        await form.open(`{"type":"object","properties":${properties},"required":["e","c"]}`);
        await form.expect('{"c":1e400,"d":1.50}');
        await form.field("e").selectOption("9007199254740993");
        await form.expect('{"e":9007199254740993,"c":1e400,"d":1.50}');
        await form.setValue('{"e":1,"c":1e400}');
        await form.expect('{"e":1,"c":1e400}');
    },

    "null: type list, anyOf, OpenAPI nullable": async (form) => {
        await form.open(
            object({
                a: { type: ["string", "null"] },
                b: { anyOf: [{ type: "integer" }, { type: "null" }], default: null },
                c: { type: "object", nullable: true, properties: { x: { type: "string" } } },
                d: { type: ["boolean", "null"] },
            }),
        );
        await form.expect("{}");
        await form.checkbox("null: a").check();
        await form.expect('{"a":null}');
        await form.checkbox("null: a").uncheck();
        await form.expect('{"a":""}');
        await form.checkbox("Send: a").uncheck();
        await form.checkbox("null: b").check();
        await form.checkbox("null: c").check();
        await form.field("d").selectOption("null");
        await form.expect('{"b":null,"c":null,"d":null}');
        await form.checkbox("null: b").uncheck();
        await form.field("b").fill("5");
        await form.checkbox("null: c").uncheck();
        await form.field("x").fill("y");
        await form.expect('{"b":5,"c":{"x":"y"},"d":null}');
        await form.roundTrip(object({ a: { type: ["string", "null"] } }), '{"a":null}', '{"a":""}', "{}");
    },

    "defaults are prefilled if they have the right type": async (form) => {
        await form.open(
            object(
                {
                    a: { type: "string", default: "x" },
                    b: { type: "integer", default: "5" },
                    c: { type: "array", items: { type: "string" }, default: ["p", "q"] },
                    o: object({ z: { type: "number", default: 3 } }),
                },
                { required: ["o"] },
            ),
        );
        await form.expect('{"a":"x","c":["p","q"],"o":{"z":3}}');
        await form.checkbox("Send: a").uncheck();
        await form.expect('{"c":["p","q"],"o":{"z":3}}');
    },

    "formats do not change the text": async (form) => {
        const formats = { d: "date", t: "date-time", e: "email", u: "uri", p: "password" };
        const properties = Object.entries(formats).map(([name, format]) => [name, { type: "string", format }]);
        await form.open(object({ ...Object.fromEntries(properties), w: { type: "string", writeOnly: true } }));
        const texts = { d: "not a date", t: "2024-02-29T23:59:60.123456+09:30", e: " Ä@Ö.de ", u: "x y", p: " s ", w: "w" };
        for (const [name, text] of Object.entries(texts)) await form.field(name).fill(text);
        await form.expect(JSON.stringify(texts));
        const attributes = {
            p: ["type", "password"],
            w: ["type", "password"],
            e: ["inputmode", "email"],
            d: ["placeholder", "2025-01-31"],
        };
        for (const [name, [attribute, expected]] of Object.entries(attributes)) {
            assert.equal(await form.field(name).getAttribute(attribute), expected);
        }
    },

    "line breaks are kept: of a value, pasted, and typed with Shift+Enter": async (form) => {
        await form.roundTrip(
            object({ a: { type: "string" }, p: { type: "string", format: "password" } }),
            JSON.stringify({ a: "x\r\ny\rz\n", p: "a\nb" }),
            '{"a":"\\ud800\\u0000\\u2028"}',
        );
        await form.open(object({ a: { type: "string" } }));
        await form.page.evaluate(() => navigator.clipboard.writeText("one\ntwo"));
        await form.field("a").pressSequentially("[]");
        await form.field("a").press("ArrowLeft");
        await form.field("a").press("Control+v");
        await form.page.keyboard.type("!");
        await form.expect('{"a":"[one\\ntwo!]"}');
        await form.open(object({ a: { type: "string" } }));
        await form.field("a").pressSequentially("x");
        await form.page.keyboard.press("Shift+Enter");
        await form.page.keyboard.type("y");
        await form.expect('{"a":"x\\ny"}');
    },

    "examples: placeholder and datalist": async (form) => {
        await form.open(object({ a: { type: "string", examples: ["one", "two"] }, n: { type: "number", examples: [7] } }));
        assert.equal(await form.field("a").getAttribute("placeholder"), "one");
        assert.equal(await form.page.locator("datalist option").count(), 2);
        assert.equal(await form.field("n").getAttribute("placeholder"), "7");
    },
};
