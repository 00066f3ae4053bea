//! Narrows the listed schema of a tool by the argument schemas of rules. Adds constraints only; the text of the rest of
//! the schema is preserved.

use serde_json::{Map, Value, json};
use toolhub_core::{RawJson, RawObject};

use crate::schema_subset::{ANNOTATIONS, ASSERTIONS};

/// Keywords that evaluate another schema in place. In drafts before 2019-09 the keywords beside `$ref` are ignored.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords whose result depends on the other keywords of the same schema, so that nothing may be added beside them.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
/// The base URI of an embedded schema without its own.
const EMBEDDED_ID: &str = "urn:toolhub:tool-arguments";

/// What rules permit for the arguments of one tool.
#[derive(Debug)]
pub(crate) struct ArgumentLimits<'a> {
    /// Whether no call is possible.
    is_forbidden: bool,
    /// Schemas of arguments that are forbidden, without duplicates.
    forbidden: Vec<&'a Map<String, Value>>,
    /// Whether any arguments are granted.
    grants_all: bool,
    /// Schemas of arguments that are granted, without duplicates.
    granted: Vec<&'a Map<String, Value>>,
}

impl<'a> ArgumentLimits<'a> {
    pub(crate) fn new(grants_all: bool) -> Self {
        Self { is_forbidden: false, forbidden: Vec::new(), grants_all, granted: Vec::new() }
    }

    /// Adds a rule that forbids calls with these arguments; with any arguments if `None`.
    pub(crate) fn forbid(&mut self, schema: Option<&'a Map<String, Value>>) {
        match schema {
            Some(schema) if self.forbidden.contains(&schema) => {}
            Some(schema) => self.forbidden.push(schema),
            None => self.is_forbidden = true,
        }
    }

    /// Adds a rule that grants calls with these arguments; with any arguments if `None`.
    pub(crate) fn grant(&mut self, schema: Option<&'a Map<String, Value>>) {
        match schema {
            Some(schema) if self.granted.contains(&schema) => {}
            Some(schema) => self.granted.push(schema),
            None => self.grants_all = true,
        }
    }
}

/// Returns a schema that accepts what the schema and the limits accept.
pub(crate) fn narrow(schema: &RawJson, limits: ArgumentLimits<'_>) -> RawJson {
    let ArgumentLimits { is_forbidden, forbidden, grants_all, granted } = limits;
    let granted = if grants_all { Vec::new() } else { granted };
    if is_forbidden || (!grants_all && granted.is_empty()) {
        return RawObject::default().with("type", "object").with("not", RawJson::empty_object()).into_raw();
    }
    if schema.get() == "false" || (forbidden.is_empty() && granted.is_empty()) {
        return schema.clone();
    }
    let mut narrowed = Narrowed::new(schema);
    narrowed.require_object();
    match granted.as_slice() {
        [] => {}
        [only] => narrowed.grant(only),
        several => narrowed.additions.push(RawJson::of(&json!({"anyOf": several}))),
    }
    for schema in forbidden {
        if narrowed.root.contains("not") {
            narrowed.additions.push(RawJson::of(&json!({"not": schema})));
        } else {
            narrowed.root.set("not", RawJson::of(schema));
        }
    }
    narrowed.finish()
}

/// A schema to which constraints are added.
struct Narrowed {
    root: RawObject,
    /// Schemas to add to `allOf`.
    additions: Vec<RawJson>,
}

impl Narrowed {
    fn new(schema: &RawJson) -> Self {
        let mut root = schema.object().unwrap_or_default();
        let value = schema.value();
        let dialect = value["$schema"].as_str().unwrap_or_default();
        let is_early = ["draft-03", "draft-04"].iter().any(|draft| dialect.contains(draft));
        let ignores_siblings =
            is_early || ["draft-06", "draft-07"].iter().any(|draft| dialect.contains(draft));
        if root.contains("$ref") {
            detach_reference(&mut root, ignores_siblings);
        }
        if has_root_dependency(&value) {
            root = embed(root, if is_early { "id" } else { "$id" });
        }
        Self { root, additions: Vec::new() }
    }

    /// Arguments are an object; a decision rejects everything else.
    fn require_object(&mut self) {
        match self.root.get("type") {
            None => self.root.set("type", "object"),
            Some(kind) if kind.text().as_deref() == Some("object") => {}
            Some(_) => self.additions.push(RawJson::of(&json!({"type": "object"}))),
        }
    }

    /// Adds the constraints of a rule; to the tool's own properties where possible, so that a model reads them there.
    fn grant(&mut self, rule: &Map<String, Value>) {
        let is_simple = rule.iter().all(|(key, value)| match key.as_str() {
            "properties" => value.is_object(),
            "required" => value.is_array(),
            "type" => value == "object",
            key => ANNOTATIONS.contains(&key),
        });
        if !is_simple {
            self.additions.push(RawJson::of(rule));
            return;
        }
        if let Some(Value::Object(limits)) = rule.get("properties") {
            let mut properties = self.root.get("properties").and_then(RawJson::object).unwrap_or_default();
            // A new property could be one that `additionalProperties` excludes: it stays outside.
            let mut others = Map::new();
            for (name, limit) in limits {
                match properties.get(name).map(|property| merge_property(property, limit)) {
                    Some(merged) => properties.set(name.clone(), merged),
                    None => {
                        others.insert(name.clone(), limit.clone());
                    }
                }
            }
            if !properties.is_empty() {
                self.root.set("properties", properties);
            }
            if !others.is_empty() {
                self.additions.push(RawJson::of(&json!({"properties": others})));
            }
        }
        if let Some(Value::Array(required)) = rule.get("required") {
            let root_required = self.root.get("required").and_then(|names| names.decode::<Vec<Value>>().ok());
            let mut names = root_required.unwrap_or_default();
            names.extend(required.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
            self.root.set("required", RawJson::of(&names));
        }
    }

    fn finish(mut self) -> RawJson {
        append_all_of(&mut self.root, self.additions);
        self.root.into_raw()
    }
}

/// Moves `$ref` of the root into `allOf`, where keywords can be added beside it.
fn detach_reference(root: &mut RawObject, ignores_siblings: bool) {
    let Some(reference) = root.get("$ref").cloned() else { return };
    if ignores_siblings {
        root.retain(|key| {
            matches!(key, "$schema" | "$id" | "id" | "definitions" | "$defs") || ANNOTATIONS.contains(&key)
        });
    } else {
        root.remove("$ref");
    }
    append_all_of(root, vec![RawObject::default().with("$ref", reference).into_raw()]);
}

/// Makes the schema a part of another one, with a base URI of its own, so that its references still concern itself.
fn embed(mut schema: RawObject, id: &'static str) -> RawObject {
    let mut root = RawObject::default();
    if let Some(dialect) = schema.get("$schema").cloned() {
        root.set("$schema", dialect);
        schema.remove("$schema");
    }
    if !schema.contains(id) {
        schema.set(id, EMBEDDED_ID);
    }
    append_all_of(&mut root, vec![schema.into_raw()]);
    root
}

/// Whether constraints added to the root would change the meaning of other parts, which refer to the root or to its
/// properties, or to what the root has not evaluated.
fn has_root_dependency(schema: &Value) -> bool {
    let names_root = |key: &str| {
        UNEVALUATED.contains(&key) || matches!(key, "$anchor" | "$dynamicAnchor" | "$recursiveAnchor")
    };
    let of_root = schema.as_object().is_some_and(|members| members.keys().any(|key| names_root(key)));
    of_root || refers_outside_definitions(schema)
}

/// Whether there is a reference to anything but the definitions. Data that look like a reference count, too.
fn refers_outside_definitions(value: &Value) -> bool {
    let is_definition = |target: &str| target.starts_with("#/$defs/") || target.starts_with("#/definitions/");
    match value {
        Value::Object(members) => members.iter().any(|(key, value)| match value {
            Value::String(target) => {
                REFERENCES.contains(&key.as_str()) && !(key == "$ref" && is_definition(target))
            }
            _ => refers_outside_definitions(value),
        }),
        Value::Array(items) => items.iter().any(refers_outside_definitions),
        _ => false,
    }
}

fn append_all_of(schema: &mut RawObject, additions: Vec<RawJson>) {
    if additions.is_empty() {
        return;
    }
    let existing_schemas = schema.get("allOf").and_then(|schemas| schemas.decode::<Vec<RawJson>>().ok());
    let mut schemas = existing_schemas.unwrap_or_default();
    schemas.extend(additions);
    schema.set("allOf", RawJson::of(&schemas));
}

/// Returns a schema that accepts what both the tool's schema of a property and the rule's accept.
fn merge_property(property: &RawJson, limit: &Value) -> RawJson {
    let limits = match limit {
        Value::Object(limits) => limits,
        Value::Bool(true) => return property.clone(),
        _ => return RawJson::from(false),
    };
    let Some(mut merged) = property.object() else {
        return if property.get() == "true" { RawJson::of(limits) } else { property.clone() };
    };
    if REFERENCES.iter().chain(&UNEVALUATED).any(|key| merged.contains(key)) {
        return RawJson::of(&json!({"allOf": [property, limits]}));
    }
    // Keywords that depend on others of the rule's schema stay together.
    let mut others = Map::new();
    for (key, value) in limits {
        let current_value = merged.get(key);
        if ANNOTATIONS.contains(&key.as_str()) {
            if current_value.is_none() {
                merged.set(key.clone(), value.clone());
            }
        } else if current_value.is_some_and(|current_value| current_value.value() == *value)
            && ASSERTIONS.contains(&key.as_str())
        {
            // Already there.
        } else if current_value.is_none() && ASSERTIONS.contains(&key.as_str()) {
            merged.set(key.clone(), value.clone());
        } else {
            others.insert(key.clone(), value.clone());
        }
    }
    if !others.is_empty() {
        append_all_of(&mut merged, vec![RawJson::of(&others)]);
    }
    merged.into_raw()
}
