//! Output schemas that clients can compile. The TypeScript SDK compiles them while it lists tools, and the whole list
//! fails if one does not compile.

use serde_json::Value;
use toolhub_core::RawJson;
use toolhub_core::schema_keywords::{edit_schemas, remove_ill_formed, subschemas};

use super::input::{remove_patterns, resolve_reference};
use super::javascript::is_javascript;
use super::repair_schema;

/// Maximum size of an output schema in bytes.
const MAX_OUTPUT_SCHEMA_BYTES: usize = 64 << 10;
/// Maximum length of a chain of references in the same place.
const MAX_REF_CHAIN: usize = 64;

/// Returns the schema in a form that clients can compile, or `None` if there is no form that certainly compiles.
pub(super) fn repair(schema: &RawJson) -> Option<RawJson> {
    if schema.get().len() > MAX_OUTPUT_SCHEMA_BYTES {
        return None;
    }
    let mut tree: Value = serde_json::from_str(schema.get()).ok()?;
    let changed = remove_ill_formed(&mut tree) | remove_patterns(&mut tree) | remove_ids(&mut tree);
    if !compiles(&tree) {
        return None;
    }
    let repaired = if changed { RawJson::from(tree) } else { schema.clone() };
    let mut members = repaired.object()?;
    match repair_schema(&mut members, "outputSchema") {
        Ok(true) => Some(members.into_raw()),
        Ok(false) => Some(repaired),
        Err(_) => None,
    }
}

/// Removes the keyword `id` of draft 4, which newer compilers reject.
fn remove_ids(schema: &mut Value) -> bool {
    let mut changed = false;
    edit_schemas(schema, &mut |members| changed |= members.shift_remove("id").is_some());
    changed
}

/// Returns whether a schema compiles on its own: its references lead to parts of it and not in circles, it declares no
/// name that may conflict with another schema, and its patterns are JavaScript regular expressions.
fn compiles(root: &Value) -> bool {
    let mut waiting = vec![root];
    while let Some(schema) = waiting.pop() {
        let Value::Object(members) = schema else { continue };
        let good = members.iter().all(|(key, value)| match (key.as_str(), value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) => {
                resolve_reference(root, to).is_some()
            }
            ("$ref" | "$dynamicRef" | "$recursiveRef" | "$id" | "$anchor" | "$dynamicAnchor", _) => false,
            ("patternProperties", Value::Object(patterns)) => {
                patterns.keys().all(|pattern| is_javascript(pattern))
            }
            _ => true,
        });
        if !good || !terminates(root, schema, 0) {
            return false;
        }
        waiting.extend(subschemas(schema).into_iter().map(|(_, part)| part));
    }
    true
}

/// Returns whether the chain of references from a schema ends.
fn terminates(root: &Value, schema: &Value, depth: usize) -> bool {
    if depth > MAX_REF_CHAIN {
        return false;
    }
    match schema.get("$ref").and_then(Value::as_str).and_then(|to| resolve_reference(root, to)) {
        Some(next) => terminates(root, next, depth + 1),
        None => true,
    }
}
