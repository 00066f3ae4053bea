// The forms of the page "Access": a new key, and the simulator of rules.

import { confirmed, request, showSecret, text } from "./console.js";

const ROLES = ["caller", "viewer", "approver", "operator", "auditor", "owner"];

function element(name, properties = {}, ...children) {
  const created = Object.assign(document.createElement(name), properties);
  created.append(...children);
  return created;
}

function field(id, label, control) {
  control.id = id;
  return element("div", { className: "field" }, element("label", { htmlFor: id, textContent: label }), control);
}

function status() {
  const line = element("p", { className: "field-error" });
  line.setAttribute("role", "status");
  return line;
}

const words = (value) => value.split(/[\s,，]+/).filter(Boolean);

/** Builds the form for a new key. */
export function startNewKey(container) {
  const { keys, confirm, confirmAction } = container.dataset;
  const name = element("input", { autocomplete: "off", required: true });
  const roles = ROLES.map((role) => {
    const box = element("input", { type: "checkbox", value: role, checked: role === "caller" });
    return element("label", {}, box, ` ${role}`);
  });
  const profiles = element("input", { autocomplete: "off" });
  const expires = element("input", { type: "date" });
  const perDay = element("input", { type: "number", min: 1 });
  const message = status();
  const group = element("fieldset", {}, element("legend", { textContent: text("Roles", "角色") }), ...roles);
  const form = element(
    "form",
    { className: "stack" },
    field("key-name", text("Name", "名称"), name),
    group,
    field("key-profiles", text("Profiles (all if empty)", "配置档（留空表示全部）"), profiles),
    field("key-expires", text("Expires", "过期日期"), expires),
    field("key-per-day", text("Calls per day", "每日调用上限"), perDay),
    element("div", {}, element("button", { type: "submit", className: "primary", textContent: text("Make key", "生成密钥") })),
    message,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    message.textContent = "";
    if (confirm && !(await confirmed(confirm, confirmAction))) return;
    const chosen = [...form.querySelectorAll("input[type=checkbox]:checked")].map((box) => box.value);
    const body = {
      name: name.value,
      roles: chosen,
      profiles: words(profiles.value),
      expires: expires.value || null,
      per_day: perDay.value ? Number(perDay.value) : null,
    };
    try {
      const made = JSON.parse(await request(keys, { method: "POST", body: JSON.stringify(body) }));
      await showSecret(made.key);
      location.reload();
    } catch (error) {
      message.textContent = error.message;
    }
  });
  container.replaceChildren(form);
}

function table(heads, rows) {
  const head = element("tr", {}, ...heads.map((label) => element("th", { scope: "col", textContent: label })));
  const lines = rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell))));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...lines));
}

/** Builds the simulator. */
export async function startSimulator(container) {
  const { simulate, rules: rulesUrl, calls } = container.dataset;
  const principal = element("input", { autocomplete: "off", placeholder: "key:NAME" });
  const tool = element("input", { autocomplete: "off" });
  const rules = element("textarea", { rows: 10, spellcheck: false });
  const days = element("input", { type: "number", min: 1, max: 365, value: "7" });
  const ask = element("button", { type: "button", textContent: text("What may it do?", "它可以做什么？") });
  const replay = element("button", { type: "button", textContent: text("Which calls would be refused?", "哪些调用会被拒绝？") });
  const message = status();
  const output = element("div", {});
  output.setAttribute("aria-live", "polite");
  try {
    const inForce = JSON.parse(await request(rulesUrl)).items.map((rule) => rule.definition);
    rules.value = JSON.stringify(inForce, null, 2);
  } catch (error) {
    message.textContent = error.message;
  }

  async function send(body) {
    message.textContent = "";
    output.replaceChildren();
    try {
      const given = rules.value.trim() ? JSON.parse(rules.value) : [];
      return JSON.parse(await request(simulate, { method: "POST", body: JSON.stringify({ ...body, rules: given }) }));
    } catch (error) {
      message.textContent = error.message;
      return undefined;
    }
  }

  ask.addEventListener("click", async () => {
    const result = await send({ principal: principal.value.trim(), tool: tool.value.trim() });
    if (!result) return;
    const rows = result.decisions.map((one) => [one.source, one.see, one.call, one.reason]);
    const heads = [text("Source", "来源"), text("See", "可见"), text("Call", "调用"), text("Reason", "原因")];
    output.replaceChildren(table(heads, rows));
  });
  replay.addEventListener("click", async () => {
    const result = await send({ days: Number(days.value) || 7 });
    if (!result) return;
    const summary = text(
      `${result.refused} of ${result.checked} calls would be refused or held; ${result.skipped} could not be checked.`,
      `${result.checked} 次调用中有 ${result.refused} 次会被拒绝或暂停；${result.skipped} 次无法检查。`,
    );
    const rows = result.calls.map((call) => {
      const link = element("a", { href: `${calls}/${encodeURIComponent(call.id)}`, textContent: call.at });
      return [link, call.principal, call.tool, call.decision, call.rule ?? "–"];
    });
    const heads = [text("Time", "时间"), text("Caller", "调用方"), text("Tool", "工具"), text("Decision", "结果"), text("Rule", "规则")];
    output.replaceChildren(element("p", { textContent: summary }), ...(rows.length ? [table(heads, rows)] : []));
  });
  container.replaceChildren(
    element(
      "div",
      { className: "stack" },
      field("simulator-rules", text("Rules as JSON", "规则（JSON）"), rules),
      field("simulator-principal", text("Principal", "主体"), principal),
      field("simulator-tool", text("Tool", "工具"), tool),
      field("simulator-days", text("Days", "天数"), days),
      element("div", { className: "trial-actions" }, ask, replay),
      message,
    ),
    output,
  );
}
