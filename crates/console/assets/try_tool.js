// "Try it": a form from the tool's schema with the JSON beside it, checked by the hub while a person types.

import { announce, confirmed, eventStream, request, text } from "./console.js";
import { parseJson, stringifyJson } from "./json_text.js";
import { createQuestion } from "./question.js";
import { LABELS_EN, LABELS_ZH, createForm } from "./schema_form.js";

/** How long after the last change the arguments are checked, in milliseconds. */
const CHECK_DELAY = 350;

function element(name, properties = {}, ...children) {
  const created = Object.assign(document.createElement(name), properties);
  created.append(...children);
  return created;
}

/** The body of a request with arguments, whose numbers are not parsed here. */
function withArguments(argumentsText, profile) {
  return `{"profile":${JSON.stringify(profile ?? null)},"outcome":true,"arguments":${argumentsText}}`;
}

/** A duration for people, rounded as on the pages of calls. */
function duration(ms) {
  const tenths = (value) => Math.round(value * 10) / 10;
  if (Math.round(ms * 1000) < 1000) return `${Math.round(ms * 1000)} µs`;
  if (tenths(ms) < 10) return `${tenths(ms).toFixed(1)} ms`;
  if (Math.round(ms) < 1000) return `${Math.round(ms)} ms`;
  if (tenths(ms / 1000) < 60) return `${tenths(ms / 1000).toFixed(1)} s`;
  return `${Math.round(ms / 60000)} min`;
}

/** Builds the form inside a container. */
export async function start(container) {
  const { tool: toolUrl, calls: callsUrl, callsPage, questions: questionsUrl, profile } = container.dataset;
  const json = element("textarea", { id: "trial-json", spellcheck: false, rows: 12 });
  const message = element("p", { className: "field-error", id: "trial-message" });
  message.setAttribute("role", "status");
  const call = element("button", { type: "button", className: "primary", textContent: text("Call", "调用") });
  const cancel = element("button", { type: "button", textContent: text("Cancel", "取消"), hidden: true });
  const result = element("div", { id: "trial-result" });
  result.setAttribute("aria-live", "polite");
  const jsonMessage = element("p", { className: "field-error", id: "trial-json-message" });
  jsonMessage.setAttribute("role", "status");

  // As text: numbers of JavaScript would lose digits.
  let schema = "{}";
  let initial = "{}";
  try {
    const definition = profile ? `${toolUrl}?profile=${encodeURIComponent(profile)}` : toolUrl;
    schema = stringifyJson(parseJson(await request(definition)).get("definition").get("inputSchema") ?? new Map());
    const earlier = new URLSearchParams(location.search).get("call");
    if (earlier) {
      const record = parseJson(await request(`${callsUrl}/${encodeURIComponent(earlier)}`));
      const stored = record.get("arguments");
      if (stored.has("$truncated")) {
        message.textContent = text(
          "The arguments of that call were too long to be stored in full, so they cannot be used again.",
          "该次调用的参数过长，未完整保存，无法再次使用。",
        );
      } else {
        initial = stringifyJson(stored);
      }
    }
  } catch (error) {
    container.replaceChildren(element("p", { className: "problem", textContent: error.message }));
    return;
  }

  const form = createForm(schema, {
    value: initial,
    labels: text(LABELS_EN, LABELS_ZH),
    onChange: () => {
      json.value = form.getValue(2);
      isJson();
      scheduleCheck();
    },
  });
  json.value = form.getValue(2);
  json.addEventListener("input", () => {
    if (!isJson()) return;
    form.setValue(json.value);
    scheduleCheck();
  });

  /** Whether the text of the JSON view is JSON. Shows at the view why it is not. */
  function isJson() {
    let problem = "";
    try {
      JSON.parse(json.value);
    } catch (error) {
      problem = text(`This is not valid JSON: ${error.message}`, `不是有效的 JSON：${error.message}`);
    }
    jsonMessage.textContent = problem;
    if (problem) {
      json.setAttribute("aria-invalid", "true");
      json.setAttribute("aria-describedby", jsonMessage.id);
    } else {
      json.removeAttribute("aria-invalid");
      json.removeAttribute("aria-describedby");
    }
    return problem === "";
  }

  let timer;
  function scheduleCheck() {
    clearTimeout(timer);
    timer = setTimeout(check, CHECK_DELAY);
  }

  async function check() {
    // The text may have changed since the check was scheduled.
    if (!isJson()) return false;
    try {
      const body = withArguments(json.value, profile);
      const checked = JSON.parse(await request(`${toolUrl}:check`, { method: "POST", body }));
      const homeless = form.setErrors(checked.problems) ?? [];
      const isShownBeside = checked.problems.length > 0 && homeless.length === 0;
      message.textContent = checked.valid || isShownBeside ? "" : checked.message;
      return checked.valid;
    } catch (error) {
      message.textContent = error.message;
      return false;
    }
  }

  let running;
  cancel.addEventListener("click", () => running?.abort());
  call.addEventListener("click", run);
  // A click does nothing while a call runs: the button is disabled.
  container.addEventListener("keydown", (event) => {
    const { target } = event;
    if (event.key !== "Enter" || event.isComposing || event.shiftKey || event.altKey || event.defaultPrevented) return;
    const isForm = form.element.contains(target) || target === json;
    const isLine = target.matches("input:not([type=checkbox]):not([type=search])");
    if (!isForm || !(event.ctrlKey || event.metaKey || isLine)) return;
    event.preventDefault();
    call.click();
  });

  /** Shows that arguments were not sent. The result of an earlier call is removed: it is not that of this attempt. */
  function refuse() {
    result.replaceChildren();
    container.querySelector("[aria-invalid=true]:is(input, select, textarea)")?.focus();
  }

  async function run() {
    const [problem] = form.getProblems();
    if (problem) {
      message.textContent = text(`${problem.path}: ${problem.message}`, `${problem.path}：${problem.message}`);
      refuse();
      return;
    }
    // Wrong arguments are not sent, and not confirmed first.
    if (!(await check())) {
      refuse();
      return;
    }
    const { confirm, confirmAction } = container.dataset;
    if (confirm && !(await confirmed(confirm, confirmAction))) return;
    running = new AbortController();
    const startedFrom = document.activeElement;
    call.disabled = true;
    cancel.hidden = false;
    result.replaceChildren(element("p", { className: "muted", textContent: text("Running …", "执行中……") }));
    try {
      const body = withArguments(json.value, profile);
      let received;
      for await (const event of eventStream(`${toolUrl}:run`, { body, signal: running.signal })) {
        if (event.name === "result") received = event.raw;
        else report(event);
      }
      if (received === undefined) throw new Error(text("The connection was lost. The call may have taken effect.", "连接中断，调用可能已经生效。"));
      show(received);
      focusResult(result.querySelector("#trial-head"), startedFrom);
      await showRecord(JSON.parse(received).outcome?.handle);
    } catch (error) {
      const isCancelled = error.name === "AbortError";
      const shown = isCancelled ? text("Cancelled. It may have taken effect.", "已取消。可能已经生效。") : error.message;
      const shownProblem = element("p", { className: "problem", textContent: shown, tabIndex: -1 });
      result.replaceChildren(shownProblem);
      focusResult(shownProblem, startedFrom);
      if (!isCancelled) announce(shown);
    } finally {
      // Also after an error of the page: a call that cannot be followed must not go on.
      running.abort();
      call.disabled = false;
      cancel.hidden = true;
    }
  }

  /** Moves the focus to a result, unless the person has moved on meanwhile. A button loses the focus when it is disabled. */
  function focusResult(target, startedFrom) {
    const active = document.activeElement;
    if (active === document.body || active === startedFrom || active === cancel) target.focus();
  }

  /** Shows what happens while the call runs. */
  function report({ name, data, raw }) {
    if (name === "ask") {
      const answerUrl = `${questionsUrl}/${encodeURIComponent(data.id)}:answer`;
      const question = createQuestion(data.method, parseJson(raw).get("params") ?? new Map(), answerUrl);
      result.append(question);
      question.querySelector("input, textarea, button")?.focus();
    } else if (name === "progress") {
      let bar = result.querySelector("progress");
      if (!bar) {
        bar = element("progress", { max: 1 });
        bar.setAttribute("aria-label", text("Progress", "进度"));
        result.append(bar, element("p", { className: "muted small", id: "trial-progress" }));
      }
      if (typeof data.total === "number" && data.total > 0) bar.value = Math.min(1, data.progress / data.total);
      const total = data.total === undefined ? "" : ` / ${data.total}`;
      result.querySelector("#trial-progress").textContent = `${data.progress}${total} ${data.message ?? ""}`;
    } else if (name === "notice") {
      const content = data.params?.data ?? data.params ?? "";
      const shown = typeof content === "string" ? content : JSON.stringify(content);
      result.append(element("p", { className: "muted small pre-line", textContent: shown }));
    }
  }

  /** Shows a result as text. Nothing in it is interpreted. */
  function show(received) {
    const outcome = JSON.parse(received);
    const exact = parseJson(received).get("result");
    const state = element("span", {
      className: `state ${outcome.success ? "good" : "bad"}`,
      textContent: outcome.success ? text("succeeded", "成功") : text("failed", "失败"),
    });
    const title = element("h3", { id: "trial-head", tabIndex: -1, textContent: text("Result", "结果") });
    const head = element("p", { id: "trial-state" }, state);
    const parts = [title, head];
    if (outcome.error) parts.push(element("p", { className: "problem", textContent: outcome.error, dir: "auto" }));
    for (const [index, block] of (outcome.result?.content ?? []).entries()) {
      const isImage = block?.type === "image" && /^image\/(png|jpeg|gif|webp)$/.test(block.mimeType);
      if (isImage && /^[A-Za-z0-9+/=]*$/.test(block.data)) {
        const source = `data:${block.mimeType};base64,${block.data}`;
        parts.push(element("img", { className: "result", src: source, alt: text("Image", "图像") }));
      } else {
        const other = () => stringifyJson(exact.get("content")[index], 2);
        parts.push(output(block?.type === "text" ? String(block.text) : other()));
      }
    }
    if (outcome.result?.structuredContent !== undefined) {
      parts.push(output(stringifyJson(exact.get("structuredContent"), 2)));
    }
    result.replaceChildren(...parts);
  }

  /** Links the record of the call, with the duration that all pages show. */
  async function showRecord(id) {
    if (!id) return;
    let record;
    try {
      record = JSON.parse(await request(`${callsUrl}/${encodeURIComponent(id)}`));
    } catch {
      // The call log may be switched off.
      return;
    }
    const took = record.took_ms === null ? "" : ` ${duration(record.took_ms)} · `;
    const link = element("a", { href: `${callsPage}/${encodeURIComponent(id)}`, textContent: text("Open this call", "查看此次调用") });
    result.querySelector("#trial-state")?.append(took || " ", link);
  }

  function output(content) {
    const block = element("pre", { textContent: content, tabIndex: 0, dir: "auto" });
    block.setAttribute("role", "region");
    block.setAttribute("aria-label", text("Result", "结果"));
    return block;
  }

  const label = element("label", { htmlFor: json.id, textContent: "JSON", className: "muted small" });
  container.replaceChildren(
    element("div", { className: "trial" }, form.element, element("div", {}, label, json, jsonMessage)),
    message,
    element("div", { className: "trial-actions" }, call, cancel),
    result,
  );
  if (initial !== "{}") check();
}
