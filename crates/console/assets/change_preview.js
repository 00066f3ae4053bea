// Shared by the editors that show a change before it is written.

/** The signs of the lines of a change. */
export const SIGNS = { added: ["ins", "+ "], removed: ["del", "- "], kept: ["span", "  "] };

/** An error in the input of one control. */
export class FieldError extends Error {
  constructor(control, message) {
    super(message);
    this.control = control;
  }
}

/** Shows an error. The control that it is about is marked and gets the focus. */
function show(message, error) {
  message.textContent = error.message;
  const { control } = error;
  if (!control) return;
  control.setAttribute("aria-invalid", "true");
  control.addEventListener("input", () => control.removeAttribute("aria-invalid"), { once: true });
  control.focus();
}

/** Runs an action while its buttons are disabled; its error becomes the message. A button gets back the focus that it had. */
export async function attempt(buttons, message, action) {
  const focused = document.activeElement;
  for (const button of buttons) button.disabled = true;
  let failure;
  try {
    await action();
  } catch (error) {
    failure = error;
  } finally {
    for (const button of buttons) button.disabled = false;
    if (buttons.includes(focused) && document.activeElement === document.body) focused.focus();
  }
  if (failure) show(message, failure);
}
