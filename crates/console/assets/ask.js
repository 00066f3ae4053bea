// The page "Ask": a request to the agent, its steps as they happen, its confirmations, and its answer.

import { eventStream, request, text } from "./console.js";
import { parseJson, stringifyJson } from "./json_text.js";

function element(name, properties = {}, ...children) {
  const created = Object.assign(document.createElement(name), properties);
  created.append(...children);
  return created;
}

const STATUS_CLASS = { succeeded: "good", failed: "bad", running: "odd", unknown: "odd" };
const STATUS_LABEL = {
  succeeded: text("succeeded", "成功"),
  failed: text("failed", "失败"),
  running: text("running", "执行中"),
  unknown: text("unknown", "结果未知"),
};

/** Builds the page inside a container. */
export function start(container) {
  const { ask: askUrl, calls, plan: planUrl } = container.dataset;
  const log = element("div", { className: "conversation" });
  log.setAttribute("role", "log");
  log.setAttribute("aria-label", text("Conversation", "对话"));
  const field = element("textarea", { id: "ask-request", rows: 2, required: true, dir: "auto" });
  const label = element("label", { htmlFor: field.id, textContent: text("Request", "请求") });
  const send = element("button", { type: "submit", className: "primary", textContent: text("Ask", "提问") });
  const plan = element("button", { type: "button", textContent: text("Show the plan", "查看计划") });
  const cancel = element("button", { type: "button", textContent: text("Cancel", "取消"), hidden: true });
  const planned = element("div", { className: "plan" });
  planned.setAttribute("aria-live", "polite");
  const form = element(
    "form",
    { className: "stack" },
    element("div", { className: "field" }, label, field),
    element("div", { className: "trial-actions" }, send, plan, cancel),
    planned,
  );
  let conversation;
  let running;

  cancel.addEventListener("click", () => running?.abort());
  plan.addEventListener("click", async () => {
    const wanted = field.value.trim();
    if (!wanted) return;
    plan.disabled = true;
    planned.replaceChildren(element("p", { className: "muted", textContent: text("Planning …", "正在制定计划……") }));
    try {
      const body = JSON.stringify({ request: wanted, conversation });
      showPlan(parseJson(await request(planUrl, { method: "POST", body })));
    } catch (error) {
      planned.replaceChildren(element("p", { className: "problem", textContent: error.message }));
    } finally {
      plan.disabled = false;
    }
  });

  /** Shows the steps of a plan. Nothing of it has run. */
  function showPlan(made) {
    const steps = made.get("steps").map((step) => {
      const given = step.get("arguments").map((argument) => {
        const value = argument.get("result_of") === null
          ? stringifyJson(argument.get("value"))
          : text(`the result of step ${argument.get("result_of")}`, `步骤 ${argument.get("result_of")} 的结果`);
        return element("li", { textContent: `${argument.get("name")}: ${value}` });
      });
      const tool = step.get("tool") ?? text("without a tool", "不用工具");
      const line = element("li", {}, element("strong", { textContent: tool }));
      if (step.get("server") !== null) line.append(` · ${step.get("server")}`);
      if (step.get("may_change")) {
        line.append(" ", element("span", { className: "state odd", textContent: text("may change something", "可能有改动") }));
      }
      line.append(element("ul", { className: "plain small" }, ...given));
      return line;
    });
    const notes = [...made.get("problems"), ...made.get("unserved"), ...made.get("doubts")];
    planned.replaceChildren(
      element("h2", { textContent: steps.length ? text("Plan", "计划") : text("No plan", "没有计划") }),
      element("ol", {}, ...steps),
      ...notes.map((note) => element("p", { className: "problem", textContent: note })),
    );
  }

  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const wanted = field.value.trim();
    if (!wanted || running) return;
    field.value = "";
    planned.replaceChildren();
    const turn = createTurn(wanted);
    log.append(turn.element);
    running = new AbortController();
    cancel.hidden = false;
    send.disabled = true;
    try {
      const body = JSON.stringify({ request: wanted, conversation });
      for await (const { name, data } of eventStream(askUrl, { body, signal: running.signal })) {
        if (name === "start") conversation = data.conversation;
        else turn.receive(name, data);
      }
      turn.finish();
    } catch (error) {
      turn.fail(error.name === "AbortError" ? text("Cancelled.", "已取消。") : error.message);
    } finally {
      running = undefined;
      cancel.hidden = true;
      send.disabled = false;
      field.focus();
    }
  });

  function createTurn(wanted) {
    const steps = element("ul", { className: "plain small" });
    const answer = element("div", { className: "answer pre-line", dir: "auto" });
    const waiting = element("p", { className: "muted", textContent: text("Working …", "处理中……") });
    const known = new Map();
    const turn = element(
      "section",
      { className: "card" },
      element("h2", { textContent: wanted, dir: "auto" }),
      steps,
      answer,
      waiting,
    );

    function step({ id, tool, status }) {
      const line = known.get(id) ?? element("li");
      known.set(id, line);
      const state = element("span", { className: `state ${STATUS_CLASS[status] ?? ""}`, textContent: STATUS_LABEL[status] ?? status });
      const link = element("a", { href: `${calls}/${encodeURIComponent(id)}`, textContent: tool });
      line.replaceChildren(state, " ", link);
      steps.append(line);
    }

    /** Shows what would be changed, and sends the decision. */
    function confirm({ id, text: change, deletes, arguments: given }) {
      const detail = element("pre", { textContent: JSON.stringify(given, null, 2), tabIndex: 0 });
      detail.setAttribute("role", "region");
      detail.setAttribute("aria-label", text("Arguments", "参数"));
      const box = element("div", { className: deletes ? "problem" : "card" }, element("p", { textContent: change }), detail);
      const decide = (caption, allow, className = "") => {
        const button = element("button", { type: "button", textContent: caption, className });
        button.addEventListener("click", async () => {
          try {
            const url = `${askUrl}/${encodeURIComponent(id)}:confirm`;
            await request(url, { method: "POST", body: JSON.stringify({ allow }) });
            box.replaceChildren(element("p", { textContent: `${change} — ${caption}` }));
          } catch (error) {
            box.append(element("p", { className: "field-error", textContent: error.message }));
          }
        });
        return button;
      };
      const actions = element(
        "div",
        { className: "trial-actions" },
        decide(text("Run it", "执行"), true, "primary"),
        decide(text("Do not run", "不执行"), false),
      );
      box.append(actions);
      turn.insertBefore(box, waiting);
      actions.firstChild.focus();
    }

    return {
      element: turn,
      receive(name, data) {
        if (name === "step") step(data);
        else if (name === "delta") answer.append(data.text);
        else if (name === "confirm") confirm(data);
        else if (name === "answer") {
          answer.textContent = data.answer ?? "";
          for (const note of data.notes ?? []) answer.append(element("p", { className: "muted small", textContent: note }));
        }
      },
      finish() {
        waiting.remove();
      },
      fail(message) {
        waiting.remove();
        turn.append(element("p", { className: "problem", textContent: message }));
      },
    };
  }

  container.replaceChildren(log, form);
}
