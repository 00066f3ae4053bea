// Editors: one class per kind of schema. An editor has
//   element          what the slot shows
//   control          the labelled element, unless the editor is a group
//   get()            the value, or ABSENT
//   children()       [[token or null, Slot]], for groups
//   problem          why the input is not a value, if it is not
//   refresh()        optional: something inside has changed
//   relabel(label)   optional: the slot has another label or "required" state

import { JsonNumber, equalJson, isNumberText, parseJson, stringifyJson } from './json_text.js';
import { ABSENT, alternativeLabel, bestAlternative, matches } from './schema_view.js';
import { clip, fill, focusIn, h } from './form_dom.js';

const MAX_ROWS = 200; // items or extra properties of one value shown as rows
const PAGE = 100; // properties shown at once
const FOLD = 20; // with more properties, optional ones are folded
const LONG_TEXT_NAMES = /^(?:body|code|content|contents|html|instructions?|markdown|message|prompt|script|sql|text|xml|yaml)$/i;
const FORMATS = new Map([
  ['date', { placeholder: '2025-01-31' }],
  ['date-time', { placeholder: '2025-01-31T09:30:00Z' }],
  ['time', { placeholder: '09:30:00Z' }],
  ['duration', { placeholder: 'P1DT12H' }],
  ['email', { placeholder: 'name@example.com', inputMode: 'email' }],
  ['uri', { placeholder: 'https://example.com/', inputMode: 'url' }],
  ['url', { placeholder: 'https://example.com/', inputMode: 'url' }],
  ['uuid', { placeholder: '123e4567-e89b-12d3-a456-426614174000' }],
]);

const hasLineBreak = (text) => /[\r\n]/.test(text);
const sameParts = (a, b) => a.length === b.length && a.every((part, i) => part === b[i]);
const displayText = (value) => (typeof value === 'string' ? value : stringifyJson(value));

export function emptyValue(kind) {
  return { string: '', array: [], object: new Map() }[kind] ?? ABSENT;
}

// Whether the editor of this kind can show `value` without changing it.
export function accepts(view, value) {
  switch (view.kind) {
    case 'string':
      return typeof value === 'string';
    case 'number':
      return value instanceof JsonNumber;
    case 'boolean':
      return typeof value === 'boolean' || (value === null && view.nullable);
    case 'const':
    case 'enum':
      return view.options.some((option) => equalJson(option.value, value, true));
    case 'array':
      return Array.isArray(value) && value.length <= MAX_ROWS;
    case 'object': {
      if (!(value instanceof Map)) return false;
      let extra = 0;
      for (const name of value.keys()) if (!view.properties.has(name)) extra += 1;
      return extra <= MAX_ROWS;
    }
    default:
      return true;
  }
}

class StringEditor {
  constructor(slot, value) {
    this.slot = slot;
    this.raw = value === ABSENT ? '' : value;
    const { keywords, options } = slot.view;
    this.format = FORMATS.get(keywords.get('format')) ?? {};
    this.secret = keywords.get('format') === 'password' || keywords.get('writeOnly') === true;
    const limit = keywords.get('maxLength');
    const listed = keywords.get('examples');
    this.examples = (options ? options.map((option) => option.value) : [listed, keywords.get('example')].flat())
      .filter((example) => typeof example === 'string').slice(0, 500);
    const long = this.raw.length > 80 || hasLineBreak(this.raw)
      || (limit instanceof JsonNumber && Number(limit.text) > 200)
      || keywords.has('contentMediaType')
      || this.examples.some((example) => example.length > 80 || hasLineBreak(example))
      || (LONG_TEXT_NAMES.test(slot.label) && !options && !this.format.placeholder);
    this.element = h('div', { className: 'sf-text' });
    this.show(!this.secret && long);
  }

  // The control normalises line breaks, so `raw` is the value until the user
  // edits the text.
  show(multiline) {
    const { slot } = this;
    const common = {
      className: 'sf-input', value: this.raw, autocomplete: 'off', spellcheck: false, dir: 'auto',
      placeholder: clip(this.examples[0] ?? this.format.placeholder ?? '', 120),
      oninput: () => {
        this.raw = this.control.value;
        slot.typed(this.raw);
      },
    };
    if (multiline) this.control = h('textarea', { ...common, rows: 4 });
    else {
      this.control = h('input', {
        ...common, type: this.secret ? 'password' : 'text', inputMode: this.format.inputMode,
        autocomplete: this.secret ? 'new-password' : 'off', onpaste: (event) => this.paste(event),
        onkeydown: (event) => {
          if (event.key !== 'Enter' || !event.shiftKey || this.secret) return;
          event.preventDefault();
          this.widen('\n');
        },
      });
    }
    this.element.replaceChildren(this.control);
    if (!multiline && this.examples.length > 1) {
      const list = h('datalist', { id: slot.form.id() });
      list.append(...this.examples.map((example) => h('option', { value: example })));
      this.element.append(list);
      this.control.setAttribute('list', list.id);
    }
  }

  // A one-line input would drop pasted line breaks silently.
  paste(event) {
    const text = event.clipboardData?.getData('text/plain') ?? '';
    if (!hasLineBreak(text) || this.secret) return;
    event.preventDefault();
    this.widen(text);
  }

  widen(inserted) {
    const { selectionStart: start, selectionEnd: end, value } = this.control;
    this.raw = value.slice(0, start) + inserted + value.slice(end);
    this.show(true);
    this.slot.describe();
    this.control.focus();
    const caret = this.control.value.length - (value.length - end);
    this.control.setSelectionRange(caret, caret);
    this.slot.typed(this.raw);
  }

  get() {
    return this.raw;
  }
}

class NumberEditor {
  constructor(slot, value) {
    const { form, view } = slot;
    const { keywords } = view;
    const least = keywords.get('minimum') ?? keywords.get('exclusiveMinimum');
    const unsigned = least instanceof JsonNumber && Number(least.text) >= 0;
    const example = [keywords.get('examples')].flat()[0];
    // Phone keypads for numbers may lack the minus sign.
    const inputMode = unsigned ? (view.types.has('integer') ? 'numeric' : 'decimal') : undefined;
    this.control = this.element = h('input', {
      type: 'text', className: 'sf-input sf-number', inputMode, autocomplete: 'off', spellcheck: false,
      value: value instanceof JsonNumber ? value.text : '',
      placeholder: example instanceof JsonNumber ? clip(example.text, 80) : '',
      oninput: () => {
        this.problem = this.text === '' || isNumberText(this.text) ? undefined : form.labels.badNumber;
        slot.changed();
      },
    });
  }

  get text() {
    return this.control.value.trim();
  }

  get() {
    return isNumberText(this.text) ? new JsonNumber(this.text) : ABSENT;
  }
}

class ChoiceEditor {
  constructor(slot, value) {
    const { form, view } = slot;
    this.slot = slot;
    this.options = view.options ?? [{ value: true }, { value: false }, ...(view.nullable ? [{ value: null }] : [])];
    // Quotes tell "1" from 1 when both kinds may occur.
    const mixed = this.options.some((option) => option.value !== null && typeof option.value !== 'string') && Boolean(view.options);
    const optionText = ({ value: option, label }) => {
      const text = option === '' ? form.labels.emptyText : mixed ? stringifyJson(option) : displayText(option);
      return clip(label && label !== text ? `${label} (${text})` : text, 200);
    };
    this.unset = h('option', { value: '' });
    this.control = this.element = h('select', { className: 'sf-input sf-select', onchange: () => slot.changed() }, this.unset);
    this.options.forEach((option, i) => this.control.append(h('option', { value: String(i) }, optionText(option))));
    const index = value === ABSENT ? -1 : this.options.findIndex((option) => equalJson(option.value, value, true));
    this.control.value = index < 0 ? '' : String(index);
    this.relabel();
  }

  relabel() {
    const { labels } = this.slot.form;
    this.unset.textContent = this.slot.required ? labels.choose : labels.notSet;
  }

  get() {
    return this.control.value === '' ? ABSENT : this.options[Number(this.control.value)].value;
  }
}

class ConstEditor {
  constructor(slot, value) {
    this.value = value === ABSENT ? slot.view.options[0].value : value;
    this.control = this.element = h('input', {
      type: 'text', className: 'sf-input sf-const', readOnly: true, value: displayText(this.value),
    });
  }

  get() {
    return this.value;
  }
}

class JsonEditor {
  constructor(slot, value) {
    const { form } = slot;
    this.value = value;
    const text = value === ABSENT ? '' : stringifyJson(value, 2);
    this.control = this.element = h('textarea', {
      className: 'sf-input sf-json', spellcheck: false, autocomplete: 'off', value: text,
      rows: Math.min(12, Math.max(2, text.slice(0, 2000).split('\n').length)),
      oninput: () => {
        this.value = ABSENT;
        this.problem = undefined;
        if (this.control.value.trim() !== '') {
          try {
            this.value = parseJson(this.control.value);
          } catch (error) {
            this.problem = fill(form.labels.badJson, { reason: error.message });
          }
        }
        slot.changed();
      },
    });
  }

  get() {
    return this.value;
  }
}

class UnionEditor {
  constructor(slot, value) {
    const { form, view } = slot;
    this.slot = slot;
    this.union = view.unions[0];
    this.unset = h('option', { value: 'absent' });
    const id = form.id();
    this.select = h('select', { className: 'sf-input sf-select', id, onchange: () => this.choose() }, this.unset);
    if (view.nullable) this.select.append(h('option', { value: 'null' }, 'null'));
    const used = new Map();
    this.union.alternatives.forEach((alternative, i) => {
      const label = clip(alternativeLabel(form.doc, alternative, form.types), 120);
      const count = (used.get(label) ?? 0) + 1;
      used.set(label, count);
      this.select.append(h('option', { value: String(i) }, count > 1 ? `${label} (${count})` : label));
    });
    this.holder = h('div', { className: 'sf-variant-body' });
    this.label = h('label', { className: 'sf-label', htmlFor: id });
    this.element = h('div', { className: 'sf-variant' },
      h('div', { className: 'sf-variant-head' }, this.label, this.select), this.holder);
    if (value === ABSENT) this.select.value = 'absent';
    else if (value === null && view.nullable) this.select.value = 'null';
    else {
      this.select.value = String(bestAlternative(form.doc, this.union.alternatives, value));
      this.open(value);
    }
    this.relabel(slot.label);
  }

  relabel(label) {
    const { labels } = this.slot.form;
    this.label.textContent = labels.variant;
    this.slot.form.nameTool(this.select, labels.variant, label);
    this.unset.textContent = this.slot.required ? labels.choose : labels.notSet;
  }

  open(value) {
    const { slot } = this;
    const alternative = this.union.alternatives[Number(this.select.value)];
    const choices = new Map(slot.choices).set(this.union.key, alternative);
    this.inner = slot.child(slot.parts, { label: slot.form.labels.value, required: true, bare: true, choices });
    this.inner.set(value === undefined ? this.inner.fresh() : value);
    this.holder.replaceChildren(this.inner.element);
  }

  // Properties which the new variant knows, too, are carried over.
  choose() {
    const { slot } = this;
    const before = this.inner?.get();
    this.inner = null;
    this.holder.replaceChildren();
    if (!['absent', 'null'].includes(this.select.value)) {
      this.open();
      const fresh = this.inner.get();
      if (before instanceof Map && fresh instanceof Map) {
        const { properties } = this.inner.view;
        for (const [name, item] of before) {
          if (properties.get(name)?.every((part) => matches(slot.form.doc, part, item))) fresh.set(name, item);
        }
        this.inner.set(fresh);
      }
    }
    slot.changed();
  }

  get() {
    if (this.select.value === 'null') return null;
    return this.inner ? this.inner.get() : ABSENT;
  }

  children() {
    return this.inner ? [[null, this.inner]] : [];
  }
}

class ObjectEditor {
  constructor(slot, value) {
    const { form } = slot;
    const { labels } = form;
    this.slot = slot;
    this.slots = new Map();
    this.held = new Map(); // values of properties not shown yet
    this.stash = new Map(); // values of properties a condition took away
    this.rows = []; // properties the schema does not name
    this.limit = PAGE;
    this.wanted = new Set(); // properties that a filter has found
    this.list = h('div', { className: 'sf-properties' });
    this.optional = h('div', { className: 'sf-properties' });
    this.summary = h('summary', {});
    this.filter = h('input', {
      type: 'search', className: 'sf-input', autocomplete: 'off', spellcheck: false, dir: 'auto',
      'aria-label': labels.filterFields, placeholder: labels.filterFields, oninput: () => this.applyFilter(),
    });
    this.matching = h('p', { className: 'sf-hint', 'aria-live': 'polite' });
    this.fold = h('details', { className: 'sf-fold', hidden: true }, this.summary, this.filter, this.matching, this.optional);
    this.more = form.button('', () => this.showMore());
    this.extra = h('div', { className: 'sf-extras' });
    this.add = form.button(labels.addProperty, () => this.addRow(), 'sf-button sf-add');
    this.none = h('p', { className: 'sf-hint' }, labels.noFields);
    this.element = h('div', { className: 'sf-object' }, this.list, this.fold, this.more, this.extra, this.add, this.none);
    const initial = value === ABSENT ? new Map() : value;
    this.sync(slot.view, (name) => (initial.has(name) ? initial.get(name) : ABSENT));
    const { properties, required } = slot.view;
    const isSet = (name) => properties.has(name) && !required.has(name);
    // Without required fields, or with a value below, the fold would hide what matters.
    this.fold.open = this.foldedNames().length === properties.size || [...initial.keys()].some(isSet);
    for (const [name, item] of initial) if (!this.view.properties.has(name)) this.insertRow(name, item);
    this.relabel(slot.label);
  }

  relabel(label) {
    const { form } = this.slot;
    form.nameTool(this.add, form.labels.addProperty, label);
  }

  // Brings the fields in line with `view`. Fields which stay are not touched,
  // so that the one with the focus keeps it. `valueOf` gives the value of a
  // property which has no field yet.
  sync(view, valueOf) {
    const { form } = this.slot;
    const { properties, required } = view;
    this.view = view;
    for (const [name, slot] of this.slots) {
      if (properties.has(name)) continue;
      const value = slot.get();
      if (value !== ABSENT) this.stash.set(name, value);
      slot.element.remove();
      this.slots.delete(name);
    }
    for (const name of this.held.keys()) if (!properties.has(name)) this.held.delete(name);
    let names = [...properties.keys()];
    if (names.length > PAGE) {
      names = [...names.filter((name) => required.has(name)), ...names.filter((name) => !required.has(name))];
    }
    const listOf = (name) => (names.length > FOLD && !required.has(name) ? this.optional : this.list);
    const next = new Map([this.list, this.optional].map((list) => [list, list.firstChild]));
    const skip = (element) => {
      const list = element.parentNode;
      if (next.get(list) === element) next.set(list, element.nextSibling);
    };
    names.forEach((name, index) => {
      let slot = this.slots.get(name);
      const parts = properties.get(name);
      if (slot && sameParts(slot.parts, parts)) {
        if (slot.required !== required.has(name)) slot.setRequired(required.has(name));
      } else if (slot || index < this.limit || this.wanted.has(name)) {
        const value = slot ? slot.get() : valueOf(name);
        const focused = slot?.element.contains(document.activeElement);
        if (slot) {
          skip(slot.element);
          slot.element.remove();
        }
        slot = this.slot.child(parts, { label: name, required: required.has(name) });
        this.slots.set(name, slot);
        slot.set(value);
        listOf(name).insertBefore(slot.element, next.get(listOf(name)));
        if (focused) slot.editor?.control?.focus();
        return;
      } else {
        if (!this.held.has(name)) {
          const value = valueOf(name);
          if (value !== ABSENT) this.held.set(name, value);
        }
        return;
      }
      const isInPlace = next.get(listOf(name)) === slot.element;
      skip(slot.element);
      if (!isInPlace) listOf(name).insertBefore(slot.element, next.get(listOf(name)));
    });
    this.names = names;
    this.showMatches();
    this.updateButtons();
  }

  // The optional properties of an object with many properties.
  foldedNames() {
    if (this.view.properties.size <= FOLD) return [];
    return [...this.view.properties.keys()].filter((name) => !this.view.required.has(name));
  }

  // The folded properties whose name, title or description has the text of the filter.
  matchingNames() {
    const wanted = this.filter.value.trim().toLowerCase();
    const texts = (name) => {
      const schemas = this.view.properties.get(name).filter((part) => part instanceof Map);
      return [name, ...schemas.flatMap((part) => [part.get('title'), part.get('description')])];
    };
    const has = (text) => typeof text === 'string' && clip(text).toLowerCase().includes(wanted);
    return this.foldedNames().filter((name) => texts(name).some(has));
  }

  // Shows the properties that the filter finds, also those that had no field yet.
  applyFilter() {
    if (this.filter.value.trim()) {
      this.wanted = new Set(this.matchingNames().slice(0, PAGE));
      this.slot.form.refill();
      this.createHeld();
    }
    this.showMatches();
    this.updateButtons();
  }

  showMatches() {
    const folded = this.foldedNames();
    const { labels } = this.slot.form;
    this.fold.hidden = folded.length === 0;
    if (this.fold.hidden) return;
    this.summary.textContent = fill(labels.optionalFields, { n: String(folded.length) });
    const isFiltered = this.filter.value.trim() !== '';
    const matching = new Set(isFiltered ? this.matchingNames() : folded);
    for (const [name, slot] of this.slots) {
      slot.element.classList.toggle('sf-filtered', !matching.has(name) && !this.view.required.has(name));
    }
    const counts = { n: String(matching.size), m: String(folded.length) };
    this.matching.textContent = isFiltered ? fill(labels.matchingFields, counts) : '';
  }

  // Makes a field visible that is folded or does not match the filter.
  reveal(slot) {
    if (!this.optional.contains(slot.element)) return;
    this.fold.open = true;
    if (!slot.element.classList.contains('sf-filtered')) return;
    this.filter.value = '';
    this.applyFilter();
  }

  updateButtons() {
    const hidden = this.names.length - this.slots.size;
    this.more.hidden = hidden <= 0 || this.filter.value.trim() !== '';
    const isRequiredHidden = [...this.view.required].some((name) => this.view.properties.has(name) && !this.slots.has(name));
    if (this.fold.hidden || isRequiredHidden) this.fold.after(this.more);
    else this.fold.append(this.more);
    const text = fill(this.slot.form.labels.showMore, { n: Math.min(hidden, PAGE) });
    this.more.textContent = text;
    this.add.hidden = this.view.closed && !this.view.patterns.length && !this.view.additional.length;
    this.none.hidden = this.names.length > 0 || this.rows.length > 0 || !this.add.hidden;
  }

  showMore() {
    const before = new Set(this.slots.keys());
    this.limit += PAGE;
    this.slot.form.refill();
    this.createHeld();
    const next = this.names.find((name) => this.slots.has(name) && !before.has(name));
    if (next !== undefined) focusIn(this.slots.get(next).element);
  }

  // Creates the fields that are due, with the values that were kept for them.
  createHeld() {
    const held = this.held;
    this.held = new Map();
    this.sync(this.view, (name) => (held.has(name) ? held.get(name) : ABSENT));
  }

  // Conditions are evaluated anew after every change below this object.
  refresh() {
    if (!this.view.conditional) return;
    for (let round = 0; round < 3; round += 1) {
      const value = this.get();
      const view = this.slot.expand(value);
      const same = view.properties.size === this.view.properties.size
        && [...view.properties].every(([name, parts]) => sameParts(this.view.properties.get(name) ?? [null], parts))
        && [...view.required, ...this.view.required].every((name) => view.required.has(name) === this.view.required.has(name));
      if (same || view.kind !== 'object') return;
      this.sync(view, (name) => {
        const row = this.rows.findLast((candidate) => candidate.named && candidate.name === name);
        if (row) {
          this.removeRow(row);
          return value.get(name) ?? null;
        }
        if (this.stash.has(name)) return this.stash.get(name);
        return this.slot.form.initial(view.properties.get(name), view.required.has(name));
      });
    }
  }

  // Patterns are not run. One pattern schema is taken at its word; where
  // several could apply, the user chooses.
  rowParts() {
    const { patterns, additional, closed } = this.view;
    const candidates = patterns.map(([, schema]) => schema);
    if (!closed || additional.length) {
      if (additional.length || candidates.length > 1) candidates.push(additional[0] ?? true);
    }
    if (candidates.length <= 1) return candidates;
    this.anyCandidate ??= new Map([['anyOf', candidates]]);
    return [this.anyCandidate];
  }

  insertRow(name, value) {
    const { form } = this.slot;
    const { labels } = form;
    const row = { name, named: value !== undefined };
    const isForbidden = this.add.hidden;
    row.slot = this.slot.child(isForbidden ? [] : this.rowParts(), {
      label: name || labels.value, required: true, isItem: true, note: isForbidden ? labels.unknownProperty : undefined,
    });
    row.slot.set(value === undefined ? row.slot.fresh() : value);
    row.key = h('input', {
      type: 'text', className: 'sf-input sf-key', value: name, autocomplete: 'off', spellcheck: false, 'aria-label': labels.key, placeholder: labels.key,
      oninput: () => {
        row.name = row.key.value;
        row.named = true;
        this.labelRow(row);
        this.checkKeys();
        form.changed(this.slot);
      },
    });
    row.problemElement = h('p', { className: 'sf-error', id: form.id(), hidden: true }, labels.duplicateKey);
    row.remove = form.button('✕', () => {
      const index = this.rows.indexOf(row);
      this.removeRow(row);
      (this.rows[Math.min(index, this.rows.length - 1)]?.remove ?? (this.add.hidden ? null : this.add))?.focus();
      form.changed(this.slot);
    }, 'sf-button sf-icon');
    row.element = h('div', { className: 'sf-row' },
      h('div', { className: 'sf-row-head' }, row.key, row.remove), row.problemElement, row.slot.element);
    this.rows.push(row);
    this.extra.append(row.element);
    this.labelRow(row);
    this.updateButtons();
    return row;
  }

  labelRow(row) {
    const { labels } = this.slot.form;
    const name = row.name || labels.value;
    row.slot.setLabel(name);
    this.slot.form.nameTool(row.remove, labels.remove, name);
  }

  addRow() {
    this.slot.form.refill();
    this.insertRow('').key.focus();
    this.slot.changed();
  }

  removeRow(row) {
    this.rows.splice(this.rows.indexOf(row), 1);
    row.element.remove();
    this.checkKeys();
    this.updateButtons();
  }

  checkKeys() {
    const used = new Set(this.view.properties.keys());
    this.problem = undefined;
    for (const row of this.rows) {
      const isTaken = row.named && used.has(row.name);
      if (row.named) used.add(row.name);
      row.isTaken = isTaken;
      row.problemElement.hidden = !isTaken;
      if (isTaken) {
        this.problem = this.slot.form.labels.duplicateKey;
        row.key.setAttribute('aria-invalid', 'true');
        row.key.setAttribute('aria-describedby', row.problemElement.id);
      } else {
        row.key.removeAttribute('aria-invalid');
        row.key.removeAttribute('aria-describedby');
      }
    }
  }

  get() {
    const value = new Map();
    for (const name of this.names) {
      const item = this.slots.has(name) ? this.slots.get(name).get() : this.held.get(name) ?? (this.held.has(name) ? null : ABSENT);
      if (item !== ABSENT) value.set(name, item);
    }
    for (const row of this.rows) {
      const item = row.named && !row.isTaken ? row.slot.get() : ABSENT;
      if (item !== ABSENT) value.set(row.name, item);
    }
    return value;
  }

  children() {
    return [...this.slots, ...this.rows.filter((row) => row.named && !row.isTaken).map((row) => [row.name, row.slot])];
  }
}

class ArrayEditor {
  constructor(slot, value) {
    const { form } = slot;
    this.slot = slot;
    this.rows = [];
    this.list = h('div', { className: 'sf-items' });
    this.add = form.button(form.labels.addItem, () => this.addItem(), 'sf-button sf-add');
    this.element = h('div', { className: 'sf-array' }, this.list, this.add);
    for (const item of value === ABSENT ? [] : value) this.insertRow(item);
    this.update();
  }

  relabel() {
    this.update();
  }

  insertRow(value) {
    const { form, view } = this.slot;
    const row = {};
    const index = this.rows.length;
    const isForbidden = view.closedItems && index >= view.prefix.length;
    const parts = isForbidden ? [] : view.prefix[index] ?? view.items;
    row.slot = this.slot.child(parts, { label: fill(form.labels.item, { n: index + 1 }), required: true, isItem: true });
    row.slot.set(value === undefined ? row.slot.fresh() : value);
    row.up = form.button('↑', () => this.move(row, -1), 'sf-button sf-icon');
    row.down = form.button('↓', () => this.move(row, 1), 'sf-button sf-icon');
    row.remove = form.button('✕', () => this.removeRow(row), 'sf-button sf-icon');
    row.element = h('div', { className: 'sf-row sf-item' }, row.slot.element, h('div', { className: 'sf-row-tools' }, row.up, row.down, row.remove));
    this.rows.push(row);
    this.list.append(row.element);
    return row;
  }

  // Positions of a tuple have their own schemas, so those rows stay in place.
  update() {
    const { form, view, label } = this.slot;
    const { labels } = form;
    const fixed = view.prefix.length;
    this.rows.forEach((row, index) => {
      const item = fill(labels.item, { n: index + 1 });
      if (row.slot.label !== item) row.slot.setLabel(item);
      const name = `${clip(label, 80)}: ${item}`;
      form.nameTool(row.up, labels.moveUp, name);
      form.nameTool(row.down, labels.moveDown, name);
      form.nameTool(row.remove, labels.remove, name);
      row.up.disabled = index <= fixed;
      row.down.disabled = index < fixed || index === this.rows.length - 1;
      row.up.hidden = row.down.hidden = index < fixed;
      row.remove.hidden = index < fixed && index < this.rows.length - 1;
    });
    this.add.hidden = view.closedItems && this.rows.length >= fixed;
    form.nameTool(this.add, labels.addItem, label);
  }

  addItem() {
    this.slot.form.refill();
    const row = this.insertRow();
    this.update();
    focusIn(row.element);
    this.slot.changed();
  }

  removeRow(row) {
    const index = this.rows.indexOf(row);
    this.rows.splice(index, 1);
    row.element.remove();
    this.update();
    (this.rows[Math.min(index, this.rows.length - 1)]?.remove ?? this.add).focus();
    this.slot.changed();
  }

  move(row, step) {
    const index = this.rows.indexOf(row);
    const other = this.rows[index + step];
    [this.rows[index], this.rows[index + step]] = [other, row];
    // Move the other row, so that this one keeps the focus.
    if (step < 0) row.element.after(other.element);
    else row.element.before(other.element);
    this.update();
    const button = step < 0 ? row.up : row.down;
    (button.disabled ? (step < 0 ? row.down : row.up) : button).focus();
    this.slot.changed();
  }

  // An item left empty is null: leaving it out would shift the others.
  get() {
    return this.rows.map(({ slot }) => {
      const item = slot.get();
      return item === ABSENT ? null : item;
    });
  }

  children() {
    return this.rows.map((row, index) => [index, row.slot]);
  }
}

export const EDITORS = {
  string: StringEditor,
  number: NumberEditor,
  boolean: ChoiceEditor,
  enum: ChoiceEditor,
  const: ConstEditor,
  json: JsonEditor,
  union: UnionEditor,
  object: ObjectEditor,
  array: ArrayEditor,
};
