// Generates instances of a JSON Schema. Not all keywords are understood: the validator of the hub decides which instances are
// valid.

/** How many instances are generated for a schema. */
const VARIANTS = 9;
const MAX_DEPTH = 12;
/** Optional properties deeper than this are left out, so that recursive schemas end. */
const MAX_OPTIONAL_DEPTH = 5;

const FORMATS = {
    date: "2024-02-29",
    "date-time": "2024-02-29T12:30:00Z",
    duration: "P1D",
    email: "a@example.com",
    hostname: "example.com",
    ipv4: "127.0.0.1",
    ipv6: "::1",
    "json-pointer": "/a/0",
    regex: "a+",
    time: "12:30:00Z",
    uri: "https://example.com/x",
    url: "https://example.com/x",
    uuid: "123e4567-e89b-12d3-a456-426614174000",
};

/** Texts that are tried for a `pattern`. */
const SAMPLES = [
    ...["a", "A", "1", "12", "2024", "2024-02-29", "2024-02", "12:30", "abc", "ABC", "abc-def", "a_b", "#aabbcc", "a/b", "a.b"],
    ...["https://example.com", "1.2.3", "en", "en-US", "US", "USD", "12345", "0.5", "+14155550123", "@a", "C123ABC456", "x-a"],
    ...["123e4567-e89b-12d3-a456-426614174000", "12345678", "12345678901234", "2d6+3", "192.168.1.1", "AS123", "中文"],
    ...[
        "0".repeat(24),
        "a".repeat(32),
        "a".repeat(40),
        "0".repeat(64),
        `0x${"a".repeat(64)}`,
        `0x${"a".repeat(40)}`,
        "B".repeat(55),
    ],
];
const TEXTS = [
    "",
    "text",
    "two\nlines\r\nand\ttab",
    ' 中文 "quoted" \\ 😀 ',
    "<img src=x onerror=hostileScriptRan()>",
    "null",
    "123",
];
const OTHER_NAMES = [["extra key"], ["__proto__", "toString"], [], ["", "a/b~c"]];

/** Sets a member, also one named `__proto__`. */
const define = (object, name, value) =>
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });

const without = (object, ...names) => Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));

function merge(one, other) {
    if (!other || typeof other !== "object") return one;
    const properties = one.properties || other.properties ? { ...one.properties, ...other.properties } : undefined;
    return { ...one, ...other, properties, required: [...(one.required ?? []), ...(other.required ?? [])] };
}

/** Instances of a schema, as JSON texts. The first has only required properties, the second all of them. */
export function generateInstances(schema) {
    const texts = new Set();
    for (let variant = 0; variant < VARIANTS; variant += 1) {
        const value = new Generator(schema).generate(schema, { variant, depth: 0 });
        if (value !== undefined) texts.add(JSON.stringify(value));
    }
    return [...texts];
}

class Generator {
    constructor(root) {
        this.root = root;
    }

    resolve(reference) {
        if (reference === "#") return this.root;
        const tokens = reference.slice(2).split("/");
        const member = (token) => decodeURIComponent(token).replaceAll("~1", "/").replaceAll("~0", "~");
        return tokens.reduce((node, token) => node?.[member(token)], this.root);
    }

    /** An instance, or `undefined` if there is none within the depth. */
    generate(schema, { variant, depth }) {
        const next = (inner, shift = 0) => this.generate(inner, { variant: variant + shift, depth: depth + 1 });
        if (schema === true || schema === undefined) return ["any", 5, { a: [1, null] }, [], null, false][variant % 6];
        if (!schema || typeof schema !== "object") return null;
        if (depth > MAX_DEPTH) return undefined;
        if (typeof schema.$ref === "string") return next(merge(this.resolve(schema.$ref) ?? {}, without(schema, "$ref")));
        if ("const" in schema) return schema.const;
        if (Array.isArray(schema.enum) && schema.enum.length > 0) return schema.enum[variant % schema.enum.length];
        if (Array.isArray(schema.allOf)) {
            const parts = schema.allOf.map((part) => (part?.$ref ? merge(this.resolve(part.$ref), without(part, "$ref")) : part));
            return next(parts.reduce(merge, without(schema, "allOf")));
        }
        for (const keyword of ["oneOf", "anyOf"]) {
            const variants = schema[keyword];
            if (!Array.isArray(variants) || variants.length === 0) continue;
            const choice = variants[variant % variants.length];
            return next(merge(without(schema, keyword), choice?.$ref ? this.resolve(choice.$ref) : choice));
        }
        if (schema.if) {
            const [condition, rest] = variant % 2 ? [schema.if, schema.then] : [{}, schema.else];
            return next(merge(merge(without(schema, "if", "then", "else"), condition), rest));
        }
        const implied = schema.properties ? "object" : schema.items ? "array" : undefined;
        const types = [schema.type ?? implied].flat();
        switch (types[variant % types.length]) {
            case "object":
                return this.object(schema, { variant, depth, next });
            case "array":
                return this.array(schema, { variant, next });
            case "integer":
                return number(schema, { variant, isInteger: true });
            case "number":
                return number(schema, { variant, isInteger: false });
            case "boolean":
                return variant % 2 === 1;
            case "null":
                return null;
            case "string":
                return text(schema, variant);
            default:
                return next(true);
        }
    }

    object(schema, { variant, depth, next }) {
        const object = {};
        const required = Array.isArray(schema.required) ? schema.required : [];
        for (const [index, [name, inner]] of Object.entries(schema.properties ?? {}).entries()) {
            const isRequired = required.includes(name);
            const isChosen = depth <= MAX_OPTIONAL_DEPTH && (variant === 1 || (variant > 1 && (index + variant) % 3 !== 0));
            if (!isRequired && !isChosen) continue;
            const value = next(inner, variant > 1 ? index : 0);
            if (value !== undefined) define(object, name, value);
        }
        const other = schema.additionalProperties === true ? undefined : schema.additionalProperties;
        for (const name of required)
            if (!Object.hasOwn(object, name)) define(object, name, next(schema.properties?.[name] ?? other));
        for (const [pattern, inner] of Object.entries(schema.patternProperties ?? {})) {
            const name = variant > 0 && SAMPLES.find((sample) => matches(pattern, sample));
            if (name) define(object, name, next(inner));
        }
        if (schema.additionalProperties === false || variant === 0) return object;
        for (const name of OTHER_NAMES[variant % OTHER_NAMES.length]) {
            const value = next(other, 1);
            if (value !== undefined) define(object, name, value);
        }
        return object;
    }

    array(schema, { variant, next }) {
        const tuple = schema.prefixItems ?? (Array.isArray(schema.items) ? schema.items : []);
        const array = tuple.map((item) => next(item));
        const items = Array.isArray(schema.items) ? schema.additionalItems : schema.items;
        const length = Math.max(schema.minItems ?? 0, Math.min(schema.maxItems ?? 9, [0, 2, 3, 1][variant % 4]));
        for (let index = array.length; index < length && items !== false; index += 1) {
            const value = next(items, index);
            if (value === undefined) break;
            array.push(value);
        }
        return array;
    }
}

function number(schema, { variant, isInteger }) {
    const step = isInteger ? 1 : 1e-3;
    const bound = (inclusive, exclusive, shift) => inclusive ?? (typeof exclusive === "number" ? exclusive + shift : undefined);
    const low = bound(schema.minimum, schema.exclusiveMinimum, step) ?? -Infinity;
    const high = bound(schema.maximum, schema.exclusiveMaximum, -step) ?? Infinity;
    const wishes = isInteger ? [0, 1, -3, 42, 9007199254740991, 7, 12] : [0, 1, -3, 42, 9007199254740991, 0.125, 1.5e30];
    return Math.min(high, Math.max(low, wishes[variant % wishes.length] * (schema.multipleOf ?? 1)));
}

function matches(pattern, sample) {
    try {
        return new RegExp(pattern, "u").test(sample);
    } catch {
        return false;
    }
}

function text({ format, pattern, minLength = 0, maxLength = Infinity }, variant) {
    if (Object.hasOwn(FORMATS, format ?? "")) return FORMATS[format];
    if (pattern) {
        const fits = (sample) => matches(pattern, sample) && sample.length >= minLength && sample.length <= maxLength;
        const found = SAMPLES.find((sample, index) => index >= variant % 3 && fits(sample)) ?? SAMPLES.find(fits);
        if (found) return found;
    }
    const characters = [...TEXTS[variant % TEXTS.length]];
    while (characters.length < minLength) characters.push("x");
    return characters.slice(0, maxLength).join("");
}

/** A value of another type. */
function replaced(value) {
    if (typeof value === "string") return { was: value };
    if (typeof value === "number") return String(value);
    if (typeof value === "boolean") return "yes";
    if (value === null) return [];
    return Array.isArray(value) ? { items: value } : [value];
}

/** An object with each member replaced. */
function mapMembers(object, replace) {
    const result = {};
    for (const [name, value] of Object.entries(object)) define(result, name, replace(value));
    return result;
}

/** Values that are probably invalid, made from a valid one, as JSON texts. */
export function invalidInstances(valid) {
    const inner = (value) => {
        if (Array.isArray(value)) return value.map(replaced);
        return value && typeof value === "object" ? mapMembers(value, replaced) : value;
    };
    const members = valid && typeof valid === "object" && !Array.isArray(valid) ? valid : {};
    const objects = [mapMembers(members, replaced), mapMembers(members, () => null), mapMembers(members, inner), {}];
    const others = [null, "text", 12.5, [1, [2]], true];
    return [...new Set([...objects, ...others].map((value) => JSON.stringify(value)))];
}
