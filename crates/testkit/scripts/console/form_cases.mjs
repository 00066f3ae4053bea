// The form for a JSON Schema: hand-written cases, with real keyboard and mouse.

import { cases as appearance } from "./form/appearance_cases.mjs";
import { cases as groups } from "./form/group_cases.mjs";
import { cases as hostile } from "./form/hostile_cases.mjs";
import { cases as jsonText } from "./form/json_text_cases.mjs";
import { cases as messages } from "./form/message_cases.mjs";
import { FormPage } from "./form/page.mjs";
import { cases as values } from "./form/value_cases.mjs";

export async function run(session, { root }) {
    const form = await FormPage.load(session, root);
    for (const group of [jsonText, values, groups, messages, hostile, appearance]) {
        for (const [name, runCase] of Object.entries(group)) {
            await runCase(form).catch((error) => session.report(`${name}: ${error.message}`));
        }
    }
}
