// A form for a JSON Schema, for the "try it" page of the console.
//
// createForm(schema, { value, labels, onChange }) returns
//   element            the form, to be put into the page
//   getValue(indent)   the instance as JSON text
//   setValue(text)     shows that instance; false (and no change) when the
//                      text is not JSON; without text, the initial value
//   setErrors(list)    [{ path, message }]: shows each beside the nearest
//                      field, returns those which have none
//   getProblems()      [{ path, message }]: input which is not JSON (yet) and
//                      is therefore left out of getValue()
//
// Values go in and out as text because JavaScript numbers would lose digits.
// `schema` may be an object or, to keep its numbers exact as well, JSON text.
//
// Invariants:
// - setValue(text), getValue() is the same JSON value, whatever the schema
//   says. What a field cannot show exactly is shown as JSON text instead.
// - Schema text reaches the page through text nodes and DOM properties only,
//   and no foreign regular expression is run.
// - Work per user action is bounded: nested fields are built when opened.
//
// The tree: a Slot stands for one place of the instance. It owns the label,
// the toggles ("send", "null") and the messages, and has an editor which
// depends on the kind of schema (form_editors.js).

import { JsonNumber, parseJson, stringifyJson } from './json_text.js';
import { ABSENT, SchemaDocument, expandSchema, initialValue } from './schema_view.js';
import { EDITORS, accepts, emptyValue } from './form_editors.js';
import { clip, fill, focusIn, h, plain } from './form_dom.js';
import { LABELS_EN, LABELS_ZH } from './form_labels.js';

export { LABELS_EN, LABELS_ZH };

const OPEN_DEPTH = 6; // deeper groups are opened by hand
const BUDGET = 600; // slots built by one action before groups stay closed
const COMPOUND = new Set(['object', 'array', 'union']);
const HAS_INCLUDE = new Set(['string', 'object', 'array', 'const']);
const HAS_NULL = new Set(['string', 'number', 'object', 'array']);
let formCount = 0;

export function createForm(schema, { value, labels, onChange } = {}) {
  return new Form(schema, value, { ...LABELS_EN, ...labels }, onChange).api();
}

class Form {
  constructor(schema, value, labels, onChange) {
    this.labels = labels;
    this.types = { ...LABELS_EN.types, ...labels.types };
    this.onChange = onChange;
    this.prefix = `sf${(formCount += 1)}-`;
    this.idCount = 0;
    this.refill();
    let root;
    try {
      root = parseJson(typeof schema === 'string' ? schema : JSON.stringify(schema));
    } catch {
      root = true; // not a schema: any JSON
    }
    this.doc = new SchemaDocument(root);
    const title = root instanceof Map && typeof root.get('title') === 'string' && root.get('title');
    this.root = new Slot(this, null, [root], { label: title || labels.root, required: true, isRoot: true });
    this.element = h('div', { className: 'sf-form' }, this.root.element);
    if (typeof value !== 'string' || !this.setValue(value)) this.setValue();
  }

  api() {
    return {
      element: this.element,
      getValue: (indent = 0) => {
        const value = this.root.get();
        return stringifyJson(value === ABSENT ? null : value, indent);
      },
      setValue: (text) => this.setValue(text),
      setErrors: (errors) => this.setErrors(errors),
      getProblems: () => {
        const problems = [];
        this.root.visit((slot, path) => slot.editor?.problem && problems.push({ path, message: slot.editor.problem }));
        return problems;
      },
    };
  }

  setValue(text) {
    let value;
    this.budget = BUDGET;
    try {
      value = text === undefined ? this.initial(this.root.parts, true) : parseJson(text);
    } catch {
      return false;
    }
    if (value === ABSENT && this.root.isAny()) value = new Map(); // arguments are an object
    this.root.set(value);
    return true;
  }

  initial(parts, required, choices) {
    try {
      return initialValue(this.doc, parts, required, choices);
    } catch {
      return ABSENT; // for instance, nested too deeply for the evaluator
    }
  }

  setErrors(errors) {
    this.root.visit((slot) => slot.showErrors([]));
    const bySlot = new Map();
    const homeless = [];
    for (const error of Array.isArray(errors) ? errors : []) {
      const path = String(error?.path ?? '');
      const tokens = path.split('/').slice(1).map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
      const { slot, used } = this.root.locate(tokens);
      const lost = (path && !path.startsWith('/')) || (tokens.length && slot === this.root && COMPOUND.has(slot.kind));
      if (lost) {
        homeless.push(error);
        continue;
      }
      const rest = path.split('/').slice(used + 1).join('/');
      const message = clip(String(error?.message ?? ''));
      if (!bySlot.has(slot)) bySlot.set(slot, []);
      bySlot.get(slot).push(rest ? `/${rest}: ${message}` : message);
    }
    for (const [slot, messages] of bySlot) {
      slot.showErrors(messages);
      for (let at = slot; at.parent; at = at.parent) at.parent.editor?.reveal?.(at);
    }
    return homeless;
  }

  // At the beginning of each action of the user or the page.
  refill() {
    this.budget = BUDGET;
  }

  id() {
    return this.prefix + (this.idCount += 1);
  }

  // Called by an editor after the user changed it.
  changed(slot) {
    slot.showErrors([]);
    this.budget = BUDGET;
    for (let at = slot; at; at = at.parent) at.editor?.refresh?.();
    this.onChange?.();
  }

  button(text, action, className = 'sf-button') {
    return h('button', { type: 'button', className, onclick: action }, text);
  }

  // The accessible name begins with the visible text.
  nameTool(tool, action, name) {
    const text = fill(this.labels.named, { action, name: clip(name, 80) });
    tool.setAttribute('aria-label', text);
    if (tool.classList.contains('sf-icon')) tool.title = text;
  }
}

class Slot {
  // options: label, required, isRoot, isItem (of an array), bare (inside a
  // union, which has the legend already), choices, note.
  constructor(form, parent, parts, options) {
    Object.assign(this, { form, parent, parts, required: false, choices: new Map() }, options);
    this.depth = parent ? parent.depth + (options.bare ? 0 : 1) : 0;
    this.element = h('div', { className: 'sf-slot' });
    this.asJson = false; // the user asked for JSON
    this.errors = [];
  }

  child(parts, options) {
    return new Slot(this.form, this, parts, options);
  }

  isAny() {
    return this.kind === 'json' || expandSchema(this.form.doc, this.parts).kind === 'json';
  }

  set(value) {
    this.form.budget -= 1;
    try {
      this.build(value, this.asJson);
    } catch {
      this.build(value, true);
    }
  }

  get() {
    if (this.state === 'absent') return ABSENT;
    if (this.state === 'null') return null;
    return this.editor ? this.editor.get() : this.held;
  }

  // Rebuilds everything from the value.
  build(value, asJson) {
    const { form } = this;
    this.view = this.expand(value);
    this.formKind = this.view.kind;
    this.isNull = value === null && this.view.nullable && HAS_NULL.has(this.formKind);
    this.misfit = value !== ABSENT && !this.isNull && !accepts(this.view, value);
    this.kind = asJson || this.misfit ? 'json' : this.formKind;
    if (this.kind === 'json') this.isNull = false;
    const hasInclude = HAS_INCLUDE.has(this.kind);
    this.state = this.isNull ? 'null' : value === ABSENT && hasInclude ? 'absent' : 'value';
    this.pinned = value === ''; // an empty text which was asked for
    this.stash = undefined;
    this.editor = null;
    this.isGroup = COMPOUND.has(this.kind);
    this.controlId = form.id();
    this.ids = { description: form.id(), hint: form.id(), error: form.id() };
    this.buildShell(hasInclude);
    this.mount(value);
    this.showErrors([]);
  }

  expand(value) {
    try {
      return expandSchema(this.form.doc, this.parts, value === ABSENT ? undefined : value, this.choices);
    } catch {
      return expandSchema(this.form.doc, [false]);
    }
  }

  buildShell(hasInclude) {
    const { form, view, ids } = this;
    const { labels } = form;
    const text = (keyword) => {
      const found = view.keywords.get(keyword);
      return typeof found === 'string' ? clip(found) : '';
    };
    this.labelText = h('span', { className: 'sf-label-text' });
    this.mark = h('span', { className: 'sf-required' }, labels.required);
    const marks = [this.labelText];
    const title = text('title');
    if (title && !this.isRoot && !this.bare && plain(title) !== plain(this.label)) {
      marks.push(h('span', { className: 'sf-title', dir: 'auto' }, clip(title, 200)));
    }
    marks.push(this.mark);
    if (view.keywords.get('deprecated') === true) marks.push(h('span', { className: 'sf-deprecated' }, labels.deprecated));
    this.tools = h('div', { className: 'sf-tools' });
    this.includeBox = hasInclude && !this.isItem && !this.isRoot && !this.bare ? this.toggle(labels.include, () => this.setIncluded(this.includeBox.checked, true)) : null;
    this.nullBox = view.nullable && HAS_NULL.has(this.kind) && !(this.bare && this.parent.view.nullable) ? this.toggle(labels.isNull, () => this.setNull(this.nullBox.checked)) : null;
    this.jsonButton = this.misfit || this.kind !== this.formKind || (this.isGroup && !this.isRoot && !this.bare) ? this.modeButton() : null;
    if (this.jsonButton) this.tools.append(this.jsonButton);

    const description = this.bare ? '' : text('description');
    const hint = this.hint();
    this.descriptionElement = description && h('p', { className: 'sf-description', id: ids.description, dir: 'auto' }, description);
    this.hintElement = hint && h('p', { className: 'sf-hint', id: ids.hint }, hint);
    this.errorElement = h('p', { className: 'sf-error', id: ids.error, hidden: true });
    this.body = h('div', { className: 'sf-body' });
    const hasHead = !this.bare || !this.isGroup;
    const tag = this.isGroup && hasHead ? 'fieldset' : 'div';
    const name = this.isGroup
      ? h('legend', { className: 'sf-legend' }, ...marks)
      : h('label', { className: 'sf-label', htmlFor: this.controlId }, ...marks);
    this.frame = h(tag, { className: this.isGroup ? `sf-group${this.bare ? ' sf-bare' : ''}` : 'sf-field' });
    if (hasHead) this.frame.append(this.isGroup ? name : h('div', { className: 'sf-head' }, name, this.tools));
    if (this.isGroup) this.frame.append(this.tools);
    if (this.descriptionElement) this.frame.append(this.descriptionElement);
    // The message of a group stands at its top, where it is seen.
    if (this.isGroup) this.frame.append(this.errorElement, this.body);
    else this.frame.append(this.body);
    if (this.hintElement) this.frame.append(this.hintElement);
    if (!this.isGroup) this.frame.append(this.errorElement);
    this.element.replaceChildren(this.frame);
    this.setRequired(this.required);
    this.setLabel(this.label);
  }

  toggle(text, action) {
    const box = h('input', { type: 'checkbox', className: 'sf-checkbox', onchange: action });
    box.action = text;
    this.tools.append(h('label', { className: 'sf-toggle' }, box, text));
    return box;
  }

  modeButton() {
    const { labels } = this.form;
    const toForm = this.kind === 'json';
    const action = toForm ? labels.editForm : labels.editJson;
    const button = this.form.button(action, () => this.switchMode(toForm), 'sf-button sf-quiet');
    button.action = action;
    return button;
  }

  // A value which the form cannot show is replaced by a fresh one, because
  // the user asked for the form.
  switchMode(toForm) {
    let value = this.get();
    this.asJson = !toForm;
    if (toForm && value !== ABSENT && !accepts(this.expand(value), value)) value = this.fresh();
    this.form.refill();
    this.set(value);
    (this.jsonButton ?? this.editor?.control)?.focus();
    this.form.changed(this);
  }

  fresh() {
    return this.form.initial(this.parts, true, this.choices);
  }

  setLabel(label) {
    this.label = label;
    this.labelText.textContent = clip(label, 200) || '""';
    for (const tool of [this.includeBox, this.nullBox, this.jsonButton]) {
      if (!tool) continue;
      this.form.nameTool(tool, tool.action, label);
    }
    this.editor?.relabel?.(label);
  }

  // A required property has no toggle: a text is included by typing. Other
  // kinds which the value lacks keep it, named differently, until they are
  // filled in.
  setRequired(required) {
    this.required = required;
    this.mark.hidden = !required || Boolean(this.isItem || this.isRoot || this.bare);
    if (this.includeBox) {
      const { labels } = this.form;
      this.showInclude();
      this.includeBox.action = required ? labels.fillIn : labels.include;
      this.includeBox.nextSibling.data = this.includeBox.action;
      this.form.nameTool(this.includeBox, this.includeBox.action, this.label);
    }
    this.editor?.relabel?.(this.label);
    this.describe();
  }

  showInclude() {
    this.includeBox.parentElement.hidden = this.required && (this.state !== 'absent' || this.kind === 'string');
  }

  hint() {
    const { view, form: { labels } } = this;
    const hints = [];
    const limit = (keyword) => {
      const setting = view.keywords.get(keyword);
      return setting instanceof JsonNumber ? setting.text : undefined;
    };
    if (this.misfit) hints.push(labels.misfit);
    else if (this.kind === 'json') hints.push(labels.jsonHint);
    if (this.note) hints.push(this.note);
    if (this.kind === 'number' && view.types.has('integer')) hints.push(labels.integer);
    for (const [low, lowExclusive, sign] of [['minimum', 'exclusiveMinimum', '>'], ['maximum', 'exclusiveMaximum', '<']]) {
      const exclusive = view.keywords.get(lowExclusive);
      if (limit(low)) hints.push(`${exclusive === true ? sign : sign === '>' ? '≥' : '≤'} ${limit(low)}`);
      if (limit(lowExclusive)) hints.push(`${sign} ${limit(lowExclusive)}`);
    }
    for (const keyword of ['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties', 'multipleOf']) {
      if (limit(keyword)) hints.push(fill(labels[keyword], { n: limit(keyword) }));
    }
    if (view.keywords.get('uniqueItems') === true) hints.push(labels.uniqueItems);
    for (const keyword of ['format', 'pattern']) {
      const setting = view.keywords.get(keyword);
      if (typeof setting === 'string' && setting !== 'password' && this.kind === 'string') hints.push(fill(labels[keyword], { n: clip(setting, 200) }));
    }
    if (view.keywords.has('default') && !this.isGroup && this.kind !== 'const') {
      hints.push(fill(labels.default, { n: clip(stringifyJson(view.keywords.get('default')), 80) }));
    }
    return hints.join(' · ');
  }

  // Puts the editor for `value` into the body, as far as the state needs one.
  mount(value, open = false) {
    const { form } = this;
    this.editor = null;
    this.held = undefined;
    this.body.replaceChildren();
    this.body.hidden = this.state === 'null';
    if (this.state === 'null' || (this.state === 'absent' && this.kind !== 'string')) {
      this.updateToggles();
      return;
    }
    const closed = this.isGroup && !this.bare && !this.isRoot && !open && value !== ABSENT && (this.depth >= OPEN_DEPTH || form.budget <= 0);
    if (closed) {
      this.held = value;
      const button = form.button(form.labels.showFields, () => {
        form.refill();
        this.mount(this.held, true);
        focusIn(this.body);
      });
      form.nameTool(button, form.labels.showFields, this.label);
      this.body.append(button);
    } else {
      this.editor = new EDITORS[this.kind](this, value);
      this.body.append(this.editor.element);
    }
    this.updateToggles();
    this.describe();
  }

  updateToggles() {
    if (this.includeBox) {
      this.includeBox.checked = this.state !== 'absent';
      this.showInclude();
    }
    if (this.nullBox) this.nullBox.checked = this.state === 'null';
    if (this.jsonButton) this.jsonButton.hidden = this.state !== 'value';
    this.frame.classList.toggle('sf-absent', this.state === 'absent');
  }

  setIncluded(included, byUser) {
    if (!included) {
      const value = this.get();
      this.stash = value === ABSENT ? undefined : value;
    }
    const value = included ? this.stash ?? this.fresh() : ABSENT;
    this.state = included ? (value === null && this.nullBox ? 'null' : 'value') : 'absent';
    this.pinned = included && byUser;
    this.mount(value, true);
    if (this.includeBox.parentElement.hidden) focusIn(this.body);
    this.form.changed(this);
  }

  setNull(isNull) {
    if (isNull) {
      const value = this.get();
      this.stash = value === ABSENT || value === null ? undefined : value;
    }
    this.state = isNull ? 'null' : 'value';
    let value = this.stash;
    if (!isNull && value === undefined) {
      value = this.fresh();
      if (value === null) value = emptyValue(this.kind);
    }
    this.pinned = true;
    this.mount(isNull ? null : value, true);
    this.form.changed(this);
  }

  // Text typed into an absent field includes it; emptied again, it becomes
  // absent unless the user had ticked "send".
  typed(text) {
    if (this.includeBox && (!this.required || this.state === 'absent')) {
      if (text !== '') this.state = 'value';
      else if (!this.pinned && !this.required) this.state = 'absent';
      this.updateToggles();
    }
    this.changed();
  }

  changed() {
    this.form.changed(this);
  }

  describe() {
    const target = this.editor?.control ?? (this.isGroup && this.frame.localName === 'fieldset' ? this.frame : null);
    if (!target) return;
    const problem = this.editor?.problem;
    const messages = problem ? [problem, ...this.errors] : this.errors;
    this.errorElement.replaceChildren(...messages.map((message) => h('span', {}, message)));
    this.errorElement.hidden = !messages.length;
    const described = [];
    if (this.descriptionElement) described.push(this.ids.description);
    if (this.hintElement) described.push(this.ids.hint);
    if (messages.length) described.push(this.ids.error);
    if (described.length) target.setAttribute('aria-describedby', described.join(' '));
    else target.removeAttribute('aria-describedby');
    if (messages.length) target.setAttribute('aria-invalid', 'true');
    else target.removeAttribute('aria-invalid');
    if (target !== this.frame) {
      target.id = this.controlId;
      if (!this.mark.hidden) target.setAttribute('aria-required', 'true');
      else target.removeAttribute('aria-required');
    }
    this.frame.classList.toggle('sf-invalid', messages.length > 0);
  }

  showErrors(errors) {
    if (errors.length || this.errors.length || this.editor?.problem !== this.shownProblem) {
      this.errors = errors;
      this.shownProblem = this.editor?.problem;
      this.describe();
      // Without a control (absent, null, closed) the message stands alone.
      if (!this.editor?.control && this.frame.localName !== 'fieldset') {
        this.errorElement.replaceChildren(...errors.map((message) => h('span', {}, message)));
        this.errorElement.hidden = !errors.length;
      }
    }
  }

  visit(callback, path = '') {
    callback(this, path);
    for (const [token, slot] of this.editor?.children?.() ?? []) {
      slot.visit(callback, token === null ? path : `${path}/${String(token).replaceAll('~', '~0').replaceAll('/', '~1')}`);
    }
  }

  // The deepest slot on the way to `tokens`, and how many tokens it took.
  locate(tokens, used = 0) {
    if (used < tokens.length) {
      for (const [token, slot] of this.editor?.children?.() ?? []) {
        if (token === null) {
          const found = slot.locate(tokens, used);
          if (found.used > used) return found;
        } else if (String(token) === tokens[used]) return slot.locate(tokens, used + 1);
      }
    }
    return { slot: this, used };
  }
}
