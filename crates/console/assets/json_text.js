// JSON text <-> values, without loss.
//
// Value model: null, booleans and strings are themselves; a number is a
// JsonNumber which keeps its source text; an array is an Array; an object is
// a Map, so that names such as "__proto__" are ordinary keys. The parser and
// the serializer keep their own stack, so nesting depth cannot overflow ours.

export class JsonNumber {
  #canonical;

  constructor(text) {
    this.text = text;
  }

  // Equal numbers have equal canonical texts: digits without outer zeros plus
  // a decimal exponent. 1, 1.0 and 10e-1 all become "1e0".
  get canonical() {
    return (this.#canonical ??= canonicalNumber(this.text));
  }

  get isInteger() {
    return !this.canonical.includes('e-');
  }
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;

function canonicalNumber(text) {
  const [mantissa, exponent = '0'] = text.toLowerCase().split('e');
  const sign = mantissa.startsWith('-') ? '-' : '';
  const [whole, fraction = ''] = mantissa.slice(sign.length).split('.');
  const all = whole + fraction;
  let start = 0;
  while (all[start] === '0') start += 1;
  let end = all.length;
  while (end > start && all[end - 1] === '0') end -= 1;
  if (start === end) return '0e0';
  // An absurdly long exponent is compared by its text: BigInt would be slow.
  if (exponent.length > 100) return text;
  const shift = BigInt(exponent.replace('+', '')) + BigInt(all.length - end - fraction.length);
  return `${sign}${all.slice(start, end)}e${shift}`;
}

// True when the whole text is one JSON number.
export function isNumberText(text) {
  NUMBER.lastIndex = 0;
  return NUMBER.test(text) && NUMBER.lastIndex === text.length;
}

// Throws SyntaxError when `text` is not exactly one JSON value.
export function parseJson(text) {
  let at = 0;
  const fail = () => {
    throw new SyntaxError(`unexpected ${at < text.length ? JSON.stringify(text[at]) : 'end'} at ${at}`);
  };
  const skipSpace = () => {
    for (let c = text.charCodeAt(at); c === 32 || c === 10 || c === 13 || c === 9; c = text.charCodeAt(at)) at += 1;
  };
  const readString = () => {
    const start = at;
    let escaped = false;
    at += 1;
    for (;;) {
      const c = text.charCodeAt(at);
      if (c === 34) break;
      if (!(c >= 32)) fail(); // control character, or NaN at the end
      if (c === 92) {
        escaped = true;
        at += 1;
      }
      at += 1;
    }
    at += 1;
    const raw = text.slice(start, at);
    return escaped ? JSON.parse(raw) : raw.slice(1, -1);
  };
  const readScalar = () => {
    if (text[at] === '"') return readString();
    for (const [word, value] of [['true', true], ['false', false], ['null', null]]) {
      if (text.startsWith(word, at)) {
        at += word.length;
        return value;
      }
    }
    NUMBER.lastIndex = at;
    if (!NUMBER.test(text)) fail();
    const number = new JsonNumber(text.slice(at, NUMBER.lastIndex));
    at = NUMBER.lastIndex;
    return number;
  };
  const readKey = (object) => {
    skipSpace();
    if (text[at] !== '"') fail();
    const key = readString();
    skipSpace();
    if (text[at] !== ':') fail();
    at += 1;
    return { object, key };
  };

  const stack = []; // open containers: { array } or { object, key }
  for (;;) {
    skipSpace();
    let value;
    const open = text[at];
    if (open === '[' || open === '{') {
      at += 1;
      skipSpace();
      const empty = text[at] === (open === '[' ? ']' : '}');
      if (!empty) {
        stack.push(open === '[' ? { array: [] } : readKey(new Map()));
        continue;
      }
      at += 1;
      value = open === '[' ? [] : new Map();
    } else {
      value = readScalar();
    }
    // Hand the finished value to its container; a container which ends here
    // is itself a finished value.
    for (;;) {
      const top = stack.at(-1);
      skipSpace();
      if (!top) {
        if (at < text.length) fail();
        return value;
      }
      if (top.array) top.array.push(value);
      else top.object.set(top.key, value);
      const next = text[at];
      if (next === ',') {
        at += 1;
        if (top.object) stack[stack.length - 1] = readKey(top.object);
        break;
      }
      if (next !== (top.array ? ']' : '}')) fail();
      at += 1;
      value = top.array ?? top.object;
      stack.pop();
    }
  }
}

// The JSON text of a value; `indent` spaces per level, 0 for one line.
export function stringifyJson(root, indent = 0) {
  const out = [];
  const stack = [];
  // Indentation ends at a level, or deep nesting would give quadratic output.
  const line = (level) => (indent ? `\n${' '.repeat(indent * Math.min(level, 40))}` : '');
  const write = (value) => {
    if (value instanceof JsonNumber) out.push(value.text);
    else if (Array.isArray(value) || value instanceof Map) {
      const isArray = Array.isArray(value);
      const size = isArray ? value.length : value.size;
      if (size === 0) out.push(isArray ? '[]' : '{}');
      else {
        out.push(isArray ? '[' : '{');
        stack.push({ isArray, entries: value[Symbol.iterator](), first: true });
      }
    } else out.push(JSON.stringify(value));
  };
  write(root);
  while (stack.length) {
    const top = stack.at(-1);
    const { done, value } = top.entries.next();
    if (done) {
      stack.pop();
      out.push(line(stack.length), top.isArray ? ']' : '}');
      continue;
    }
    out.push(top.first ? '' : ',', line(stack.length));
    top.first = false;
    if (top.isArray) write(value);
    else {
      out.push(JSON.stringify(value[0]), indent ? ': ' : ':');
      write(value[1]);
    }
  }
  return out.join('');
}

// Equality of JSON values. Numbers are compared by their mathematical value,
// or by their source text when `byText` is set; very deep parts are compared
// as texts.
export function equalJson(a, b, byText = false, depth = 0) {
  if (depth > 500) return stringifyJson(a) === stringifyJson(b);
  if (a instanceof JsonNumber && b instanceof JsonNumber) {
    return a.text === b.text || (!byText && a.canonical === b.canonical);
  }
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => equalJson(item, b[i], byText, depth + 1));
  }
  if (a instanceof Map) {
    if (!(b instanceof Map) || a.size !== b.size) return false;
    for (const [key, item] of a) if (!b.has(key) || !equalJson(item, b.get(key), byText, depth + 1)) return false;
    return true;
  }
  return a === b;
}

export function typeOfJson(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (value instanceof Map) return 'object';
  if (value instanceof JsonNumber) return 'number';
  return typeof value;
}
