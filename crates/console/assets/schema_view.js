// What a JSON Schema means for one place of a form.
//
// A schema here is a parsed value of json_text.js (Map, boolean, ...) and is
// hostile: any keyword may have any type. A place of the form is described by
// `parts`, a list of schemas which all apply. expandSchema() merges them,
// following $ref, allOf and the branches of if/then/else which apply to the
// present value, into one flat "view". It goes one level deep only, so that
// recursive schemas cost nothing until the user opens them.

import { JsonNumber, equalJson, typeOfJson } from './json_text.js';

export const ABSENT = Symbol('absent');

const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);
const MAX_INDEXED = 200000; // schema nodes searched for $anchor and $id
const MAX_OPTIONS = 500; // entries of one select
const MAX_VARIANTS = 200;
const MAX_CHOICES = 8; // unions directly inside unions
const NOTHING = new Map();

const asMap = (value) => (value instanceof Map ? value : NOTHING);
const asList = (value) => (Array.isArray(value) ? value : []);
const asText = (value) => (typeof value === 'string' ? value : undefined);

export class SchemaDocument {
  #names;

  constructor(root) {
    this.root = root;
  }

  // The schema a $ref points to, or undefined.
  resolve(ref) {
    if (typeof ref !== 'string') return undefined;
    const rootId = asText(asMap(this.root).get('$id'));
    const local = rootId && ref.startsWith(rootId) ? ref.slice(rootId.length) : ref;
    if (local === '' || local === '#') return this.root;
    if (!local.startsWith('#/')) return this.#named(local);
    let fragment;
    try {
      fragment = decodeURIComponent(local.slice(2));
    } catch {
      fragment = local.slice(2);
    }
    let node = this.root;
    for (const token of fragment.split('/')) {
      const key = token.replaceAll('~1', '/').replaceAll('~0', '~');
      node = node instanceof Map ? node.get(key) : asList(node)[key];
    }
    return node;
  }

  #named(name) {
    if (!this.#names) {
      this.#names = new Map();
      const queue = [this.root];
      for (let i = 0; i < queue.length && i < MAX_INDEXED; i += 1) {
        const node = queue[i];
        if (node instanceof Map) {
          for (const [keyword, prefix] of [['$anchor', '#'], ['$dynamicAnchor', '#'], ['$id', '']]) {
            const id = asText(node.get(keyword));
            if (id !== undefined && !this.#names.has(prefix + id)) this.#names.set(prefix + id, node);
          }
        }
        if (node instanceof Map || Array.isArray(node)) for (const child of node.values()) queue.push(child);
      }
    }
    return this.#names.get(name);
  }
}

const isNullSchema = (schema) => {
  const map = asMap(schema);
  const options = asList(map.get('enum'));
  return map.get('type') === 'null' || map.get('const') === null || (options.length === 1 && options[0] === null);
};

// An alternative such as { "required": ["a"] } restricts, but has no fields.
const isRestriction = (schema) =>
  schema instanceof Map &&
  [...schema.keys()].every((key) => ['required', 'not', 'title', 'description', '$comment'].includes(key) || (key === 'type' && schema.get('type') === 'object')) &&
  (schema.has('required') || schema.has('not'));

const constantOf = (schema) => {
  const map = asMap(schema);
  if (map.has('const')) return map.get('const');
  const options = asList(map.get('enum'));
  return options.length === 1 ? options[0] : ABSENT;
};

// `choices` maps the array of a union (or "types") to the alternative taken.
export function expandSchema(doc, parts, value, choices = NOTHING) {
  const view = {
    kind: 'json',
    keywords: new Map(), // annotations and limits; the outermost wins
    types: null,
    nullable: false,
    options: null, // [{ value, label }]
    unions: [], // [{ key, alternatives }]
    properties: new Map(), // name -> parts
    required: new Set(),
    patterns: [], // [pattern, schema]
    additional: [],
    closed: false, // additionalProperties: false
    items: [],
    prefix: [], // parts per position
    closedItems: false,
    conditional: false, // depends on the value
    broken: false,
  };
  let unionNull = false;
  const restrictOptions = (options) => {
    view.options = view.options
      ? view.options.filter((have) => options.some((option) => equalJson(option.value, have.value)))
      : options;
  };
  const addProperty = (name, schema) => {
    const known = view.properties.get(name);
    if (known) known.push(schema);
    else view.properties.set(name, [schema]);
  };
  const seen = new Set();
  const queue = [...parts];
  for (let i = 0; i < queue.length; i += 1) {
    const schema = queue[i];
    if (schema === true || seen.has(schema)) continue;
    if (!(schema instanceof Map)) {
      view.broken = true;
      continue;
    }
    seen.add(schema);
    for (const keyword of ['$ref', '$dynamicRef']) {
      if (!schema.has(keyword)) continue;
      const target = doc.resolve(schema.get(keyword));
      if (target === undefined) view.broken = true;
      else queue.push(target);
    }
    for (const [keyword, setting] of schema) if (!view.keywords.has(keyword)) view.keywords.set(keyword, setting);

    if (schema.has('type')) {
      const listed = [schema.get('type')].flat();
      if (!listed.length || !listed.every((type) => TYPES.has(type))) view.broken = true;
      const types = new Set(listed);
      if (schema.get('nullable') === true) types.add('null');
      if (types.has('number')) types.delete('integer');
      view.types = view.types ? intersectTypes(view.types, types) : types;
    } else if (schema.get('nullable') === true) unionNull = true;
    if (schema.has('const')) restrictOptions([{ value: schema.get('const') }]);
    if (Array.isArray(schema.get('enum'))) restrictOptions(schema.get('enum').map((option) => ({ value: option })));
    else if (schema.has('enum')) view.broken = true;

    if (schema.has('properties') && !(schema.get('properties') instanceof Map)) view.broken = true;
    for (const [name, property] of asMap(schema.get('properties'))) addProperty(name, property);
    for (const name of asList(schema.get('required'))) if (typeof name === 'string') view.required.add(name);
    view.patterns.push(...asMap(schema.get('patternProperties')));
    for (const keyword of ['additionalProperties', 'unevaluatedProperties']) {
      const additional = schema.get(keyword);
      if (additional === false) view.closed = true;
      else if (additional instanceof Map) view.additional.push(additional);
    }

    const items = schema.get('items');
    const tuple = schema.has('prefixItems') ? schema.get('prefixItems') : items;
    asList(tuple).forEach((item, index) => (view.prefix[index] ??= []).push(item));
    const rest = Array.isArray(items) ? schema.get('additionalItems') : items;
    if (rest === false || schema.get('unevaluatedItems') === false) view.closedItems = true;
    else if (rest !== undefined && rest !== true) view.items.push(rest);

    for (const part of asList(schema.get('allOf'))) queue.push(part);
    for (const keyword of ['oneOf', 'anyOf']) {
      const union = schema.get(keyword);
      if (!Array.isArray(union)) continue;
      if (choices.has(union)) {
        queue.push(choices.get(union));
        continue;
      }
      const alternatives = union.filter((alternative) => alternative !== false && !isNullSchema(alternative));
      if (union.some(isNullSchema)) unionNull = true;
      if (!alternatives.length) view.types ??= new Set(['null']);
      else if (alternatives.every(isRestriction)) continue;
      else if (alternatives.every((alternative) => constantOf(alternative) !== ABSENT)) {
        restrictOptions(alternatives.map((a) => ({ value: constantOf(a), label: asText(a.get('title')) })));
      } else if (alternatives.length === 1) queue.push(alternatives[0]);
      else view.unions.push({ key: union, alternatives });
    }

    if (schema.has('if')) {
      view.conditional = true;
      if (value !== undefined) {
        const branch = schema.get(matches(doc, schema.get('if'), value) ? 'then' : 'else');
        if (branch !== undefined) queue.push(branch);
      }
    }
    for (const keyword of ['dependentSchemas', 'dependentRequired', 'dependencies']) {
      for (const [name, dependent] of asMap(schema.get(keyword))) {
        view.conditional = true;
        if (!(value instanceof Map) || !value.has(name)) continue;
        if (Array.isArray(dependent)) {
          for (const needed of dependent) if (typeof needed === 'string') view.required.add(needed);
        } else queue.push(dependent);
      }
    }
  }
  settleTypes(view, unionNull, choices);
  view.kind = kindOf(view, choices);
  if (view.kind === 'object') {
    for (const name of view.required) if (!view.properties.has(name)) view.properties.set(name, view.additional);
  }
  return view;
}

function intersectTypes(a, b) {
  const both = new Set();
  for (const type of a) {
    if (b.has(type)) both.add(type);
    else if (type === 'integer' && b.has('number')) both.add('integer');
    else if (type === 'number' && b.has('integer')) both.add('integer');
  }
  return both;
}

function settleTypes(view, unionNull, choices) {
  const has = (...keywords) => keywords.some((keyword) => view.keywords.has(keyword));
  if (view.types?.size === 0) view.broken = true;
  if (!view.types && !view.unions.length && !view.options) {
    if (view.properties.size || view.required.size || has('additionalProperties', 'patternProperties', 'minProperties', 'maxProperties')) view.types = new Set(['object']);
    else if (has('items', 'prefixItems', 'minItems', 'maxItems', 'uniqueItems')) view.types = new Set(['array']);
    else if (has('minLength', 'maxLength', 'pattern', 'format', 'contentMediaType')) view.types = new Set(['string']);
    else if (has('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf')) view.types = new Set(['number']);
  }
  const listsNull = Boolean(view.types?.has('null'));
  view.nullable = listsNull ? view.types.size > 1 || view.unions.length > 0 : unionNull;
  if (listsNull && view.types.size > 1) view.types.delete('null');
  if (view.types?.size > 1 && !view.unions.length && !view.options) {
    const chosen = choices.get('types');
    if (chosen) view.types = new Set([chosen.get('type')]);
    else view.unions.push({ key: 'types', alternatives: [...view.types].map((type) => new Map([['type', type]])) });
  }
  if (view.options && view.nullable && !view.options.some((option) => option.value === null)) {
    view.options = [...view.options, { value: null }];
  }
}

function kindOf(view, choices) {
  if (view.broken || choices.size > MAX_CHOICES) return 'json';
  if (view.options) {
    if (view.options.length === 1) return 'const';
    if (view.options.length && view.options.length <= MAX_OPTIONS) return 'enum';
    return view.options.length && view.options.every((option) => typeof option.value === 'string') ? 'string' : 'json';
  }
  if (view.unions.length) return view.unions[0].alternatives.length <= MAX_VARIANTS ? 'union' : 'json';
  if (view.types?.size !== 1) return 'json';
  const [type] = view.types;
  if (type === 'null') {
    view.options = [{ value: null }];
    return 'const';
  }
  return type === 'integer' ? 'number' : type;
}

// ---- A small evaluator, for conditions and for the choice of a variant ----
// It counts faults by weight. `pattern` and `format` are not looked at: a
// foreign regular expression must not run here. What it cannot judge counts
// as right, because the server validates anyway.

const FAULT = { type: 100, fixed: 20, missing: 5, other: 1 };

export function matches(doc, schema, value) {
  return countFaults(doc, schema, value) === 0;
}

export function countFaults(doc, schema, value, left = { steps: 5000 }, depth = 0) {
  if (schema === false) return FAULT.type;
  if (!(schema instanceof Map) || depth > 40 || (left.steps -= 1) < 0) return 0;
  const count = (sub, item = value) => countFaults(doc, sub, item, left, depth + 1);
  const number = (keyword) => {
    const setting = schema.get(keyword);
    return setting instanceof JsonNumber ? Number(setting.text) : NaN;
  };
  let faults = 0;
  const type = typeOfJson(value);
  if (schema.has('type') && !(value === null && schema.get('nullable') === true)) {
    const types = [schema.get('type')].flat();
    const isInteger = type === 'number' && value.isInteger;
    if (!types.includes(type) && !(isInteger && types.includes('integer'))) return FAULT.type;
  }
  if (schema.has('const') && !equalJson(schema.get('const'), value)) faults += FAULT.fixed;
  if (Array.isArray(schema.get('enum')) && !schema.get('enum').some((option) => equalJson(option, value))) faults += FAULT.fixed;
  if (schema.has('$ref')) faults += count(doc.resolve(schema.get('$ref')));

  // Comparisons with NaN (keyword missing) are false, which is what we want.
  const range = (size, low, high) => (size < number(low) || size > number(high) ? FAULT.other : 0);
  if (type === 'number') {
    const n = Number(value.text);
    faults += range(n, 'minimum', 'maximum');
    if (n <= number('exclusiveMinimum') || n >= number('exclusiveMaximum')) faults += FAULT.other;
    if (schema.get('exclusiveMinimum') === true && n === number('minimum')) faults += FAULT.other;
    if (schema.get('exclusiveMaximum') === true && n === number('maximum')) faults += FAULT.other;
    const ratio = n / number('multipleOf');
    if (Math.abs(ratio - Math.round(ratio)) > 1e-9) faults += FAULT.other;
  } else if (type === 'string') {
    faults += range([...value].length, 'minLength', 'maxLength');
  } else if (type === 'array') {
    faults += range(value.length, 'minItems', 'maxItems');
    const items = schema.get('items');
    const tuple = asList(schema.has('prefixItems') ? schema.get('prefixItems') : items);
    const rest = Array.isArray(items) ? schema.get('additionalItems') : items;
    value.forEach((item, i) => {
      faults += count(i < tuple.length ? tuple[i] : rest, item);
    });
    if (schema.has('contains') && !value.some((item) => count(schema.get('contains'), item) === 0)) faults += FAULT.other;
  } else if (type === 'object') {
    faults += range(value.size, 'minProperties', 'maxProperties');
    for (const name of asList(schema.get('required'))) if (typeof name === 'string' && !value.has(name)) faults += FAULT.missing;
    const properties = asMap(schema.get('properties'));
    const additional = asMap(schema.get('patternProperties')).size ? undefined : schema.get('additionalProperties');
    for (const [name, item] of value) {
      if (properties.has(name)) faults += Math.min(count(properties.get(name), item), 2 * FAULT.fixed);
      else if (additional === false) faults += FAULT.other;
      else faults += Math.min(count(additional, item), FAULT.fixed);
    }
  }
  for (const part of asList(schema.get('allOf'))) faults += count(part);
  for (const keyword of ['anyOf', 'oneOf']) {
    const union = asList(schema.get(keyword));
    if (!union.length) continue;
    const each = union.map((part) => count(part));
    faults += each.reduce((least, n) => Math.min(least, n), Infinity);
    if (keyword === 'oneOf' && each.filter((n) => n === 0).length > 1) faults += FAULT.other;
  }
  if (schema.has('not') && count(schema.get('not')) === 0) faults += FAULT.other;
  if (schema.has('if')) faults += count(schema.get(count(schema.get('if')) === 0 ? 'then' : 'else'));
  return faults;
}

// The index of the alternative which fits `value` best: fewest faults, then
// most properties known by name.
export function bestAlternative(doc, alternatives, value) {
  let best = 0;
  let bestScore = Infinity;
  const steps = Math.max(100, Math.min(5000, 40000 / alternatives.length));
  alternatives.forEach((alternative, index) => {
    let score = countFaults(doc, alternative, value, { steps }) * 1000;
    if (value instanceof Map) {
      const { properties } = expandSchema(doc, [alternative], value);
      let known = 0;
      for (const name of value.keys()) if (properties.has(name)) known += 1;
      score -= Math.min(known, 999);
    }
    if (score < bestScore) [best, bestScore] = [index, score];
  });
  return best;
}

// A short text which tells an alternative from its siblings.
export function alternativeLabel(doc, alternative, typeNames) {
  const view = expandSchema(doc, [alternative]);
  const title = asText(view.keywords.get('title'));
  if (title) return title;
  const ref = asText(asMap(alternative).get('$ref'));
  if (ref && /\/[^/#]+$/.test(ref)) return ref.slice(ref.lastIndexOf('/') + 1);
  for (const [name, parts] of view.properties) {
    const constant = parts.map(constantOf).find((value) => value !== ABSENT);
    if (typeof constant === 'string') return `${name}: ${constant}`;
  }
  const { kind } = view;
  if (kind === 'const') return String(view.options[0].value?.text ?? view.options[0].value);
  if (kind === 'enum') return view.options.slice(0, 4).map(({ value }) => String(value?.text ?? value)).join(' | ');
  if (kind === 'object' && view.properties.size) return `${typeNames.object}: ${[...view.properties.keys()].slice(0, 3).join(', ')}`;
  if (kind === 'array' && view.items.length) {
    const items = expandSchema(doc, view.items);
    const [type] = items.types ?? [];
    if (items.types?.size === 1) return `${typeNames.array}: ${typeNames[type]}`;
  }
  const [type] = view.types ?? [];
  if (view.types?.size !== 1) return typeNames.any;
  const format = asText(view.keywords.get('format'));
  return format ? `${typeNames[type]} (${format})` : typeNames[type];
}

// The value a new field starts with: a valid default, else the least value of
// the type when it is required, else ABSENT. Bounded in depth and size, for
// schemas which require themselves.
export function initialValue(doc, parts, required, choices = NOTHING, left = { nodes: 1000 }, depth = 0) {
  left.nodes -= 1;
  const view = expandSchema(doc, parts, undefined, choices);
  if (view.keywords.has('default')) {
    const preset = view.keywords.get('default');
    const fits = parts.every((part) => matches(doc, part, preset)) && !view.broken;
    if (fits && (required || preset !== null)) return preset;
  }
  if (!required) return ABSENT;
  switch (view.kind) {
    case 'const':
      return view.options[0].value;
    case 'string':
      return '';
    case 'boolean':
      return false;
    case 'union': {
      const { key, alternatives } = view.unions[0];
      return initialValue(doc, parts, true, new Map(choices).set(key, alternatives[0]), left, depth);
    }
    case 'array': {
      const least = view.keywords.get('minItems');
      const size = Math.max(view.prefix.length, least instanceof JsonNumber ? Number(least.text) : 0);
      const array = [];
      while (array.length < Math.min(size, 20) && depth < 6 && left.nodes > 0) {
        const item = initialValue(doc, view.prefix[array.length] ?? view.items, true, NOTHING, left, depth + 1);
        array.push(item === ABSENT ? null : item);
      }
      return array;
    }
    case 'object': {
      const object = new Map();
      // What is filled in may switch a condition, which may add properties.
      for (let round = 0; round < (view.conditional ? 3 : 1); round += 1) {
        const { properties, required: needed } = expandSchema(doc, parts, object, choices);
        for (const [name, property] of properties) {
          if (object.has(name) || depth >= 6 || left.nodes <= 0) continue;
          const item = initialValue(doc, property, needed.has(name), NOTHING, left, depth + 1);
          if (item !== ABSENT) object.set(name, item);
        }
      }
      return object;
    }
    default:
      return ABSENT;
  }
}
