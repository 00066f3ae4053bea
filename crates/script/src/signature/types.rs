//! One JSON Schema as a TypeScript type, with a chosen amount of detail.

use serde_json::{Map, Value};

use super::references::References;
use super::text::{comment, key, literal};

/// Subschemas that one type may show. References can make the type of a small schema exponentially long.
const MAX_SHOWN_SUBSCHEMAS: usize = 2_000;
/// Nesting that is always enough to find a type that cannot be shown.
const MAX_DEPTH: usize = 32;
/// Values of an `enum` that are listed.
const MAX_ENUM: usize = 24;
/// Characters of a literal.
const MAX_LITERAL_CHARS: usize = 60;

/// How much of a schema is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Detail {
    /// Characters of the description of a property; 0 for none.
    pub(super) description: usize,
    /// Nesting of object types; deeper ones are `object`.
    pub(super) depth: usize,
    /// Whether optional properties below the first level are shown.
    pub(super) nested_optional: bool,
    /// Whether any optional property is shown.
    pub(super) optional: bool,
}

/// A type, and the named types that it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TypeText {
    pub(super) text: String,
    /// `type NAME = …;` for recursive references.
    pub(super) named: Vec<(String, String)>,
    /// Whether an object without properties is enough.
    pub(super) all_optional: bool,
}

/// The type of a schema.
pub(super) fn render(schema: &Value, detail: Detail) -> TypeText {
    let mut renderer = Renderer {
        references: References::new(schema),
        detail,
        nodes: 0,
        open: Vec::new(),
        used: Vec::new(),
        named: Vec::new(),
    };
    // A schema that refers to itself as a whole has a name.
    renderer.open.push("#".to_owned());
    let text = renderer.type_of(schema, 0);
    let mut text = text.0;
    renderer.open.pop();
    if renderer.used.iter().any(|used| used == "#") {
        let name = renderer.references.name("#");
        renderer.named.push((name.clone(), std::mem::replace(&mut text, name)));
    }
    TypeText { text, named: renderer.named, all_optional: all_optional(schema) }
}

/// Whether no property is required.
fn all_optional(schema: &Value) -> bool {
    schema.get("required").and_then(Value::as_array).is_none_or(Vec::is_empty)
        && !["anyOf", "oneOf", "allOf", "$ref"].iter().any(|keyword| schema.get(*keyword).is_some())
}

/// A type with what surrounds it in a larger one: unions and intersections need parentheses.
struct Type(String, Shape);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Single,
    Union,
    Intersection,
}

impl Type {
    fn single(text: impl Into<String>) -> Self {
        Self(text.into(), Shape::Single)
    }

    fn grouped(self) -> String {
        match self.1 {
            Shape::Single => self.0,
            _ => format!("({})", self.0),
        }
    }
}

struct Renderer<'a> {
    references: References<'a>,
    detail: Detail,
    nodes: usize,
    /// References that are being shown.
    open: Vec<String>,
    /// References that were found inside themselves.
    used: Vec<String>,
    named: Vec<(String, String)>,
}

impl<'a> Renderer<'a> {
    fn type_of(&mut self, schema: &'a Value, depth: usize) -> Type {
        self.nodes += 1;
        if self.nodes > MAX_SHOWN_SUBSCHEMAS || depth > MAX_DEPTH {
            return Type::single("unknown");
        }
        let schema = match schema {
            Value::Bool(false) => return Type::single("never"),
            Value::Object(schema) => schema,
            _ => return Type::single("unknown"),
        };
        let mut parts = Vec::new();
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            parts.push(self.reference(reference, depth));
        }
        if let Some(value) = schema.get("const") {
            return nullable(schema, constant(value));
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return nullable(schema, enumeration(values));
        }
        if let Some(own) = self.own_type(schema, depth) {
            parts.push(own);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(choices) = schema.get(keyword).and_then(Value::as_array) {
                let choices: Vec<Type> = choices.iter().map(|choice| self.type_of(choice, depth)).collect();
                parts.push(union(choices));
            }
        }
        if let Some(all) = schema.get("allOf").and_then(Value::as_array) {
            for part in all {
                parts.push(self.type_of(part, depth));
            }
        }
        nullable(schema, intersection(parts))
    }

    fn reference(&mut self, reference: &str, depth: usize) -> Type {
        let Some((reference, target)) = self.references.target(reference) else {
            return Type::single("unknown");
        };
        if self.open.contains(&reference) {
            let name = self.references.name(&reference);
            if !self.used.contains(&reference) {
                self.used.push(reference);
            }
            return Type::single(name);
        }
        if self.used.contains(&reference) {
            return Type::single(self.references.name(&reference));
        }
        self.open.push(reference.clone());
        let shown = self.type_of(target, depth);
        self.open.pop();
        if !self.used.contains(&reference) {
            return shown;
        }
        let name = self.references.name(&reference);
        self.named.push((name.clone(), shown.0));
        Type::single(name)
    }

    /// The type by `type` and the keywords of objects and arrays.
    fn own_type(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Option<Type> {
        match schema.get("type") {
            Some(Value::String(name)) => Some(self.named_type(name, schema, depth)),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                let choices: Vec<Type> = names.map(|name| self.named_type(name, schema, depth)).collect();
                (!choices.is_empty()).then(|| union(choices))
            }
            _ if ["properties", "additionalProperties", "patternProperties"]
                .iter()
                .any(|k| schema.contains_key(*k)) =>
            {
                Some(self.object(schema, depth))
            }
            _ if ["items", "prefixItems"].iter().any(|keyword| schema.contains_key(*keyword)) => {
                Some(self.array(schema, depth))
            }
            _ => None,
        }
    }

    fn named_type(&mut self, name: &str, schema: &'a Map<String, Value>, depth: usize) -> Type {
        match name {
            "string" => Type::single("string"),
            "number" | "integer" => Type::single("number"),
            "boolean" => Type::single("boolean"),
            "null" => Type::single("null"),
            "object" => self.object(schema, depth),
            "array" => self.array(schema, depth),
            _ => Type::single("unknown"),
        }
    }

    fn array(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Type {
        let (prefix, rest) = match (schema.get("prefixItems"), schema.get("items")) {
            (Some(Value::Array(prefix)), rest) => (prefix.as_slice(), rest),
            // The form before draft 2020-12.
            (None, Some(Value::Array(prefix))) => (prefix.as_slice(), schema.get("additionalItems")),
            (_, rest) => (&[][..], rest),
        };
        if prefix.is_empty() {
            let item = rest.map_or_else(|| Type::single("unknown"), |rest| self.type_of(rest, depth));
            return Type::single(format!("{}[]", item.grouped()));
        }
        let mut parts: Vec<String> = prefix.iter().map(|part| self.type_of(part, depth).0).collect();
        match rest {
            Some(Value::Bool(false)) => {}
            Some(rest) => parts.push(format!("...{}[]", self.type_of(rest, depth).grouped())),
            None => parts.push("...unknown[]".to_owned()),
        }
        Type::single(format!("[{}]", parts.join(", ")))
    }

    fn object(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Type {
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = self.other_properties(schema, depth);
        let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
            return others.unwrap_or_else(|| {
                let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
                Type::single(if closed { "{}" } else { "object" })
            });
        };
        if depth >= self.detail.depth {
            return Type::single("object");
        }
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let mut parts = Vec::new();
        let mut hidden = 0_usize;
        for (name, property) in properties {
            let is_required = required.contains(&name.as_str());
            let is_shown =
                is_required || (self.detail.optional && (depth == 0 || self.detail.nested_optional));
            if !is_shown {
                hidden += 1;
                continue;
            }
            let mark = if is_required { "" } else { "?" };
            let shown = self.type_of(property, depth + 1);
            let description = self.description(property);
            parts.push(format!("{description}{}{mark}: {}", key(name), shown.0));
        }
        if hidden > 0 {
            parts.push(format!("/* {hidden} more optional */"));
        }
        let own = Type::single(format!("{{ {} }}", parts.join("; ")));
        match others {
            Some(others) => intersection(vec![own, others]),
            None => own,
        }
    }

    /// `Record` of the properties without a name of their own.
    fn other_properties(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Option<Type> {
        let mut choices = Vec::new();
        if let Some(patterns) = schema.get("patternProperties").and_then(Value::as_object) {
            choices.extend(patterns.values().map(|pattern| self.type_of(pattern, depth + 1)));
        }
        match schema.get("additionalProperties") {
            Some(Value::Object(other)) if other.is_empty() => choices.push(Type::single("unknown")),
            Some(other @ Value::Object(_)) => choices.push(self.type_of(other, depth + 1)),
            Some(Value::Bool(true)) if schema.get("properties").is_none() => {
                choices.push(Type::single("unknown"));
            }
            _ => {}
        }
        (!choices.is_empty()).then(|| Type::single(format!("Record<string, {}>", union(choices).0)))
    }

    fn description(&self, property: &Value) -> String {
        if self.detail.description == 0 {
            return String::new();
        }
        let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let mut text = comment(text, self.detail.description);
        let scalar = |value: &&Value| !value.is_object() && !value.is_array() && !value.is_null();
        if let Some(default) = property.get("default").filter(scalar) {
            let default = comment(&constant(default).0, MAX_LITERAL_CHARS);
            let space = if text.is_empty() { "" } else { " " };
            text.push_str(&format!("{space}(default {default})"));
        }
        if text.is_empty() { text } else { format!("/** {text} */ ") }
    }
}

fn constant(value: &Value) -> Type {
    match value {
        Value::String(text) if text.chars().count() > MAX_LITERAL_CHARS => Type::single("string"),
        Value::String(text) => Type::single(literal(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Type::single(value.to_string()),
        Value::Array(_) => Type::single("unknown[]"),
        Value::Object(_) => Type::single("object"),
    }
}

fn enumeration(values: &[Value]) -> Type {
    if values.len() <= MAX_ENUM {
        return union(values.iter().map(constant).collect());
    }
    let first: Vec<String> = values.iter().take(3).map(|value| constant(value).0).collect();
    let first = comment(&first.join(", "), 2 * MAX_LITERAL_CHARS);
    let is_text = values.iter().all(Value::is_string);
    let name = if is_text { "string" } else { "unknown" };
    Type::single(format!("{name} /* {} values: {first}, … */", values.len()))
}

fn nullable(schema: &Map<String, Value>, shown: Type) -> Type {
    match schema.get("nullable") {
        Some(Value::Bool(true)) => union(vec![shown, Type::single("null")]),
        _ => shown,
    }
}

fn union(choices: Vec<Type>) -> Type {
    let mut texts: Vec<String> = Vec::new();
    for choice in choices {
        let text = if choice.1 == Shape::Intersection { choice.grouped() } else { choice.0 };
        if text != "never" && !texts.contains(&text) {
            texts.push(text);
        }
    }
    // `unknown` includes all others.
    if texts.iter().any(|text| text == "unknown") {
        return Type::single("unknown");
    }
    match texts.len() {
        0 => Type::single("never"),
        1 => Type(texts.remove(0), Shape::Single),
        _ => Type(texts.join(" | "), Shape::Union),
    }
}

fn intersection(parts: Vec<Type>) -> Type {
    let mut parts: Vec<Type> = parts.into_iter().filter(|part| part.0 != "unknown").collect();
    // Beside an object type, `object` adds nothing.
    if parts.len() > 1 {
        parts.retain(|part| part.0 != "object");
    }
    match parts.len() {
        0 => Type::single("unknown"),
        1 => parts.remove(0),
        _ => {
            let mut texts: Vec<String> = Vec::new();
            for part in parts {
                let text = if part.1 == Shape::Union { part.grouped() } else { part.0 };
                if !texts.contains(&text) {
                    texts.push(text);
                }
            }
            match texts.len() {
                1 => Type::single(texts.remove(0)),
                _ => Type(texts.join(" & "), Shape::Intersection),
            }
        }
    }
}
