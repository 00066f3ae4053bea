// The form for every schema that the test has: it shows generated valid instances and returns exactly these, and it shows the
// messages of the hub for invalid ones. The test checks instances with the validator of the hub.

import { FormPage } from "./form/page.mjs";
import { generateInstances, invalidInstances } from "./form/instances.mjs";

/** 15,000 schemas take five minutes on two idle cores. */
export const TIMEOUT_MS = 3_600_000;
/** Stop after this many findings. */
const MAX_FINDINGS = 20;

/** The schema as an object; `{}` if it is none, which stands for any value. */
function parse(schema) {
    const value = JSON.parse(schema);
    return value && typeof value === "object" && !Array.isArray(value) ? value : {};
}

/** Runs in the page: shows the instances of each schema. Returns what went wrong and some numbers. */
function showInstances(batch) {
    const { createForm, equalJson, parseJson } = window.modules;
    const place = document.getElementById("place");
    const visible = (selector) => [...place.querySelectorAll(selector)].filter((element) => element.checkVisibility());
    return batch.map(({ schema, instances }) => {
        const failures = [];
        let [beside, below] = [0, 0];
        try {
            const form = createForm(schema, {});
            place.replaceChildren(form.element);
            parseJson(form.getValue());
            for (const { text, problems } of instances) {
                const isAccepted = form.setValue(text);
                const value = form.getValue();
                if (!isAccepted || !equalJson(parseJson(value), parseJson(text), true)) failures.push(`${text} became ${value}`);
                const homeless = form.setErrors(problems);
                const shown = visible(".sf-error").map((element) => element.textContent);
                const isShown = ({ message }) => shown.some((line) => line.includes(message));
                for (const problem of problems) {
                    if (isShown(problem)) beside += 1;
                    else if (homeless.some(({ message }) => message === problem.message)) below += 1;
                    else failures.push(`${text}: the message is not shown: ${problem.message}`);
                }
                if (problems.length === 0 && shown.length > 0)
                    failures.push(`${text}: a valid value has the message ${shown[0]}`);
            }
        } catch (error) {
            failures.push(String(error.stack));
        }
        return { failures, beside, below };
    });
}

export async function run(session, { root }) {
    const form = await FormPage.load(session, root);
    const totals = { schemas: 0, valid: 0, withoutValid: [], invalid: 0, withoutInvalid: [], beside: 0, below: 0 };
    for (;;) {
        const schemas = await session.request("schemas");
        if (schemas.length === 0 || session.findings.length > MAX_FINDINGS) break;
        const candidates = schemas.map(({ schema }) => generateInstances(parse(schema)));
        const check = (texts) =>
            session.request(
                "check",
                schemas.map(({ schema }, index) => [schema, texts[index]]),
            );
        const checked = await check(candidates);
        const valid = candidates.map((texts, index) => texts.filter((_, text) => checked[index][text] === null));
        const spoiled = valid.map((texts, index) => {
            const longest = texts.toSorted((one, other) => other.length - one.length)[0] ?? candidates[index][0];
            return invalidInstances(JSON.parse(longest));
        });
        const refused = await check(spoiled);
        const batch = schemas.map(({ schema }, index) => {
            const good = valid[index].map((text) => ({ text, problems: [] }));
            const bad = spoiled[index]
                .map((text, number) => ({ text, problems: refused[index][number] }))
                .filter(({ problems }) => problems);
            return { schema, good, bad, instances: [...good, ...bad] };
        });
        const results = await form.page.evaluate(
            showInstances,
            batch.map(({ schema, instances }) => ({ schema, instances })),
        );
        for (const [index, { failures, beside, below }] of results.entries()) {
            const { name } = schemas[index];
            const { good, bad } = batch[index];
            for (const failure of failures) session.report(`${name}: ${failure.slice(0, 1000)}`);
            totals.schemas += 1;
            totals.valid += good.length;
            totals.invalid += bad.length;
            totals.beside += beside;
            totals.below += below;
            if (good.length === 0) totals.withoutValid.push(name);
            if (bad.length === 0) totals.withoutInvalid.push(name);
        }
    }
    await session.request("totals", totals);
}
