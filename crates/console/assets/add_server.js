// The form that adds a server: its change of the file is shown before it is written.

import { announce, request, text } from "./console.js";

function element(name, properties = {}, ...children) {
  const created = Object.assign(document.createElement(name), properties);
  created.append(...children);
  return created;
}

/** A control with its label and a hint. */
export function field(id, label, control, hint) {
  control.id = id;
  const parts = [element("label", { htmlFor: id, textContent: label }), control];
  if (hint) {
    const note = element("span", { id: `${id}-hint`, className: "muted small", textContent: hint });
    control.setAttribute("aria-describedby", note.id);
    parts.push(note);
  }
  return element("div", { className: "field" }, ...parts);
}

/** The variables or headers that lines such as `NAME=value` describe. */
export function parseValues(lines) {
  const given = lines.split("\n").map((line) => line.trim()).filter(Boolean);
  return given.map((line) => {
    const at = line.search(/[=:]/);
    if (at < 0) return { name: line, value: "" };
    return { name: line.slice(0, at).trim(), value: line.slice(at + 1).trim() };
  });
}

/** Builds the form inside a container. */
export function start(container) {
  const { servers: serversUrl, page } = container.dataset;
  const name = element("input", { autocomplete: "off", spellcheck: false });
  const reach = element("textarea", { rows: 3, spellcheck: false });
  const values = element("textarea", { rows: 2, spellcheck: false });
  const preview = element("pre", { hidden: true, tabIndex: 0 });
  preview.setAttribute("role", "region");
  preview.setAttribute("aria-label", text("Change of the file", "文件改动"));
  const message = element("p", { className: "field-error" });
  message.setAttribute("role", "status");
  const show = element("button", { type: "button", textContent: text("Preview", "预览") });
  const add = element("button", { type: "submit", className: "primary", textContent: text("Add", "添加") });

  /** The request that the fields describe. */
  function body(isPreview) {
    const how = reach.value.trim();
    const kind = how.startsWith("{") ? "json" : /^https?:\/\//.test(how) ? "url" : "command";
    const pairs = parseValues(values.value);
    return JSON.stringify({ id: name.value.trim() || null, [kind]: how, values: pairs, preview: isPreview });
  }

  async function send(isPreview) {
    message.textContent = "";
    add.disabled = true;
    try {
      const change = JSON.parse(await request(serversUrl, { method: "POST", body: body(isPreview) }));
      preview.textContent = `${change.file}\n\n${change.added_lines.map((line) => `+ ${line}`).join("\n")}`;
      preview.hidden = false;
      if (!isPreview) {
        announce(text("Added. It is being connected.", "已添加，正在连接。"));
        location.assign(`${page}/${encodeURIComponent(change.ids[0])}`);
      }
    } catch (error) {
      message.textContent = error.message;
    } finally {
      add.disabled = false;
    }
  }

  show.addEventListener("click", () => send(true));
  const form = element(
    "form",
    { className: "stack" },
    field("server-name", text("Name", "名称"), name),
    field(
      "server-reach",
      text("Command, URL or JSON of another client", "命令、网址或其他客户端的 JSON"),
      reach,
      text("npx -y some-server · https://host/mcp · {\"mcpServers\": …}", "npx -y some-server · https://host/mcp · {\"mcpServers\": …}"),
    ),
    field(
      "server-values",
      text("Variables or headers, one per line", "变量或请求头，每行一个"),
      values,
      "API_KEY=${API_KEY}",
    ),
    element("div", { className: "trial-actions" }, show, add),
    message,
    preview,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(false);
  });
  container.replaceChildren(form);
}
