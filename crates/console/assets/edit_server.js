// The form that changes the entry of a server: the change is shown before it is written. Secrets stay masked.

import { announce, confirmed, request, text } from "./console.js";
import { field, parseValues } from "./add_server.js";
import { SIGNS, attempt as attemptWith } from "./change_preview.js";
import { h as element } from "./form_dom.js";

/** Arguments as lines. One that is not a plain line is written as a string of JSON. */
const isPlain = (argument) =>
  argument !== "" && argument.trim() === argument && !argument.startsWith('"') && !/[\n\r]/.test(argument);
const lineOf = (argument) => (isPlain(argument) ? argument : JSON.stringify(argument));
const argumentOf = (line) => (line.startsWith('"') ? JSON.parse(line) : line);

/** Builds the form inside a container when it is opened for the first time. The card around it is replaced by updates. */
export function start(container) {
  const card = () => container.closest("details");
  const open = () => {
    card().open = true;
    card().scrollIntoView();
    card().querySelector("summary").focus();
  };
  let isBuilt = false;
  const build = async () => {
    if (!card()?.open || isBuilt) return;
    isBuilt = true;
    try {
      await load(container);
    } catch (error) {
      isBuilt = false;
      container.replaceChildren(element("p", { className: "problem", textContent: error.message }));
    }
  };
  document.addEventListener("click", (event) => {
    if (!event.target.closest('a[href="#edit"]')) return;
    event.preventDefault();
    open();
  });
  document.addEventListener("toggle", build, { capture: true });
  if (location.hash === "#edit") open();
  build();
}

/** Reads the entry and shows it. */
async function load(container) {
  const { entry: entryUrl, test: testUrl, name, enabled } = container.dataset;
  const entry = JSON.parse(await request(entryUrl));
  const isProgram = entry.command !== null;
  const input = (value) => element("input", { autocomplete: "off", spellcheck: false, value: value ?? "" });
  const lines = (values, rows) =>
    element("textarea", { rows: Math.max(rows, values.length), spellcheck: false, value: values.join("\n") });
  const reach = input(isProgram ? entry.command : entry.url);
  const argumentLines = lines(entry.args.map(lineOf), 2);
  const folder = input(entry.cwd);
  const values = lines(entry.values.map((pair) => `${pair.name}=${pair.value}`), 2);
  const message = element("p", { className: "field-error" });
  message.setAttribute("role", "status");
  const diff = element("pre", { className: "diff", hidden: true, tabIndex: 0 });
  diff.setAttribute("role", "region");
  diff.setAttribute("aria-label", text("Changes", "改动"));
  const show = element("button", { type: "button", textContent: text("Preview", "预览") });
  const save = element("button", { type: "submit", className: "primary", textContent: text("Save", "保存") });
  const undo = element("button", { type: "button", textContent: text("Discard", "放弃") });

  /** Sends the change. Returns what it changes. */
  async function send(isPreview) {
    const body = { values: parseValues(values), sse: entry.sse, preview: isPreview };
    if (isProgram) {
      const given = argumentLines.value.split("\n").map((line) => line.trim()).filter(Boolean);
      Object.assign(body, { command: reach.value, args: given.map(argumentOf), cwd: folder.value.trim() || null });
    } else {
      body.url = reach.value;
    }
    const options = { method: "PUT", body: JSON.stringify(body), headers: { "if-match": entry.version } };
    return JSON.parse(await request(entryUrl, options));
  }

  /** Shows what would change. Returns whether anything would. */
  async function preview() {
    message.textContent = "";
    const { lines: changed } = await send(true);
    const line = ({ change, text: content }) => element(SIGNS[change][0], { textContent: `${SIGNS[change][1]}${content}\n` });
    diff.replaceChildren(...changed.map(line));
    diff.hidden = changed.length === 0;
    if (changed.length === 0) message.textContent = text("Nothing is changed.", "没有改动。");
    return changed.length > 0;
  }

  const attempt = (action) => attemptWith([show, save], message, action);

  show.addEventListener("click", () => attempt(preview));
  undo.addEventListener("click", () => attempt(async () => {
    await load(container);
    container.querySelector("input").focus();
  }));
  const secretHint = text(
    "{{secret N}} stands for a secret: leave it to keep the secret, or write a new one.",
    "{{secret N}} 代表机密值：保留即不变，也可写入新值。",
  );
  const program = () => [
    field("entry-command", text("Program", "程序"), reach),
    field(
      "entry-args",
      text("Arguments, one per line", "参数，每行一个"),
      argumentLines,
      text("Without quotes and escapes: each line is passed on as it is.", "无需引号和转义：每行原样传给程序。"),
    ),
    field("entry-folder", text("Working directory", "工作目录"), folder),
    field("entry-values", text("Variables, one per line", "环境变量，每行一个"), values, secretHint),
  ];
  const address = () => [
    field("entry-url", text("URL", "网址"), reach),
    field("entry-values", text("Headers, one per line", "请求头，每行一个"), values, secretHint),
  ];
  const form = element(
    "form",
    { className: "stack" },
    ...(isProgram ? program() : address()),
    element("div", { className: "trial-actions" }, show, save, undo),
    message,
    diff,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(async () => {
      if (!(await preview())) return;
      const question = text(
        `Change “${name}” in ${entry.file} and connect it again? Requests that use it now are cut off.`,
        `修改 ${entry.file} 中的“${name}”并重新连接？正在使用它的请求会被中断。`,
      );
      if (!(await confirmed(question, text("Change server", "修改服务器")))) return;
      await send(false);
      announce(text("Saved.", "已保存。"));
      // The page shows whether the server works with the change.
      if (enabled !== undefined) await request(testUrl, { method: "POST", body: "{}" }).catch((error) => announce(error.message));
      location.reload();
    });
  });
  if (entry.read_only) {
    for (const control of form.elements) control.disabled = true;
    message.textContent = entry.read_only;
  }
  container.replaceChildren(form);
}
