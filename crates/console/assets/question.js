// A question of a server that a running call waits for: a form, an address to open, or a request for a model's reply.

import { request, text } from "./console.js";
import { h } from "./form_dom.js";
import { stringifyJson } from "./json_text.js";
import { LABELS_EN, LABELS_ZH, createForm } from "./schema_form.js";

/** Only addresses of the web can be opened. */
const isWebAddress = (address) => /^https?:\/\//i.test(address ?? "");

/** An address in which characters that hide or reorder text are written as escapes. */
const visible = (address) => address.replace(/[^\x20-\x7e]/gu, (letter) => encodeURI(letter.isWellFormed() ? letter : "\ufffd"));

/** The part of the page that asks. `params` are the exact parsed parameters; `answerUrl` receives the answer. */
export function createQuestion(method, params, answerUrl) {
  const asked = params instanceof Map ? params : new Map();
  const message = h("p", { className: "field-error", role: "status" });
  const card = h("section", { className: "card question" });
  card.setAttribute("aria-label", text("Question of the server", "服务器的输入请求"));
  const buttons = h("div", { className: "trial-actions" });

  async function answer(result) {
    for (const button of buttons.children) button.disabled = true;
    try {
      await request(answerUrl, { method: "POST", body: result === undefined ? "{}" : `{"result":${result}}` });
      card.replaceChildren(h("p", { className: "muted", textContent: text("Answered.", "已回答。") }));
    } catch (error) {
      message.textContent = error.message;
      for (const button of buttons.children) button.disabled = false;
    }
  }

  function addButton(label, action, className = "") {
    const button = h("button", { type: "button", className, textContent: label });
    button.addEventListener("click", action);
    buttons.append(button);
  }

  if (method === "sampling/createMessage") {
    const reply = h("textarea", { rows: 4, id: "sampling-reply", dir: "auto" });
    card.append(
      h("h3", { textContent: text("The server asks for a model's reply", "服务器请求模型回复") }),
      h("pre", { textContent: stringifyJson(asked, 2), tabIndex: 0, role: "region" }),
      h("label", { htmlFor: reply.id, textContent: text("Your reply instead of a model's", "由你代替模型回复") }),
      reply,
    );
    addButton(text("Reply", "回复"), () => answer(JSON.stringify({
      role: "assistant",
      content: { type: "text", text: reply.value },
      model: "a person",
      stopReason: "endTurn",
    })), "primary");
    addButton(text("Refuse", "拒绝"), () => answer(undefined));
  } else {
    card.append(
      h("h3", { textContent: text("The server asks", "服务器请求输入") }),
      h("p", { className: "pre-line", dir: "auto", textContent: String(asked.get("message") ?? "") }),
    );
    if (asked.get("mode") === "url") {
      const address = String(asked.get("url") ?? "");
      card.append(h("pre", { textContent: visible(address) }));
      if (isWebAddress(address)) {
        card.append(h("p", {}, h("a", {
          href: address,
          target: "_blank",
          rel: "noopener noreferrer",
          textContent: text("Open this address in a new tab", "在新标签页中打开此地址"),
        })));
      }
      addButton(text("Done", "完成"), () => answer('{"action":"accept"}'), "primary");
    } else {
      const schema = stringifyJson(asked.get("requestedSchema") ?? new Map());
      const form = createForm(schema, { value: "{}", labels: text(LABELS_EN, LABELS_ZH) });
      card.append(form.element);
      addButton(text("Send", "发送"), () => {
        const [problem] = form.getProblems();
        if (problem) message.textContent = `${problem.path}: ${problem.message}`;
        else answer(`{"action":"accept","content":${form.getValue()}}`);
      }, "primary");
    }
    addButton(text("Decline", "拒绝"), () => answer('{"action":"decline"}'));
  }
  card.append(message, buttons);
  return card;
}
