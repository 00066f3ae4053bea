// The form that adds a server: its change of the file is shown before it is written.

import { FieldError, attempt } from "./change_preview.js";
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

/** The variables or headers that the lines of a control describe, such as `NAME=value`. */
export function parseValues(control) {
  const given = control.value.split("\n").map((line) => line.trim()).filter(Boolean);
  return given.map((line) => {
    const [, name, value] = line.match(/^([^\s=:]+)\s*[=:](.*)$/) ?? [];
    if (name === undefined) {
      throw new FieldError(control, text(
        `“${line}”: write NAME=VALUE for a variable, NAME: VALUE for a header.`,
        `“${line}”：环境变量请写成 NAME=VALUE，请求头请写成 NAME: VALUE。`,
      ));
    }
    return { name, value: value.trim() };
  });
}

/** What a server may be called: its name becomes part of the names of tools. */
const NAME = /^[\p{L}\p{N}_.-]+$/u;

/** Builds the form inside a container. */
export function start(container) {
  const { servers: serversUrl, page } = container.dataset;
  const name = element("input", { autocomplete: "off", spellcheck: false });
  const reach = element("textarea", { rows: 3, spellcheck: false });
  const values = element("textarea", { rows: 2, spellcheck: false });
  const folder = element("input", { autocomplete: "off", spellcheck: false });
  const preview = element("pre", { className: "diff", hidden: true, tabIndex: 0 });
  preview.setAttribute("role", "region");
  preview.setAttribute("aria-label", text("Change of the file", "文件改动"));
  const message = element("p", { className: "field-error", id: "server-message" });
  message.setAttribute("role", "status");
  const show = element("button", { type: "button", textContent: text("Preview", "预览") });
  const add = element("button", { type: "submit", className: "primary", textContent: text("Add", "添加") });

  /** The request that the fields describe. */
  function body(isPreview) {
    const how = reach.value.trim();
    const kind = how.startsWith("{") ? "json" : /^https?:\/\//.test(how) ? "url" : "command";
    const id = name.value.trim();
    if (!id && (kind !== "json" || isOneServer(how))) {
      throw new FieldError(name, text("The server needs a name.", "请填写服务器名称。"));
    }
    if (id && !NAME.test(id)) {
      throw new FieldError(name, text(
        "The name of a server has letters, digits, “-”, “_” and “.” only, since it becomes part of the names of tools.",
        "服务器名称只能包含字母、数字、“-”、“_”和“.”，因为它会成为工具名称的一部分。",
      ));
    }
    if (!how) {
      throw new FieldError(reach, text("Write a command, a URL or JSON.", "请填写命令、网址或 JSON。"));
    }
    const wanted = { id: id || null, values: parseValues(values), preview: isPreview };
    // The positions in messages are those in the text as it was typed.
    wanted[kind] = kind === "json" ? reach.value : how;
    if (kind === "command") wanted.cwd = folder.value.trim() || null;
    return JSON.stringify(wanted);
  }

  /** Whether a text is the JSON of one server without its name. */
  function isOneServer(how) {
    try {
      const given = JSON.parse(how);
      return "command" in given || "url" in given;
    } catch {
      return false;
    }
  }

  /** Shows the new entries at their place in the file. */
  function showChange({ file, added_lines: added, other_servers: others }) {
    const where = others === 0
      ? text(`This is added to ${file}:`, `将添加到 ${file}：`)
      : text(
          `This is added to ${file}, whose other servers (${others}) stay as they are:`,
          `将添加到 ${file}，其中已有的 ${others} 个服务器保持不变：`,
        );
    const kept = (line) => element("span", { textContent: `  ${line}\n` });
    preview.replaceChildren(
      element("span", { textContent: `${where}\n\n` }),
      kept('  "mcpServers": {'),
      ...(others === 0 ? [] : [kept("    …")]),
      ...added.map((line) => element("ins", { textContent: `+ ${line}\n` })),
      kept("  }"),
    );
    preview.hidden = false;
  }

  const send = (isPreview) => attempt([show, add], message, async () => {
    message.textContent = "";
    const change = JSON.parse(await request(serversUrl, { method: "POST", body: body(isPreview) }));
    showChange(change);
    if (isPreview) return;
    announce(text("Added. It is being connected.", "已添加，正在连接。"));
    // The list shows the states of several servers.
    location.assign(change.ids.length === 1 ? `${page}/${encodeURIComponent(change.ids[0])}` : page);
  });

  show.addEventListener("click", () => send(true));
  const form = element(
    "form",
    { className: "stack" },
    field(
      "server-name",
      text("Name", "名称"),
      name,
      text("Letters, digits, “-”, “_” and “.”. Pasted JSON may contain it.", "字母、数字、“-”、“_”和“.”。粘贴的 JSON 中有名称时可不填。"),
    ),
    field(
      "server-reach",
      text("Command, URL or JSON of another client", "命令、网址或其他客户端的 JSON"),
      reach,
      "npx -y some-server · https://host/mcp · {\"mcpServers\": …}",
    ),
    field(
      "server-values",
      text("Variables or headers, one per line", "变量或请求头，每行一个"),
      values,
      text(
        "A variable of a command: API_KEY=${API_KEY} · A header of a URL: Authorization: Bearer ${TOKEN}",
        "命令的环境变量：API_KEY=${API_KEY} · 网址的请求头：Authorization: Bearer ${TOKEN}",
      ),
    ),
    field("server-folder", text("Working directory of a command", "命令的工作目录"), folder),
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
