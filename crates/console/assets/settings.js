// The editor of the configuration file: a change is shown as a diff before it is written.

import { announce, confirmed, request, text } from "./console.js";
import { SIGNS, attempt as attemptWith } from "./change_preview.js";
import { h as element } from "./form_dom.js";

/** Adds the actions to the editor. */
export function start(container) {
  const { config: configUrl } = container.dataset;
  let version = container.dataset.version;
  const editor = container.querySelector("textarea");
  let saved = editor.value;
  if (editor.readOnly) return;
  const message = element("p", { className: "field-error" });
  message.setAttribute("role", "status");
  const notes = element("ul", { className: "small" });
  const diff = element("pre", { className: "diff", hidden: true, tabIndex: 0 });
  diff.setAttribute("role", "region");
  diff.setAttribute("aria-label", text("Changes", "改动"));
  const show = element("button", { type: "button", textContent: text("Preview", "预览") });
  const save = element("button", { type: "button", className: "primary", textContent: text("Save", "保存") });
  const undo = element("button", { type: "button", textContent: text("Discard", "放弃") });

  /** Shows what a change would do. Returns whether it can be written. */
  async function preview() {
    message.textContent = "";
    const body = JSON.stringify({ text: editor.value });
    const change = JSON.parse(await request(`${configUrl}:preview`, { method: "POST", body }));
    diff.replaceChildren(
      ...change.lines.map((line) => {
        const [name, sign] = SIGNS[line.change];
        return element(name, { textContent: `${sign}${line.text}\n` });
      }),
    );
    diff.hidden = change.lines.length === 0;
    message.textContent = change.valid
      ? change.lines.length === 0 ? text("Nothing is changed.", "没有改动。") : ""
      : change.message;
    const restart = change.restart.map((section) =>
      text(`[${section}] takes effect when the hub is started again.`, `[${section}] 在 hub 重启后生效。`));
    notes.replaceChildren(...[...change.warnings, ...restart].map((note) => element("li", { textContent: note })));
    return change.valid && change.lines.length > 0;
  }

  const attempt = (action) => attemptWith([show, save], message, action);

  show.addEventListener("click", () => attempt(preview));
  save.addEventListener("click", () => attempt(async () => {
    if (!(await preview())) return;
    const question = text(`Write this change to ${container.dataset.file}?`, `将此改动写入 ${container.dataset.file}？`);
    if (!(await confirmed(question, text("Save file", "保存文件")))) return;
    const body = JSON.stringify({ text: editor.value });
    const written = JSON.parse(
      await request(configUrl, { method: "PUT", body, headers: { "if-match": version } }),
    );
    version = written.version;
    editor.value = saved = written.text;
    diff.hidden = true;
    announce(text("Saved.", "已保存。"));
  }));
  undo.addEventListener("click", () => {
    editor.value = saved;
    diff.hidden = true;
    message.textContent = "";
    notes.replaceChildren();
  });
  addEventListener("beforeunload", (event) => {
    if (editor.isConnected && editor.value !== saved) event.preventDefault();
  });
  container.append(element("div", { className: "trial-actions" }, show, save, undo), message, notes, diff);
}
