//! Input schemas that the frameworks in front of the gateway can read. Some build types from them while they list tools,
//! and the whole list fails if one schema fails.

use serde_json::{Map, Value};
use toolhub_core::lang::LocalizedText;
use toolhub_core::schema_keywords::{edit_schemas, remove_ill_formed, subschemas};

use super::javascript::is_javascript;
use super::{PortabilityError, types};

/// Maximum nesting depth of a schema.
const MAX_DEPTH: usize = 64;
/// Repairs an input schema. Returns whether it has changed. Invalid keyword values and patterns that are not regular
/// expressions are removed, and a circular reference is replaced by the type of its target. Both accept more than before;
/// the server checks its arguments itself.
pub(super) fn repair(root: &mut Value) -> Result<bool, PortabilityError> {
    let mut changed = remove_ill_formed(root) | remove_patterns(root);
    check(root, root, 0)?;
    let mut cycles = Vec::new();
    find_cycles(
        root,
        root,
        &mut Search { path: Vec::new(), open: Vec::new(), closed: Vec::new(), found: &mut cycles },
    );
    for (pointer, kind) in cycles {
        let Some(part) = root.pointer_mut(&pointer).and_then(Value::as_object_mut) else { continue };
        part.remove("$ref");
        if let Some(kind) = kind {
            part.entry("type").or_insert_with(|| Value::from(kind));
        }
        changed = true;
    }
    Ok(changed | types::normalize_types(root))
}

fn check(root: &Value, schema: &Value, depth: usize) -> Result<(), PortabilityError> {
    if depth > MAX_DEPTH {
        return Err(not_portable(
            format!("`inputSchema` is nested more than {MAX_DEPTH} deep"),
            format!("`inputSchema` 的嵌套超过 {MAX_DEPTH} 层"),
        ));
    }
    if let Value::Object(members) = schema {
        check_members(root, members)?;
    }
    subschemas(schema).into_iter().try_for_each(|(_, part)| check(root, part, depth + 1))
}

fn check_members(root: &Value, members: &Map<String, Value>) -> Result<(), PortabilityError> {
    if members.get("properties").and_then(Value::as_object).is_some_and(|names| names.contains_key("")) {
        return Err(not_portable(
            "`inputSchema` has a property without a name",
            "`inputSchema` 中有没有名称的属性",
        ));
    }
    match members.get("$ref").and_then(Value::as_str) {
        Some(to) if resolve_reference(root, to).is_none() => Err(not_portable(
            format!("`inputSchema` refers to `{to}`, which it does not contain"),
            format!("`inputSchema` 引用了其中不存在的 `{to}`"),
        )),
        _ => Ok(()),
    }
}

/// Returns the part of the schema that a reference leads to.
pub(super) fn resolve_reference<'a>(root: &'a Value, to: &str) -> Option<&'a Value> {
    let pointer = to.strip_prefix('#').filter(|pointer| !pointer.contains('%'))?;
    root.pointer(pointer).filter(|found| found.is_object() || found.is_boolean())
}

/// Removes the patterns that are not JavaScript regular expressions. Returns whether there was one.
pub(super) fn remove_patterns(schema: &mut Value) -> bool {
    let mut changed = false;
    edit_schemas(schema, &mut |members| {
        if members.get("pattern").and_then(Value::as_str).is_some_and(|pattern| !is_javascript(pattern)) {
            members.remove("pattern");
            changed = true;
        }
    });
    changed
}

/// The state of a depth-first search along subschemas and references.
struct Search<'f> {
    /// JSON pointers of the schemas being visited, the innermost last.
    path: Vec<String>,
    /// References whose targets are being visited.
    open: Vec<String>,
    /// References whose targets have been visited.
    closed: Vec<String>,
    /// The locations of circular references, and the types of their targets.
    found: &'f mut Vec<(String, Option<String>)>,
}

fn find_cycles(root: &Value, schema: &Value, search: &mut Search<'_>) {
    let current = search.path.last().cloned().unwrap_or_default();
    if let Some(to) = schema.get("$ref").and_then(Value::as_str) {
        let pointer = to.trim_start_matches('#').to_owned();
        // The reference leads to an enclosing schema, or to one from which this one was reached.
        let encloses = current == pointer || current.starts_with(&format!("{pointer}/"));
        if encloses || search.open.contains(&pointer) {
            let kind = resolve_reference(root, to).and_then(|part| part.get("type")).and_then(Value::as_str);
            search.found.push((current.clone(), kind.map(str::to_owned)));
        } else if !search.closed.contains(&pointer)
            && let Some(part) = resolve_reference(root, to)
        {
            search.open.push(pointer.clone());
            search.path.push(pointer.clone());
            find_cycles(root, part, search);
            search.path.pop();
            search.open.pop();
            search.closed.push(pointer);
        }
    }
    for (pointer, part) in subschemas(schema) {
        search.path.push(format!("{current}{pointer}"));
        find_cycles(root, part, search);
        search.path.pop();
    }
}

fn not_portable(en: impl Into<String>, zh: impl Into<String>) -> PortabilityError {
    PortabilityError(LocalizedText::new(en.into(), zh.into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn breaks_reference_cycles() {
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
    fn rejects_invalid_schemas_and_ignores_data() {
        let property = |part: Value| json!({"type": "object", "properties": {"a": part}});
        for bad in [
            property(json!({"$ref": "#/$defs/none"})),
            property(json!({"$ref": "https://example.invalid/x"})),
            json!({"type": "object", "properties": {"": {}}}),
            (0..100).fold(json!({"type": "string"}), |inner, _| property(inner)),
        ] {
            assert!(repair(&mut bad.clone()).is_err(), "{bad}");
        }
        for good in [
            property(json!({"type": "object", "default": {"type": "any", "enum": [], "$ref": "x"}})),
            property(json!({"type": "string", "pattern": "^a+$"})),
            json!({"type": "object", "properties": {"type": {"type": "string"}, "$ref": {"type": "string"}}}),
        ] {
            assert!(!repair(&mut good.clone()).unwrap(), "{good}");
        }
        for constraint in [json!({"type": "any"}), json!({"enum": []}), json!({"minimum": "0"})] {
            let (mut unusual, mut plain) = (property(constraint), property(json!({})));
            assert!(repair(&mut unusual).unwrap() && repair(&mut plain).unwrap());
            assert_eq!(unusual, plain);
        }
        let mut unusual = property(json!({"type": "string", "pattern": "("}));
        assert!(repair(&mut unusual).unwrap() && unusual == property(json!({"type": "string"})));
    }
}
