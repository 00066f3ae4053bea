// Shared by the editors that show a change before it is written.

/** The signs of the lines of a change. */
export const SIGNS = { added: ["ins", "+ "], removed: ["del", "- "], kept: ["span", "  "] };

/** Runs an action while its buttons are disabled; its error becomes the message. */
export async function attempt(buttons, message, action) {
  for (const button of buttons) button.disabled = true;
  try {
    await action();
  } catch (error) {
    message.textContent = error.message;
  } finally {
    for (const button of buttons) button.disabled = false;
  }
}
