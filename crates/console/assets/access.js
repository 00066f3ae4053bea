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
  const samePerson = element("input", { type: "checkbox" });
  const samePersonLabel = element("label", {}, samePerson, ` ${text(
    "The name is that of a revoked key, and the key is for the same person: it gives access to what is stored under the name",
    "该名称属于已吊销的密钥，且仍供同一人使用：可访问该名称下的数据",
  )}`);
  const message = status();
  const group = element("fieldset", {}, element("legend", { textContent: text("Roles", "角色") }), ...roles);
  const form = element(
    "form",
    { className: "stack" },
    field("key-name", text("Name", "名称"), name),
    group,
    field("key-profiles", text("Profiles (all if empty)", "配置方案（留空表示全部）"), profiles),
    field("key-expires", text("Expires", "过期日期"), expires),
    field("key-per-day", text("Calls per day", "每日调用上限"), perDay),
    element("div", {}, samePersonLabel),
    element("div", {}, element("button", { type: "submit", className: "primary", textContent: text("Make key", "生成密钥") })),
    message,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    message.textContent = "";
    if (confirm && !(await confirmed(confirm, confirmAction))) return;
    const chosen = [...group.querySelectorAll("input[type=checkbox]:checked")].map((box) => box.value);
    const body = {
      name: name.value,
      roles: chosen,
      profiles: words(profiles.value),
      expires: expires.value || null,
      per_day: perDay.value ? Number(perDay.value) : null,
      same_person: samePerson.checked,
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
  const cellOf = (cell, index) => {
    const created = element("td", { dir: "auto" }, cell);
    created.dataset.label = heads[index];
    return created;
  };
  const lines = rows.map((row) => element("tr", {}, ...row.map(cellOf)));
  const grid = element("table", {}, element("thead", {}, head), element("tbody", {}, ...lines));
  return element("div", { className: "scroll" }, grid);
}

const note = (content) => element("p", { className: "muted", textContent: content });

/** A decision in words. */
function decisionText(name) {
  const words = {
    allow: text("allow", "允许"),
    ask: text("ask first", "先询问"),
    forbid: text("forbid", "禁止"),
    depends: text("depends on the arguments", "取决于参数"),
    need_scope: text("needs more scopes", "需要更多授权范围"),
  };
  return words[name] ?? name;
}

/** What to do next where no rule gives the expected result. */
function hints(decisions, principal) {
  const shown = [];
  if (decisions.every((one) => one.call === "forbid")) {
    shown.push(note(text(
      "Nothing allows this call. Add a rule with the effect “allow” whose `principals`, `roles`, `servers` and `tools` match; leave a member out to match all.",
      "没有规则允许此调用。请添加效果为“allow”的规则，使其 `principals`、`roles`、`servers`、`tools` 匹配；省略某项表示匹配全部。",
    )));
  }
  if (principal === "local") {
    shown.push(note(text(
      "Rules concern `local`, the user of this machine, only if their `principals` name it.",
      "只有 `principals` 中写明 `local` 的规则才对本机用户生效。",
    )));
  }
  return shown;
}

/** Why there is nothing to check. */
const noCalls = (skipped) =>
  skipped > 0
    ? text(
        "None of the recorded calls can be checked: their callers or tools are gone, or their arguments are stored in part.",
        "已记录的调用均无法检查：调用方或工具已不存在，或参数只保存了一部分。",
      )
    : text(
        "No calls are recorded in these days. Enter more days, or let a client call a tool first.",
        "这些天没有调用记录。请增加天数，或先让客户端调用工具。",
      );

/** Builds the simulator. */
export async function startSimulator(container) {
  const { simulate, rules: rulesUrl, calls } = container.dataset;
  const principal = element("input", { autocomplete: "off", placeholder: "key:NAME" });
  principal.setAttribute("list", "known-principals");
  const tool = element("input", { autocomplete: "off" });
  tool.setAttribute("list", "known-tools");
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
    if (!principal.value.trim() || !tool.value.trim()) {
      output.replaceChildren();
      message.textContent = text(
        "Fill in a caller and a tool: `local` is the user of this machine, `key:NAME` a key.",
        "请填写调用方和工具：`local` 是本机用户，`key:名称` 是密钥。",
      );
      (principal.value.trim() ? tool : principal).focus();
      return;
    }
    const result = await send({ principal: principal.value.trim(), tool: tool.value.trim() });
    if (!result) return;
    const rows = result.decisions.map((one) => [one.source, decisionText(one.see), decisionText(one.call), one.reason]);
    const heads = [text("Source", "来源"), text("See", "可见"), text("Call", "调用"), text("Reason", "原因")];
    output.replaceChildren(table(heads, rows), ...hints(result.decisions, principal.value.trim()));
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
      return [link, call.principal, call.tool, decisionText(call.decision), call.rule ?? "–"];
    });
    const heads = [text("Time", "时间"), text("Caller", "调用方"), text("Tool", "工具"), text("Decision", "结果"), text("Rule", "规则")];
    const hint = result.checked > 0 ? [] : [note(noCalls(result.skipped))];
    output.replaceChildren(element("p", { textContent: summary }), ...hint, ...(rows.length ? [table(heads, rows)] : []));
  });
  container.replaceChildren(
    element(
      "div",
      { className: "stack" },
      field("simulator-rules", text("Rules as JSON", "规则（JSON）"), rules),
      field("simulator-principal", text("Caller (principal)", "调用方（主体）"), principal),
      field("simulator-tool", text("Tool", "工具"), tool),
      field("simulator-days", text("Days", "天数"), days),
      element("div", { className: "trial-actions" }, ask, replay),
      message,
    ),
    output,
  );
}
