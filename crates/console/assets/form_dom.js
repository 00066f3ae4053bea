// DOM helpers of the form generator. Foreign text passes through here only.

const MAX_TEXT = 3000; // characters shown of one schema text

// Properties whose name holds "-" are set as attributes, all others as DOM
// properties; text children become text nodes.
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, setting] of Object.entries(properties)) {
    if (setting === undefined) continue;
    if (name.includes('-')) element.setAttribute(name, setting);
    else element[name] = setting;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const clip = (text, size = MAX_TEXT) => (text.length > size ? `${text.slice(0, size)}…` : text);
export const plain = (name) => name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
export const fill = (template, values) => template.replace(/\{(\w+)\}/g, (_, key) => values[key] ?? '');
export const focusIn = (element) => element.querySelector('input:not([readonly]), textarea, select, button')?.focus();
