// Hostile names and texts, invalid schemas, random schemas, and large ones.

import assert from "node:assert/strict";

import { object } from "./page.mjs";

const NAMES = [
    ...["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf", "length", "then", "get", "set", "$ref", "type"],
    ...["", " ", "a/b", "~", "<img src=x onerror=hostileScriptRan()>", '"><script>hostileScriptRan()</script>'],
    ...["javascript:hostileScriptRan()", "\u202eevil", "😀"],
];

/** No action on a form may take longer than this, in milliseconds. Work that grows exponentially takes much longer. */
const MAX_ACTION_MS = 15_000;
/** The most elements that one action may build. */
const MAX_ELEMENTS = 150_000;

/** Runs in the page: schemas that are not schemas, each with some values. Returns what went wrong. */
function tryInvalidSchemas() {
    const nest = (depth, seed, wrap) => Array.from({ length: depth }).reduce(wrap, seed);
    const text = { type: "string" };
    const cyclic = { type: "object" };
    cyclic.properties = { self: cyclic };
    const loop = { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } };
    const self = { $ref: "#" };
    const schemas = [
        ...[undefined, null, true, false, 5, "x", "", [], {}, 5n, () => 1, Symbol("s"), cyclic],
        nest(20_000, text, (inner) => ({ type: "object", properties: { a: inner }, required: ["a"] })),
        nest(3000, text, (inner) => ({ allOf: [inner] })),
        nest(3000, text, (inner) => ({ anyOf: [inner, { type: "number" }] })),
        ...["any", 5, {}, [], ["string", 7], "null", ["integer", "number"]].map((type) => ({ type })),
        ...[[], 5, { a: "string", b: null, c: 5, d: [], e: false, f: true }].map((properties) => ({ properties })),
        ...["a", true, [1, {}, null, "ok"]].map((required) => ({ required })),
        ...[5, [], {}].map((values) => ({ enum: values })),
        ...[{}, [], [1, 2], [null, {}]].map((oneOf) => ({ oneOf })),
        ...[{ anyOf: [true, false] }, { allOf: "x" }, { allOf: [5] }, { items: 5 }, { type: "array", items: [5] }],
        ...[{ prefixItems: {} }, { if: 5, then: 5 }, { if: true, then: 7 }],
        ...[5, "", "#", "#/nope", "#/%", "#/__proto__", "http://x/y", "#/$ref"].map(($ref) => ({ $ref })),
        ...[{ $defs: loop, $ref: "#/$defs/a" }, { anyOf: [self, text] }, { allOf: [self], type: "object" }],
        ...[{ if: self, then: self, else: self }, { not: self }, { type: "object", properties: { a: self }, required: ["a"] }],
        ...[{ items: self, minItems: 1 }, { minItems: 1e9, items: {} }, { minItems: "x" }, { prefixItems: [self, self] }].map(
            (keywords) => ({ type: "array", ...keywords }),
        ),
        { title: 5, description: {}, format: [], examples: "x", default: { a: 1 }, pattern: 5, minimum: "x", maxLength: {} },
        { type: "string", pattern: "(a+)+$", default: `${"a".repeat(40)}!` },
        { type: "object", patternProperties: { "(a+)+$": {}, "(": {}, 5: 5 } },
        { type: "object", patternProperties: 5, additionalProperties: 5 },
        ...[{ dependencies: 5 }, { dependencies: { a: 5, b: ["c", 5], c: {} } }, { dependentRequired: { a: "x" } }],
        ...[
            { const: undefined },
            { type: "string", const: 5 },
            { nullable: true },
            { type: "string", nullable: true, enum: ["a"] },
        ],
    ];
    const values = ["{}", "[]", "null", '"x"', "1.0", "[[[1]],{}]", '{"a":"b","c":""}'];
    values.push('{"a":{"a":{"a":null}},"b":[1],"__proto__":1}');
    const { createForm, equalJson, parseJson } = window.modules;
    const failures = [];
    for (const [index, schema] of schemas.entries()) {
        try {
            const form = createForm(schema, {});
            document.getElementById("place").replaceChildren(form.element);
            JSON.parse(form.getValue());
            for (const value of values) {
                form.setValue(value);
                if (!equalJson(parseJson(form.getValue()), parseJson(value), true))
                    failures.push(`${index}: ${value} became ${form.getValue()}`);
            }
            form.setErrors([{ path: "/a/b", message: "m" }, null, { path: 5 }, {}]);
            form.setErrors(null);
        } catch (error) {
            failures.push(`${index}: ${error.stack}`);
        }
    }
    return failures;
}

/** Runs in the page: random schemas, values and actions. Returns what went wrong. */
function tryRandomSchemas(rounds) {
    const random = window.randomNumbers(99);
    const pick = (list) => list[random(list.length)];
    const several = (count, create) => Array.from({ length: count }, create);
    const names = ["a", "b", "__proto__", "constructor", ""];
    const some = () => names.filter(() => random(2));
    // `JSON.parse` makes `__proto__` a member.
    const members = (create) =>
        JSON.parse(
            `{${some()
                .map((name) => `${JSON.stringify(name)}:${JSON.stringify(create())}`)
                .join(",")}}`,
        );
    const invalid = () => pick([null, true, false, 5, "x", [], {}, [1], { a: 1 }]);
    const simple = [() => null, () => true, () => random(10), () => "s", () => "", () => "l\r\nm"];
    const randomValue = (depth) =>
        pick([
            ...simple,
            () => several(depth > 0 ? random(4) : 0, () => randomValue(depth - 1)),
            () => (depth > 0 ? members(() => randomValue(depth - 1)) : {}),
        ])();
    const randomSchema = (depth) => {
        if (random(14) === 0) return invalid();
        const one = () => (depth > 0 ? randomSchema(depth - 1) : { type: "string" });
        const list = () => several(1 + random(3), one);
        const map = () => members(one);
        const single = () => pick(["string", "object", "array", "number", "integer", "boolean", "null"]);
        const keywords = {
            type: () => (random(3) ? single() : [pick(["string", "object"]), pick(["array", "null", "number"])]),
            properties: map,
            patternProperties: map,
            dependentSchemas: map,
            required: some,
            items: one,
            additionalProperties: () => (random(3) ? one() : false),
            prefixItems: list,
            anyOf: list,
            oneOf: list,
            allOf: list,
            if: one,
            then: one,
            else: one,
            not: one,
            enum: () => several(random(4), () => randomValue(1)),
            const: () => randomValue(2),
            default: () => randomValue(2),
            $ref: () => pick(["#", "#/properties/a", "#/anyOf/0", "#/items", "#x"]),
            nullable: () => true,
            minItems: () => random(3),
            title: () => "T",
            format: () => pick(["date", "password"]),
        };
        const schema = {};
        for (let count = random(5); count >= 0; count -= 1) {
            const keyword = pick(["type", "type", "properties", ...Object.keys(keywords)]);
            schema[keyword] = random(20) === 0 ? invalid() : keywords[keyword]();
        }
        return schema;
    };

    const { createForm, equalJson, parseJson } = window.modules;
    const isSame = (one, other) => equalJson(parseJson(one), parseJson(other), true);
    const act = (form) => {
        const controls = form.element.querySelectorAll("button:not(:disabled), input, select, textarea");
        const control = controls[random(controls.length)];
        if (!control) return;
        if (control.localName === "select") {
            control.selectedIndex = random(control.options.length);
            control.dispatchEvent(new Event("change"));
        } else if (control.type === "checkbox" || control.localName === "button") {
            control.click();
        } else {
            control.value = pick(["", "1", "x", '{"a":1}', "[]"]);
            control.dispatchEvent(new Event("input"));
        }
    };
    const failures = [];
    for (let round = 0; round < rounds && failures.length < 5; round += 1) {
        const schema = randomSchema(4);
        const fail = (...parts) => failures.push([JSON.stringify(schema), ...parts].join(" | "));
        try {
            const form = createForm(schema, {});
            document.getElementById("place").replaceChildren(form.element);
            const initial = form.getValue();
            form.setValue(initial);
            if (!isSame(initial, form.getValue())) fail("the initial value", initial, form.getValue());
            for (let count = 0; count < 4; count += 1) {
                const text = JSON.stringify(randomValue(4));
                form.setValue(text);
                if (!isSame(text, form.getValue())) fail("a value", text, form.getValue());
            }
            for (let count = 0; count < 15; count += 1) {
                act(form);
                const text = form.getValue();
                if (form.getProblems().length > 0) continue;
                const other = createForm(schema, { value: text });
                if (!isSame(text, other.getValue())) fail("a value after an action", text, other.getValue());
            }
        } catch (error) {
            fail(error.stack);
        }
    }
    return failures;
}

/** Runs in the page: large schemas and values. Returns the time and the number of elements of each. */
function measureLargeSchemas() {
    const { createForm, equalJson, parseJson } = window.modules;
    const place = document.getElementById("place");
    const measured = {};
    const measure = (name, schema, value) => {
        const start = performance.now();
        const form = createForm(schema, {});
        place.replaceChildren(form.element);
        if (value) form.setValue(value);
        const milliseconds = performance.now() - start;
        const isSame = !value || equalJson(parseJson(form.getValue()), parseJson(value), true);
        measured[name] = { milliseconds, elements: place.querySelectorAll("*").length, isSame };
    };
    const text = { type: "string" };
    const several = (count, create) => Array.from({ length: count }, (_, index) => create(index));
    const members = (count, create) => Object.fromEntries(several(count, create));
    const properties = members(5000, (index) => [`p${index}`, text]);
    const values = JSON.stringify(members(5000, (index) => [`p${index}`, `${index}`]));
    measure("properties", { type: "object", properties, required: ["p4999"] }, values);
    measure("other properties", { type: "object" }, values);
    const choices = { e: { enum: several(20_000, (index) => `v${index}`) }, n: { enum: several(20_000, (index) => index) } };
    measure("choices", { type: "object", properties: choices }, '{"e":"v19999","n":19999}');
    const items = JSON.stringify(several(10_000, () => ({ a: "x" })));
    measure("items", { type: "array", items: { type: "object", properties: { a: text } } }, items);
    const level = (index) => {
        const inner = members(40, (member) => [`x${member}`, index < 7 ? { $ref: `#/$defs/d${index + 1}` } : text]);
        return [`d${index}`, { type: "object", properties: inner, required: Object.keys(inner) }];
    };
    measure("exponential references", { $defs: members(8, level), $ref: "#/$defs/d0" }, '{"x0":{"x0":{"x1":{}}}}');
    const variant = (index) => ({ type: "object", properties: { k: { const: index } } });
    measure("variants", { oneOf: several(2000, variant) }, '{"k":1500}');
    const reference = { $ref: "#/$defs/n" };
    const node = { type: "object", properties: { l: reference, r: reference }, required: ["l", "r"] };
    measure("required recursion", { $defs: { n: node }, ...reference });
    const long = (letter) => letter.repeat(1_000_000);
    const titled = { type: "string", title: long("y"), enum: [long("z"), "q"] };
    measure("texts", { type: "object", description: long("x"), properties: { a: titled } });
    const wide = several(100, () => ({ anyOf: several(100, () => ({ $ref: "#" })) }));
    measure("recursive unions", { type: "object", anyOf: wide, properties: { a: text } }, '{"a":1}');
    return measured;
}

export const cases = {
    "hostile names and texts": async (form) => {
        const property = (name) => {
            const description = "<svg onload=hostileScriptRan()>";
            return JSON.stringify({ type: "string", title: `${name}<b>t</b>`, description, enum: ["<i>", "x"] });
        };
        const properties = NAMES.map((name) => `${JSON.stringify(name)}:${property(name)}`);
        await form.open(`{"type":"object","properties":{${properties.join(",")}},"required":["__proto__"]}`);
        await form.expect("{}");
        const value = `{${NAMES.map((name) => `${JSON.stringify(name)}:"x"`).join(",")}}`;
        await form.setValue(value);
        await form.expect(value);
        const markup = "#place :is(img, svg, script, b, i, style), #place [style], #place [onclick], #place a";
        assert.equal(await form.page.locator(markup).count(), 0);
        await form.roundTrip({ type: "object" }, value);
        assert.equal(await form.page.evaluate(() => ({}).x ?? Object.prototype.type), undefined);
    },

    "invalid schemas": async (form) => assert.deepEqual(await form.page.evaluate(tryInvalidSchemas), []),

    "random schemas, values and actions": async (form) => {
        assert.deepEqual(await form.page.evaluate(tryRandomSchemas, 800), []);
    },

    "large schemas and values": async (form) => {
        const measured = await form.page.evaluate(measureLargeSchemas);
        for (const [name, { milliseconds, elements, isSame }] of Object.entries(measured)) {
            assert.ok(milliseconds < MAX_ACTION_MS, `${name}: ${milliseconds} ms`);
            assert.ok(elements < MAX_ELEMENTS, `${name}: ${elements} elements`);
            assert.ok(isSame, `${name}: another value`);
        }
    },

    "many fields are shown in steps": async (form) => {
        const names = Array.from({ length: 250 }, (_, index) => `p${index}`);
        await form.open(object(Object.fromEntries(names.map((name) => [name, { type: "string" }])), { required: ["p249"] }));
        await form.expect('{"p249":""}');
        await form.page.getByText("Optional fields (249)").click();
        await form.button("Show 100 more fields").click();
        await form.button("Show 50 more fields").click();
        await form.field("p200").fill("x");
        await form.expect('{"p249":"","p200":"x"}');
    },
};
