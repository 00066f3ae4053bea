//! Schemas of arguments that the frameworks in front of the gateway can read. Some build types from them while they list tools,
//! and fail as a whole if that fails.

use serde_json::{Map, Value};
use toolhub_core::lang::Text;

use super::portable::{KINDS, NotPortable, is_javascript};

/// How deeply schemas may be nested.
const MAX_DEPTH: usize = 64;
/// Keywords whose members are schemas.
const MAPS: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// Keywords that are schemas.
const ONE: [&str; 11] = [
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
];
/// Keywords that are lists of schemas.
const MANY: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];

/// Repairs a schema of arguments; whether something changed. A pattern that is no regular expression is removed, and a
/// reference that leads back to where it stands is replaced by the type that it leads to: both accept more than before, and the
/// server checks its arguments itself.
pub(super) fn repair(root: &mut Value) -> Result<bool, NotPortable> {
    check(root, root, 0)?;
    let mut changed = remove_patterns(root);
    let mut circles = Vec::new();
    find_circles(
        root,
        root,
        &mut Search { path: Vec::new(), open: Vec::new(), closed: Vec::new(), found: &mut circles },
    );
    for (pointer, kind) in circles {
        let Some(part) = root.pointer_mut(&pointer).and_then(Value::as_object_mut) else { continue };
        part.remove("$ref");
        if let Some(kind) = kind {
            part.entry("type").or_insert_with(|| Value::from(kind));
        }
        changed = true;
    }
    Ok(changed)
}

/// The schemas in a schema, each with its pointer.
fn parts(schema: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    let Value::Object(members) = schema else { return found };
    for (key, value) in members {
        match value {
            Value::Object(inner) if MAPS.contains(&key.as_str()) => {
                found.extend(
                    inner.iter().map(|(name, part)| (format!("/{}/{}", escaped(key), escaped(name)), part)),
                );
            }
            Value::Object(_) if ONE.contains(&key.as_str()) => found.push((format!("/{key}"), value)),
            Value::Array(list) if MANY.contains(&key.as_str()) => {
                found.extend(list.iter().enumerate().map(|(place, part)| (format!("/{key}/{place}"), part)));
            }
            _ => {}
        }
    }
    found
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn check(root: &Value, schema: &Value, depth: usize) -> Result<(), NotPortable> {
    if depth > MAX_DEPTH {
        return Err(refused(
            format!("`inputSchema` is nested more than {MAX_DEPTH} deep"),
            format!("`inputSchema` 的嵌套超过 {MAX_DEPTH} 层"),
        ));
    }
    if let Value::Object(members) = schema {
        check_members(root, members)?;
    }
    parts(schema).into_iter().try_for_each(|(_, part)| check(root, part, depth + 1))
}

fn check_members(root: &Value, members: &Map<String, Value>) -> Result<(), NotPortable> {
    let kinds = match members.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        Some(Value::Array(kinds)) => kinds.iter().map(|kind| kind.as_str().unwrap_or("")).collect(),
        _ => Vec::new(),
    };
    if let Some(kind) = kinds.iter().find(|kind| !KINDS.contains(kind)) {
        return Err(refused(
            format!("`inputSchema` has a type `{kind}` that JSON Schema does not know"),
            format!("`inputSchema` 中的类型 `{kind}` 不是 JSON Schema 的类型"),
        ));
    }
    if members.get("enum").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        return Err(refused(
            "`inputSchema` has an `enum` without values",
            "`inputSchema` 中有没有值的 `enum`",
        ));
    }
    if members.get("properties").and_then(Value::as_object).is_some_and(|names| names.contains_key("")) {
        return Err(refused(
            "`inputSchema` has a property without a name",
            "`inputSchema` 中有没有名称的属性",
        ));
    }
    match members.get("$ref").and_then(Value::as_str) {
        Some(to) if target(root, to).is_none() => Err(refused(
            format!("`inputSchema` refers to `{to}`, which it does not contain"),
            format!("`inputSchema` 引用了其中不存在的 `{to}`"),
        )),
        _ => Ok(()),
    }
}

/// What a reference leads to inside the schema.
fn target<'a>(root: &'a Value, to: &str) -> Option<&'a Value> {
    let pointer = to.strip_prefix('#').filter(|pointer| !pointer.contains('%'))?;
    root.pointer(pointer).filter(|found| found.is_object() || found.is_boolean())
}

fn remove_patterns(schema: &mut Value) -> bool {
    let Value::Object(members) = schema else { return false };
    let bad = members.get("pattern").and_then(Value::as_str).is_some_and(|pattern| !is_javascript(pattern));
    if bad {
        members.remove("pattern");
    }
    let mut changed = bad;
    for (key, value) in members.iter_mut() {
        match value {
            Value::Object(inner) if MAPS.contains(&key.as_str()) => {
                inner.values_mut().for_each(|part| changed |= remove_patterns(part));
            }
            Value::Object(_) if ONE.contains(&key.as_str()) => changed |= remove_patterns(value),
            Value::Array(list) if MANY.contains(&key.as_str()) => {
                list.iter_mut().for_each(|part| changed |= remove_patterns(part));
            }
            _ => {}
        }
    }
    changed
}

/// A walk along parts and references.
struct Search<'f> {
    /// Pointers of the parts that are being walked through, the innermost last.
    path: Vec<String>,
    /// References whose targets are being walked through.
    open: Vec<String>,
    /// References whose targets were walked through.
    closed: Vec<String>,
    /// Where a reference leads back, and the type that it leads to.
    found: &'f mut Vec<(String, Option<String>)>,
}

fn find_circles(root: &Value, schema: &Value, search: &mut Search<'_>) {
    let here = search.path.last().cloned().unwrap_or_default();
    if let Some(to) = schema.get("$ref").and_then(Value::as_str) {
        let pointer = to.trim_start_matches('#').to_owned();
        // It leads to a part that this one is in, or to one that led here.
        let around = here == pointer || here.starts_with(&format!("{pointer}/"));
        if around || search.open.contains(&pointer) {
            let kind = target(root, to).and_then(|part| part.get("type")).and_then(Value::as_str);
            search.found.push((here.clone(), kind.map(str::to_owned)));
        } else if !search.closed.contains(&pointer)
            && let Some(part) = target(root, to)
        {
            search.open.push(pointer.clone());
            search.path.push(pointer.clone());
            find_circles(root, part, search);
            search.path.pop();
            search.open.pop();
            search.closed.push(pointer);
        }
    }
    for (pointer, part) in parts(schema) {
        search.path.push(format!("{here}{pointer}"));
        find_circles(root, part, search);
        search.path.pop();
    }
}

fn refused(en: impl Into<String>, zh: impl Into<String>) -> NotPortable {
    NotPortable(Text::new(en.into(), zh.into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn circles_are_cut_where_they_close() {
        let mut tree = json!({"type": "object", "properties": {"root": {"$ref": "#/$defs/node"}},
            "$defs": {"node": {"type": "object", "properties": {
                "children": {"type": "array", "items": {"$ref": "#/$defs/node", "description": "a child"}}}}}});
        assert!(repair(&mut tree).unwrap());
        let cut = json!({"type": "object", "description": "a child"});
        assert_eq!(tree["$defs"]["node"]["properties"]["children"]["items"], cut);
        assert_eq!(tree["properties"]["root"], json!({"$ref": "#/$defs/node"}));
        assert!(!repair(&mut tree).unwrap(), "a repaired schema needs no repair");
        let mut own = json!({"type": "object", "properties": {"again": {"$ref": "#"}}});
        assert!(repair(&mut own).unwrap());
        assert_eq!(own["properties"]["again"], json!({"type": "object"}));
        let mut two = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
        assert!(repair(&mut two).unwrap());
        assert!(!repair(&mut two).unwrap());
    }

    #[test]
    fn what_cannot_be_read_is_refused_and_what_is_data_is_not_looked_at() {
        let property = |part: Value| json!({"type": "object", "properties": {"a": part}});
        for bad in [
            property(json!({"type": "any"})),
            property(json!({"enum": []})),
            property(json!({"$ref": "#/$defs/none"})),
            property(json!({"$ref": "https://example.invalid/x"})),
            json!({"type": "object", "properties": {"": {}}}),
            (0..100).fold(json!({"type": "string"}), |inner, _| property(inner)),
        ] {
            assert!(repair(&mut bad.clone()).is_err(), "{bad}");
        }
        for good in [
            property(json!({"default": {"type": "any", "enum": [], "$ref": "x"}})),
            property(json!({"type": ["string", "null"], "pattern": "^a+$"})),
            json!({"type": "object", "properties": {"type": {"type": "string"}, "$ref": {"type": "string"}}}),
        ] {
            assert!(!repair(&mut good.clone()).unwrap(), "{good}");
        }
        let mut odd = property(json!({"type": "string", "pattern": "("}));
        assert!(repair(&mut odd).unwrap() && odd == property(json!({"type": "string"})));
    }
}
