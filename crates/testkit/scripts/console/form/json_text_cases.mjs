// Exact JSON text: what `json_text.js` reads and writes.

import assert from "node:assert/strict";

const INVALID = ["", " ", "{", "[1,]", '{"a":1,}', "01", "1.", ".5", "+1", "NaN", "'a'", '"a', '"\\x"', '"\n"', "[1 2]"].concat([
    '{"a" 1}',
    "{a:1}",
    "1 2",
    "tru",
    "[",
    '"\\',
    '{"a":}',
    "-",
    "1e",
    "\u00a01",
    "undefined",
]);

export const cases = {
    "JSON text: exact numbers, duplicate keys, prototype names": async (form) => {
        const texts = {
            "[9007199254740993,1e400,1.0,1,-0,0.10,1E+2]": "[9007199254740993,1e400,1.0,1,-0,0.10,1E+2]",
            '{"a":1,"__proto__":{"x":1},"a":2,"constructor":3}': '{"a":2,"__proto__":{"x":1},"constructor":3}',
            " [ ] ": "[]",
            '"\\u00e9\\ud800\\n\\"/"': '"é\\ud800\\n\\"/"',
        };
        const again = (text) => window.modules.stringifyJson(window.modules.parseJson(text));
        for (const [text, expected] of Object.entries(texts)) assert.equal(await form.page.evaluate(again, text), expected);
        assert.equal(await form.page.evaluate(() => Object.prototype.x), undefined);
    },

    "JSON text: other texts are refused": async (form) => {
        const accepted = await form.page.evaluate((texts) => {
            const isAccepted = (text) => {
                try {
                    window.modules.parseJson(text);
                    return true;
                } catch (error) {
                    return !(error instanceof SyntaxError);
                }
            };
            return texts.filter(isAccepted);
        }, INVALID);
        assert.deepEqual(accepted, []);
    },

    "JSON text: agrees with `JSON.parse` on random texts": async (form) => {
        const wrong = await form.page.evaluate(() => {
            const random = window.randomNumbers(7);
            const { parseJson, stringifyJson } = window.modules;
            const several = (depth, create) => Array.from({ length: depth > 0 ? random(4) : 0 }, create);
            const makers = [
                () => "null",
                () => "true",
                () => String(random(1000) / 8 - 50),
                () => JSON.stringify(String.fromCharCode(random(200), random(60_000))),
                (depth) => `[${several(depth, () => make(depth - 1)).join(" ,")}]`,
                (depth) => `{ ${several(depth, (_, index) => `"k${index}": ${make(depth - 1)}`).join(",")} }`,
            ];
            const make = (depth) => makers[random(makers.length)](depth);
            const outcome = (read) => {
                try {
                    return JSON.stringify(read());
                } catch {
                    return "invalid";
                }
            };
            const differing = [];
            for (let round = 0; round < 5000; round += 1) {
                let text = make(4);
                if (round % 2) {
                    const at = random(text.length);
                    text = text.slice(0, at) + '{}[],:"\\ 1e-.tn'[random(15)] + text.slice(at + random(2));
                }
                const expected = outcome(() => JSON.parse(text));
                const found = outcome(() => JSON.parse(stringifyJson(parseJson(text), round % 3)));
                if (expected !== found) differing.push(text);
            }
            return differing;
        });
        assert.deepEqual(wrong, []);
    },

    "JSON text: 30,000 levels": (form) => form.roundTrip({}, "[".repeat(30_000) + "]".repeat(30_000)),
};
