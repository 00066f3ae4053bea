// Objects, arrays, unions, references, recursion and conditions.

import assert from "node:assert/strict";

import { object } from "./page.mjs";

export const cases = {
    "many parameters: required ones first, optional ones folded with a filter": async (form) => {
        const names = Array.from({ length: 200 }, (_, index) => `p${index}`);
        const properties = Object.fromEntries(names.map((name) => [name, { type: "string", maxLength: 9, description: `Sets ${name === "p150" ? "the color" : "something"}` }]));
        const schema = object(properties, { required: ["p7", "p199"] });
        await form.open(schema);
        const visible = () => form.page.locator("#place .sf-slot .sf-slot").filter({ visible: true }).count();
        const fold = form.page.getByText("Optional fields (198)");
        assert.equal(await visible(), 2);
        await form.field("p199").fill("last");
        await fold.click();
        const filter = form.page.getByRole("searchbox", { name: "Find an optional field" });
        // It finds a field that was not shown yet, by its description.
        await filter.fill("COLOR");
        await form.page.getByText("1 of 198 fields match.").waitFor();
        assert.equal(await visible(), 3);
        await form.field("p150").fill("red");
        await form.expect('{"p7":"","p199":"last","p150":"red"}');
        // A field that does not match keeps its value, and is shown when it has an error.
        await filter.fill("p42");
        assert.equal(await visible(), 3);
        await form.expect('{"p7":"","p199":"last","p150":"red"}');
        await fold.click();
        await form.page.evaluate(() => window.form.setErrors([{ path: "/p150", message: "too red" }]));
        await form.page.getByText("too red").waitFor();
        assert.equal(await filter.inputValue(), "");
        // A value of an optional parameter is not hidden.
        await form.open(schema, { value: '{"p7":"x","p3":"y"}' });
        assert.ok(await form.field("p3").isVisible());
        await form.open(object(Object.fromEntries(names.slice(0, 20).map((name) => [name, { type: "string" }]))));
        assert.equal(await form.page.locator("#place details:visible").count(), 0);
        await form.open(schema, { isChinese: true });
        await form.page.getByText("可选字段（198）").waitFor();
    },

    "nested optional objects": async (form) => {
        await form.open(object({ o: object({ p: object({ q: { type: "string" } }, { required: ["q"] }) }) }));
        await form.expect("{}");
        await form.checkbox("Send: o").check();
        await form.expect('{"o":{}}');
        await form.checkbox("Send: p").check();
        await form.field("q").fill("deep");
        await form.expect('{"o":{"p":{"q":"deep"}}}');
        await form.checkbox("Send: o").uncheck();
        await form.expect("{}");
        await form.checkbox("Send: o").check();
        await form.expect('{"o":{"p":{"q":"deep"}}}');
    },

    "arrays: add, type, move, remove by keyboard": async (form) => {
        await form.open(object({ list: { type: "array", items: { type: "string" } } }, { required: ["list"] }));
        await form.expect('{"list":[]}');
        await form.button("Add item: list").focus();
        for (const word of ["a", "b", "c"]) {
            await form.page.keyboard.press("Enter");
            await form.page.keyboard.type(word);
            await form.button("Add item: list").focus();
        }
        await form.expect('{"list":["a","b","c"]}');
        await form.button("Move up: list: Item 3").press("Enter");
        await form.expect('{"list":["a","c","b"]}');
        assert.equal(await form.page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Move up: list: Item 2");
        await form.page.keyboard.press("Enter");
        await form.expect('{"list":["c","a","b"]}');
        await form.button("Remove: list: Item 2").press("Enter");
        await form.expect('{"list":["c","b"]}');
        assert.equal(await form.page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Remove: list: Item 2");
        await form.field("Item 2").fill("B");
        await form.expect('{"list":["c","B"]}');
    },

    "arrays of objects and of numbers; an empty item is null": async (form) => {
        await form.open(
            object(
                {
                    l: { type: "array", minItems: 1, items: object({ n: { type: "integer" } }, { required: ["n"] }) },
                    m: { type: "array", items: { type: "number" } },
                },
                { required: ["l", "m"] },
            ),
        );
        await form.expect('{"l":[{}],"m":[]}');
        await form.field("n").fill("1");
        await form.button("Add item: m").click();
        await form.expect('{"l":[{"n":1}],"m":[null]}');
        await form.page.keyboard.type("2.50");
        await form.expect('{"l":[{"n":1}],"m":[2.50]}');
    },

    "tuples: prefixItems and the array form of items": async (form) => {
        await form.open(
            object(
                {
                    t: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }], items: false },
                    o: { type: "array", items: [{ type: "boolean" }], additionalItems: { type: "string" } },
                },
                { required: ["t", "o"] },
            ),
        );
        await form.expect('{"t":["",null],"o":[false]}');
        assert.equal(await form.button("Add item: t").isVisible(), false);
        await form.button("Add item: o").click();
        await form.page.keyboard.type("s");
        await form.expect('{"t":["",null],"o":[false,"s"]}');
        await form.setValue('{"t":["a"],"o":[]}');
        await form.expect('{"t":["a"],"o":[]}');
        await form.button("Add item: t").click();
        await form.page.keyboard.type("4");
        await form.expect('{"t":["a",4],"o":[]}');
        await form.roundTrip(
            object({ t: { type: "array", prefixItems: [{ type: "string" }], items: false } }),
            '{"t":[1,2,{"a":3}]}',
        );
    },

    "unions: choose, carry over, detect": async (form) => {
        const schema = object({
            s: {
                oneOf: [
                    object(
                        { kind: { const: "circle" }, name: { type: "string" }, r: { type: "number" } },
                        { required: ["kind", "r"] },
                    ),
                    object(
                        { kind: { const: "box" }, name: { type: "string" }, w: { type: "number" } },
                        { required: ["kind", "w"] },
                    ),
                    { title: "Plain", type: "string" },
                ],
            },
            u: { type: ["string", "number", "array", "null"] },
        });
        await form.open(schema);
        await form.expect("{}");
        assert.deepEqual(await form.variant("s").locator("option").allTextContents(), [
            "not set",
            "kind: circle",
            "kind: box",
            "Plain",
        ]);
        await form.variant("s").selectOption("kind: circle");
        await form.field("name").fill("N");
        await form.field("r").fill("2");
        await form.expect('{"s":{"kind":"circle","name":"N","r":2}}');
        await form.variant("s").selectOption("kind: box");
        await form.expect('{"s":{"kind":"box","name":"N"}}');
        await form.variant("s").selectOption("Plain");
        await form.field("Value").fill("p");
        await form.expect('{"s":"p"}');
        await form.variant("s").selectOption("not set");
        await form.variant("u").selectOption("number");
        await form.field("Value").fill("7");
        await form.expect('{"u":7}');
        await form.variant("u").selectOption("null");
        await form.expect('{"u":null}');
        await form.setValue('{"s":{"kind":"box","w":3},"u":["x"]}');
        assert.equal(await form.variant("s").inputValue(), "1");
        await form.expect('{"s":{"kind":"box","w":3},"u":["x"]}');
        await form.setValue('{"s":[1]}');
        await form.expect('{"s":[1]}');
    },

    "union of constants is one select with titles": async (form) => {
        await form.open(
            object({
                c: {
                    oneOf: [
                        { const: "r", title: "Red" },
                        { const: "g", title: "Green" },
                    ],
                },
            }),
        );
        assert.deepEqual(await form.field("c").locator("option").allTextContents(), ["not set", "Red (r)", "Green (g)"]);
        await form.field("c").selectOption("Green (g)");
        await form.expect('{"c":"g"}');
    },

    'union beside properties; alternatives of "required" only': async (form) => {
        await form.open(
            object(
                { a: { type: "string" } },
                {
                    oneOf: [
                        object({ x: { type: "string" } }, { required: ["x"], title: "X" }),
                        object({ y: { type: "number" } }, { title: "Y" }),
                    ],
                },
            ),
        );
        await form.expect('{"x":""}');
        await form.field("a").fill("1");
        await form.variant("Arguments").selectOption("Y");
        await form.field("y").fill("2");
        await form.expect('{"a":"1","y":2}');
        await form.open(
            object({ a: { type: "string" }, b: { type: "string" } }, { anyOf: [{ required: ["a"] }, { required: ["b"] }] }),
        );
        assert.equal(await form.page.locator("select").count(), 0);
    },

    "allOf merges, $ref in all its forms": async (form) => {
        await form.open({
            $ref: "#/$defs/root",
            $defs: {
                root: {
                    allOf: [
                        object({ a: { $ref: "#/definitions/name" } }, { required: ["a"] }),
                        object({ a: { minLength: 2 }, b: { $ref: "#num" }, c: { $ref: "#/$defs/sl~1ash%20x" } }),
                    ],
                },
                n: { $anchor: "num", type: "integer" },
                "sl/ash x": { type: "boolean" },
            },
            definitions: { name: { type: "string", title: "The name" } },
        });
        await form.expect('{"a":""}');
        assert.match(await form.page.locator(".sf-hint").first().textContent(), /length ≥ 2/);
        await form.field("b").fill("3");
        await form.field("c").selectOption("true");
        await form.expect('{"a":"","b":3,"c":true}');
    },

    'recursion: $ref "#", opened by hand': async (form) => {
        const tree = object(
            { name: { type: "string" }, kids: { type: "array", items: { $ref: "#" } }, left: { $ref: "#" } },
            { required: ["name"] },
        );
        await form.open(tree);
        await form.expect('{"name":""}');
        await form.checkbox("Send: left").check();
        await form.checkbox("Send: left").nth(1).check();
        await form.expect('{"name":"","left":{"name":"","left":{"name":""}}}');
        let deep = '{"name":"x"}';
        for (let i = 0; i < 300; i += 1) deep = i % 2 ? `{"name":"n","left":${deep}}` : `{"name":"n","kids":[${deep}]}`;
        await form.roundTrip(tree, deep);
        assert.ok((await form.page.locator(".sf-slot").count()) < 100);
        await form.page.getByRole("button", { name: /^Show fields/ }).click();
        assert.equal(
            await form.value(),
            await form.page.evaluate((t) => window.modules.stringifyJson(window.modules.parseJson(t)), deep),
        );
    },

    "if/then/else follows the value and keeps the focus": async (form) => {
        await form.open(
            object(
                { kind: { enum: ["card", "bank"] }, note: { type: "string" } },
                {
                    if: { properties: { kind: { const: "card" } }, required: ["kind"] },
                    then: { properties: { number: { type: "string" } }, required: ["number"] },
                    else: { properties: { iban: { type: "string" } } },
                },
            ),
        );
        assert.equal(await form.field("number").count(), 0);
        assert.equal(await form.field("iban").count(), 1);
        await form.field("kind").selectOption("card");
        await form.expect('{"kind":"card","number":""}');
        assert.equal(await form.field("iban").count(), 0);
        await form.field("number").fill("42");
        await form.field("kind").selectOption("bank");
        assert.equal(await form.field("number").count(), 0);
        await form.field("iban").fill("DE");
        await form.expect('{"kind":"bank","iban":"DE"}');
        await form.field("kind").selectOption("card");
        await form.expect('{"kind":"card","number":"42"}');
        await form.setValue('{"kind":"bank","number":"1","iban":"x"}');
        await form.expect('{"kind":"bank","iban":"x","number":"1"}');
        await form.field("kind").selectOption("card");
        await form.expect('{"kind":"card","number":"1"}');
        await form.open(
            object(
                { a: { type: "string" } },
                {
                    if: { properties: { a: { minLength: 3 } }, required: ["a"] },
                    then: { properties: { a: { description: "long" }, b: { type: "string" } } },
                },
            ),
        );
        await form.field("a").click();
        await form.page.keyboard.type("abcdef");
        await form.expect('{"a":"abcdef"}');
        assert.equal(await form.field("b").count(), 1);
    },

    "dependentRequired and dependentSchemas": async (form) => {
        await form.open(
            object(
                { a: { type: "string" }, b: { type: "string" } },
                { dependentRequired: { a: ["b"] }, dependentSchemas: { b: object({ c: { type: "string" } }) } },
            ),
        );
        await form.field("a").fill("1");
        assert.equal(await form.page.locator(".sf-required:visible").count(), 1);
        await form.field("b").fill("2");
        await form.field("c").fill("3");
        await form.expect('{"a":"1","b":"2","c":"3"}');
    },

    "additionalProperties and patternProperties: rows": async (form) => {
        await form.open(
            object(
                {
                    m: { type: "object", additionalProperties: { type: "integer" } },
                    p: { type: "object", patternProperties: { "^(a+)+$": { type: "string" } }, additionalProperties: false },
                    x: { type: "object", additionalProperties: false },
                },
                { required: ["m", "p", "x"] },
            ),
        );
        await form.button("Add property: m").click();
        await form.expect('{"m":{},"p":{},"x":{}}');
        await form.page.keyboard.type("__proto__");
        await form.field("__proto__").fill("5");
        await form.expect('{"m":{"__proto__":5},"p":{},"x":{}}');
        await form.button("Add property: m").click();
        await form.page.keyboard.type("__proto__");
        assert.equal((await form.problems())[0].path, "/m");
        await form.page.keyboard.type("2");
        assert.deepEqual(await form.problems(), []);
        await form.field("__proto__2").fill("6");
        await form.expect('{"m":{"__proto__":5,"__proto__2":6},"p":{},"x":{}}');
        await form.button("Remove: __proto__").click();
        await form.button("Add property: p").click();
        await form.page.keyboard.type("aa");
        await form.field("aa").fill("text");
        await form.expect('{"m":{"__proto__2":6},"p":{"aa":"text"},"x":{}}');
        assert.equal(await form.button("Add property: x").isVisible(), false);
        await form.setValue('{"m":{},"p":{},"x":{"odd":[1]}}');
        await form.expect('{"m":{},"p":{},"x":{"odd":[1]}}');
    },

    "JSON area: untyped schema, invalid text, switching": async (form) => {
        await form.open(object({ any: {}, o: object({ a: { type: "string" } }) }, { required: ["o"] }));
        await form.field("any").fill('{"x": 1.0}');
        await form.expect('{"any":{"x":1.0},"o":{}}');
        await form.field("any").fill("{oops");
        await form.expect('{"o":{}}');
        assert.equal((await form.problems())[0].path, "/any");
        await form.field("any").fill("");
        await form.button("Edit as JSON: o").click();
        await form.field("o").fill('{"a":"b","c":[1]}');
        await form.expect('{"o":{"a":"b","c":[1]}}');
        await form.button("Edit as form: o").click();
        await form.field("a").fill("B");
        await form.expect('{"o":{"a":"B","c":[1]}}');
        await form.setValue('{"o":[1]}');
        assert.equal(await form.page.locator(".sf-json").count(), 2);
        await form.expect('{"o":[1]}');
        await form.button("Edit as form: o").click();
        await form.expect('{"o":{}}');
    },
};
