// Behaviour of all pages: actions, live updates, local times, keyboard shortcuts. Pages can be read without it.

const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";
const csrf = meta("csrf-token");
const apiRoot = meta("api-root");
const isChinese = document.documentElement.lang.startsWith("zh");
/** Selects a text by the language of the page. */
export const text = (en, zh) => (isChinese ? zh : en);

/** Shows a short message. */
export function announce(message) {
  const line = document.createElement("p");
  line.textContent = message;
  line.dir = "auto";
  document.getElementById("toast")?.append(line);
  setTimeout(() => line.remove(), 8000);
}

/** Sends a request. A hub that does not answer is an error with a text for people. */
async function reach(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error(text("The hub does not answer. Is it still running?", "hub 没有响应，可能已停止。"));
  }
}

/** Sends a request to the API. Throws an error with the text of the problem. */
export async function request(url, { method = "GET", body, headers = {}, signal } = {}) {
  const response = await reach(url, {
    method,
    body,
    signal,
    headers: {
      ...(method === "GET" ? {} : { "x-csrf-token": csrf, "content-type": "application/json" }),
      ...headers,
    },
  });
  const received = await response.text();
  if (!response.ok) {
    let detail = `${response.status} ${response.statusText}`;
    try {
      detail = JSON.parse(received).detail ?? detail;
    } catch {
      // Not a problem document: a proxy may have sent it.
    }
    throw new Error(detail);
  }
  return received;
}

/** Reads the server-sent events of a POST request, which `EventSource` cannot send. */
export async function* eventStream(url, { body, signal }) {
  const headers = { "x-csrf-token": csrf, "content-type": "application/json" };
  const response = await reach(url, { method: "POST", body, signal, headers });
  if (!response.ok) throw new Error((await response.json().catch(() => ({}))).detail ?? response.statusText);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let received = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    received += value;
    const events = received.split("\n\n");
    received = events.pop();
    for (const event of events) {
      // Other line separators of Unicode belong to the data.
      const lines = event.split("\n");
      const field = (prefix) => lines.find((line) => line.startsWith(prefix))?.slice(prefix.length);
      const [name, data] = [field("event: "), field("data: ")];
      if (name && data) yield { name, data: JSON.parse(data), raw: data };
    }
  }
}

/** Asks a question that names the consequence; the button names the action. Resolves to whether it was confirmed. */
export function confirmed(question, action) {
  const dialog = document.createElement("dialog");
  const paragraph = document.createElement("p");
  paragraph.textContent = question;
  paragraph.id = "question";
  dialog.setAttribute("aria-labelledby", "question");
  const actions = document.createElement("div");
  actions.className = "actions";
  const button = (label, value, className = "") => {
    const element = document.createElement("button");
    element.type = "button";
    element.textContent = label;
    element.className = className;
    element.addEventListener("click", () => dialog.close(value));
    actions.append(element);
  };
  button(text("Cancel", "取消"), "no");
  button(action, "yes", "primary");
  dialog.append(paragraph, actions);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
}

/** A button that copies a text. Only pages over HTTPS and of this machine may use the clipboard. */
function copyButton(read, label = text("Copy", "复制")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = label;
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(read());
      announce(text("Copied.", "已复制。"));
    } catch {
      announce(text("The browser does not allow it: select the text and copy it.", "浏览器不允许复制：请选中文本后自行复制。"));
    }
  });
  return button;
}

/** Corrects the address of the hub below a path prefix: a proxy removes it, so that only the browser knows it. */
function correctAddresses(root) {
  const part = root.querySelector("[data-gateway]");
  if (!part) return;
  const { gateway, gatewayPath } = part.dataset;
  const actual = new URL(gateway);
  actual.pathname = new URL(gatewayPath, location.href).pathname;
  if (actual.href === gateway) return;
  const texts = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(gateway, actual.href);
}

/** Adds a button to each command and snippet of a part of the page. */
function addCopyButtons(root) {
  for (const command of root.querySelectorAll("pre.command")) {
    const content = command.textContent;
    command.after(copyButton(() => content));
  }
}

/** Shows a secret that is not shown again, and the text of a client that contains it. */
export function showSecret(secret, snippet) {
  const dialog = document.createElement("dialog");
  const paragraph = document.createElement("p");
  paragraph.id = "secret-label";
  paragraph.textContent = text("Copy this key now. It is not shown again.", "请立即复制此密钥，它不会再次显示。");
  dialog.setAttribute("aria-labelledby", paragraph.id);
  const output = document.createElement("pre");
  output.textContent = secret;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "primary";
  close.textContent = text("Done", "完成");
  close.addEventListener("click", () => dialog.close());
  // The secret is not shown again, so that Esc must not close it by mistake.
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  const actions = document.createElement("div");
  actions.className = "actions";
  actions.append(copyButton(() => secret, text("Copy key", "复制密钥")), close);
  dialog.append(paragraph, output);
  if (snippet) {
    const label = document.createElement("p");
    label.textContent = text("The text for the file of the client:", "写入客户端文件的内容：");
    const content = document.createElement("pre");
    content.textContent = snippet.includes("KEY") ? snippet.replace("KEY", secret) : snippet;
    content.tabIndex = 0;
    dialog.append(label, content, copyButton(() => content.textContent, text("Copy text", "复制内容")));
  }
  dialog.append(actions);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve();
    });
  });
}

/** Whether an action runs after which another page is shown: what this page shows may not exist any more. */
let isLeaving = false;

/** Runs the action of a button. */
async function act(button) {
  const { post, method = "POST", body, confirm, confirmAction, then, done, show, secret, snippet } = button.dataset;
  if (confirm && !(await confirmed(confirm, confirmAction))) return;
  if (document.activeElement === button) pressed = button;
  button.disabled = true;
  isLeaving = then !== undefined;
  try {
    const received = await request(post, { method, body });
    if (secret) {
      // With the first key, the texts of the page have a place for it.
      if (snippet) await refresh();
      await showSecret(JSON.parse(received)[secret], document.getElementById(snippet)?.textContent);
    }
    if (done) announce(done);
    if (show) announce(JSON.parse(received)[show] ?? text("Done", "完成"));
    if (then) {
      location.assign(then);
      return;
    }
    await refresh();
  } catch (error) {
    isLeaving = false;
    announce(error.message);
    await refresh();
  } finally {
    button.disabled = false;
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-post]");
  if (button) act(button);
});

/** A time in the time zone of the browser; undefined if it is none. */
function localTime(text) {
  const at = new Date(text);
  if (Number.isNaN(at.valueOf())) return undefined;
  const two = (number) => String(number).padStart(2, "0");
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${date} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Shows times in the time zone of the browser. */
function localizeTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const shown = localTime(element.dateTime);
    if (shown === undefined) continue;
    element.textContent = shown;
    element.title = element.dateTime;
  }
  // The calls that a call can be compared with.
  for (const option of root.querySelectorAll("option[data-time]")) {
    const shown = localTime(option.dataset.time);
    if (shown !== undefined) option.textContent = `${shown} · ${option.dataset.state}`;
  }
}

/** Whether a person is using the content, so that it must not be replaced. */
function isInUse(main) {
  const active = document.activeElement;
  const isEditing = active && main.contains(active) && active.matches("input, select, textarea, button, summary");
  return isEditing || document.querySelector("dialog[open]") || !getSelection().isCollapsed;
}

/** Finds an element again after a refresh: itself, or the one with the same id, action or link. */
function findAgain(element) {
  if (element.isConnected) return element;
  const named = element.id ? `#${CSS.escape(element.id)}` : undefined;
  const attributes = ["data-post", "data-method", "href"].map((name) => {
    const value = element.getAttribute(name);
    return value === null ? `:not([${name}])` : `[${name}="${CSS.escape(value)}"]`;
  });
  const isAction = element.matches("[data-post], [href]");
  return document.querySelector(named ?? (isAction ? element.localName + attributes.join("") : "#main"));
}

/** The button whose action runs: it loses the focus when it is disabled. */
let pressed;
/** The number of the newest refresh: the response to an earlier one must not replace that of a later one. */
let refreshes = 0;

/** Reads the page again and replaces its content. Parts that scripts have built stay, and so does the focus. */
async function refresh() {
  const number = (refreshes += 1);
  const response = await fetch(location.href, { headers: { accept: "text/html" } });
  if (response.status === 401) {
    location.reload();
    return;
  }
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  if (number !== refreshes) return;
  const [before, after] = [document.getElementById("main"), fresh.getElementById("main")];
  if (!before || !after) return;
  const focused = document.activeElement === document.body ? pressed : document.activeElement;
  for (const part of before.querySelectorAll("[data-static]")) {
    after.querySelector(`#${part.id}`)?.replaceWith(part);
  }
  const open = [...before.querySelectorAll("details")].map((details) => details.open);
  after.querySelectorAll("details").forEach((details, index) => {
    details.open = open[index] ?? false;
  });
  before.replaceChildren(...after.childNodes);
  localizeTimes(before);
  correctAddresses(before);
  addCopyButtons(before);
  const [navigation, freshNavigation] = [document.querySelector(".side nav"), fresh.querySelector(".side nav")];
  if (navigation && freshNavigation) navigation.replaceWith(freshNavigation);
  pressed = undefined;
  if (focused && focused !== document.activeElement) (findAgain(focused) ?? before).focus({ preventScroll: true });
}

/** How long a lost connection is not shown, in milliseconds: it often comes back. */
const OFFLINE_DELAY = 4000;
let lost;

/** Shows that the hub does not answer, or that it does again. */
function showOffline(isOffline) {
  const shown = document.getElementById("offline");
  if (!isOffline) {
    shown?.remove();
  } else if (!shown) {
    const note = document.createElement("p");
    note.id = "offline";
    note.className = "problem";
    note.setAttribute("role", "status");
    note.textContent = text(
      "The hub does not answer. This page shows its last state, and goes on when the hub is back.",
      "hub 没有响应。页面显示的是最后的状态，hub 恢复后会自动更新。",
    );
    document.getElementById("main")?.prepend(note);
  }
}

/** Follows changes of the hub. The browser reconnects by itself, also after a restart of the hub. */
function follow() {
  let timer;
  const stream = new EventSource(`${apiRoot}events?since=${encodeURIComponent(meta("events"))}`);
  const update = () => {
    const main = document.getElementById("main");
    if (isLeaving || document.hidden || isInUse(main)) {
      timer = setTimeout(update, 1000);
      return;
    }
    refresh().catch(() => {});
  };
  stream.addEventListener("change", (event) => {
    if (JSON.parse(event.data).topics.length === 0) return;
    clearTimeout(timer);
    timer = setTimeout(update, 150);
  });
  stream.addEventListener("open", () => {
    clearTimeout(lost);
    lost = undefined;
    showOffline(false);
  });
  // A response that is not a stream closes it for good: the hub may be starting.
  stream.addEventListener("error", () => {
    lost ??= setTimeout(() => showOffline(true), OFFLINE_DELAY);
    if (stream.readyState === EventSource.CLOSED) setTimeout(follow, 3000);
  });
  addEventListener("pagehide", () => stream.close(), { once: true });
}

/** Parts that change without an event, such as the state of a cluster, are read again at intervals. */
setInterval(() => {
  const main = document.getElementById("main");
  if (!main?.querySelector("[data-refresh]") || isLeaving || document.hidden || isInUse(main)) return;
  refresh().catch(() => {});
}, 5000);

/** `g` and a letter open a page, `/` goes to the search field. */
let prefix = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea, dialog")) return;
  if (event.key === "/") {
    const field = document.querySelector("[data-focus='/'], main input[type=search]");
    if (field) {
      event.preventDefault();
      field.focus();
    }
  } else if (prefix) {
    prefix = false;
    document.querySelector(`a[data-shortcut="${CSS.escape(event.key)}"]`)?.click();
  } else if (event.key === "g") {
    prefix = true;
    setTimeout(() => {
      prefix = false;
    }, 1500);
  }
});

localizeTimes(document);
correctAddresses(document);
addCopyButtons(document);
// A search that has found nothing yet goes on by itself.
const continuation = document.querySelector("a[data-continue]");
if (continuation) location.replace(continuation.href);
else if (csrf) follow();
const asking = document.getElementById("ask");
if (asking) import("./ask.js").then((module) => module.start(asking));
const settings = document.getElementById("settings-editor");
if (settings) import("./settings.js").then((module) => module.start(settings));
const newKey = document.getElementById("new-key");
if (newKey) import("./access.js").then((module) => module.startNewKey(newKey));
const simulator = document.getElementById("simulator");
if (simulator) import("./access.js").then((module) => module.startSimulator(simulator));
const addition = document.getElementById("add-server");
if (addition) import("./add_server.js").then((module) => module.start(addition));
const edit = document.getElementById("edit-server");
if (edit) import("./edit_server.js").then((module) => module.start(edit));
const trial = document.getElementById("trial");
if (trial) import("./try_tool.js").then((module) => module.start(trial));
