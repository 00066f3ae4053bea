//! Tool definitions that every client accepts. Clients validate a whole `tools/list` at once (the TypeScript SDK with zod,
//! the Python SDK with pydantic, others by decoding into types), so one bad definition would empty the list. What certainly
//! means the same is repaired; a tool that cannot be repaired is left out.

use serde_json::Value;
use toolhub_core::lang::Text;
use toolhub_core::{RawJson, RawObject};

use super::portable_input;

/// The longest description that is offered, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 32 << 10;
/// Hints that are booleans (2025-11-25, schema: ToolAnnotations).
const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
/// Kinds of values that a schema can name.
pub(super) const KINDS: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];
/// The most references that lead to one another.
const MAX_REFERENCES: usize = 8;
/// The largest schema of results that is offered, in bytes.
const MAX_OUTPUT_SCHEMA_BYTES: usize = 64 << 10;
/// Values of `execution.taskSupport`.
const TASK_SUPPORT: [&str; 3] = ["forbidden", "optional", "required"];

/// Why a tool is not offered to clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotPortable(pub Text);

/// The definition as every client accepts it: the same text where nothing is wrong with it.
pub fn portable(definition: &RawJson) -> Result<RawJson, NotPortable> {
    let Some(mut members) = definition.object() else {
        return Err(refused("it is no object", "它不是对象"));
    };
    let mut changed = false;
    let mut input = match members.get("inputSchema") {
        None => {
            changed = true;
            RawObject::default()
        }
        Some(schema) => schema.object().ok_or_else(|| not_an_object("inputSchema"))?,
    };
    if repair_schema(&mut input, "inputSchema")? {
        changed = true;
    }
    if input.get("properties").is_none() {
        input.set("properties", RawObject::default());
        changed = true;
    }
    let mut tree = input.clone().into_raw().value();
    if portable_input::repair(&mut tree)? {
        input = RawJson::from(tree).object().unwrap_or_default();
        changed = true;
    }
    if changed {
        members.set("inputSchema", input);
    }
    // Results are checked by it, calls are not: without it every result is accepted. The TypeScript SDK compiles it while
    // it lists tools, and fails as a whole where that fails.
    if let Some(schema) = members.get("outputSchema") {
        let schema = schema.object().filter(|_| compiles(schema));
        match schema.map(|mut schema| (repair_schema(&mut schema, "outputSchema"), schema)) {
            Some((Ok(false), _)) => {}
            Some((Ok(true), schema)) => {
                members.set("outputSchema", schema);
                changed = true;
            }
            Some((Err(_), _)) | None => {
                members.remove("outputSchema");
                changed = true;
            }
        }
    }
    for key in ["title", "description"] {
        if members.get(key).is_some_and(|text| text.text().is_none()) {
            members.remove(key);
            changed = true;
        }
    }
    if let Some(short) = members.get("description").and_then(RawJson::text).and_then(|text| cut(&text)) {
        members.set("description", short);
        changed = true;
    }
    changed |= repair_annotations(&mut members);
    changed |= remove_unless(&mut members, "_meta", RawJson::is_object);
    changed |= remove_unless(&mut members, "icons", are_icons);
    changed |= remove_unless(&mut members, "execution", is_execution);
    Ok(if changed { members.into_raw() } else { definition.clone() })
}

/// Whether clients can compile a schema by itself: its references lead to parts of it, it does not take a name that another
/// schema may have, and its patterns are regular expressions of JavaScript.
fn compiles(schema: &RawJson) -> bool {
    if schema.get().len() > MAX_OUTPUT_SCHEMA_BYTES {
        return false;
    }
    let Ok(root) = serde_json::from_str::<Value>(schema.get()) else { return false };
    let mut waiting = vec![&root];
    while let Some(part) = waiting.pop() {
        let good = match part {
            Value::Object(members) => members.iter().all(|(key, value)| match (key.as_str(), value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) => leads_inside(&root, to),
                ("$id" | "$anchor" | "$dynamicAnchor", Value::String(_)) => false,
                ("pattern", Value::String(pattern)) => is_javascript(pattern),
                ("patternProperties", Value::Object(patterns)) => {
                    patterns.keys().all(|one| is_javascript(one))
                }
                ("type", Value::String(kind)) => KINDS.contains(&kind.as_str()),
                _ => true,
            }),
            _ => true,
        };
        if !good {
            return false;
        }
        match part {
            Value::Object(members) => waiting.extend(members.values()),
            Value::Array(parts) => waiting.extend(parts),
            _ => {}
        }
    }
    true
}

/// Whether a reference leads to a part of the schema, and not round in circles.
fn leads_inside(root: &Value, to: &str) -> bool {
    let mut to = to;
    for _ in 0..MAX_REFERENCES {
        let Some(pointer) = to.strip_prefix('#').filter(|pointer| !pointer.contains('%')) else {
            return false;
        };
        match root.pointer(pointer) {
            Some(Value::Object(part)) => match part.get("$ref").and_then(Value::as_str) {
                Some(next) if part.len() == 1 => to = next,
                _ => return true,
            },
            Some(Value::Bool(_)) => return true,
            _ => return false,
        }
    }
    false
}

/// Whether a pattern is surely a regular expression of JavaScript with the flag `u`: balanced, with escapes and groups that
/// it has.
pub(super) fn is_javascript(pattern: &str) -> bool {
    let (mut depth, mut in_class) = (0_usize, false);
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                let syntax = if in_class { "^$\\.*+?()[]{}|/-" } else { "^$\\.*+?()[]{}|/" };
                let known = |c: char| "dDwWsSnrtfv0".contains(c) || (c == 'b') || (!in_class && c == 'B');
                if !rest.next().is_some_and(|c| known(c) || syntax.contains(c)) {
                    return false;
                }
            }
            '[' if in_class => {}
            '[' => in_class = true,
            ']' if in_class => in_class = false,
            _ if in_class => {}
            ']' | '}' => return false,
            '{' => {
                let bounds: String = rest.by_ref().take_while(|c| *c != '}').collect();
                let number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
                let fits = match bounds.split_once(',') {
                    Some((low, high)) => number(low) && (high.is_empty() || number(high)),
                    None => number(&bounds),
                };
                if !fits {
                    return false;
                }
            }
            '(' => {
                depth += 1;
                if rest.next_if_eq(&'?').is_some() && rest.next_if(|c| ":=!".contains(*c)).is_none() {
                    return false;
                }
            }
            ')' => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return false,
            },
            _ => {}
        }
    }
    depth == 0 && !in_class
}

/// Makes it a schema of an object, as arguments and structured results are. Whether something changed.
fn repair_schema(schema: &mut RawObject, which: &str) -> Result<bool, NotPortable> {
    let mut changed = false;
    let kind =
        schema.get("type").map(|kind| (kind.decode::<String>().ok(), kind.decode::<Vec<String>>().ok()));
    match kind {
        Some((Some(kind), _)) if kind == "object" => {}
        None => {
            *schema = with_type(schema);
            changed = true;
        }
        // Arguments are never anything but an object.
        Some((_, Some(kinds))) if kinds.iter().any(|kind| kind == "object") => {
            schema.set("type", "object");
            changed = true;
        }
        Some(_) => {
            return Err(refused(
                &format!("`{which}` must have `\"type\": \"object\"`"),
                &format!("`{which}` 必须有 `\"type\": \"object\"`"),
            ));
        }
    }
    if let Some(properties) = schema.get("properties") {
        let mut properties =
            properties.object().ok_or_else(|| not_an_object(&format!("{which}.properties")))?;
        let names: Vec<String> =
            properties.iter().filter(|(_, one)| !one.is_object()).map(|(name, _)| name.to_owned()).collect();
        for name in &names {
            // `true` accepts everything and `false` nothing; some clients know schemas that are objects alone.
            let plain = match properties.get(name).map(RawJson::get) {
                Some("true") => RawObject::default(),
                Some("false") => RawObject::default().with("not", RawObject::default()),
                _ => return Err(not_an_object(&format!("{which}.properties.{name}"))),
            };
            properties.set(name.clone(), plain);
        }
        if !names.is_empty() {
            schema.set("properties", properties);
            changed = true;
        }
    }
    match schema.get("required").map(|names| (names.get() == "null", names.decode::<Vec<String>>().is_ok())) {
        None | Some((false, true)) => {}
        Some((true, _)) => {
            schema.remove("required");
            changed = true;
        }
        Some((false, false)) => {
            return Err(refused(
                &format!("`{which}.required` must be a list of names"),
                &format!("`{which}.required` 必须是名称列表"),
            ));
        }
    }
    Ok(changed)
}

/// The schema with its type in front, where people look for it.
fn with_type(schema: &RawObject) -> RawObject {
    let first = RawObject::default().with("type", "object");
    schema.iter().fold(first, |all, (name, value)| all.with(name.to_owned(), value.clone()))
}

/// Removes what annotations cannot hold: they are hints, and a hint that cannot be read is none.
fn repair_annotations(members: &mut RawObject) -> bool {
    let Some(annotations) = members.get("annotations") else { return false };
    let Some(mut notes) = annotations.object() else {
        members.remove("annotations");
        return true;
    };
    let is_bool = |value: &RawJson| ["true", "false"].contains(&value.get());
    let wrong: Vec<&str> = HINTS
        .into_iter()
        .filter(|name| notes.get(name).is_some_and(|value| !is_bool(value)))
        .chain(notes.get("title").is_some_and(|title| title.text().is_none()).then_some("title"))
        .collect();
    if wrong.is_empty() {
        return false;
    }
    wrong.iter().for_each(|name| notes.remove(name));
    members.set("annotations", notes);
    true
}

fn remove_unless(members: &mut RawObject, key: &str, good: impl Fn(&RawJson) -> bool) -> bool {
    let wrong = members.get(key).is_some_and(|value| !good(value));
    if wrong {
        members.remove(key);
    }
    wrong
}

fn are_icons(icons: &RawJson) -> bool {
    let is_text = |icon: &RawObject, key: &str| icon.get(key).is_none_or(|value| value.text().is_some());
    let is_icon = |icon: &RawJson| {
        icon.object().is_some_and(|icon| {
            let sizes = icon.get("sizes").is_none_or(|sizes| sizes.decode::<Vec<String>>().is_ok());
            icon.contains("src") && is_text(&icon, "src") && is_text(&icon, "mimeType") && sizes
        })
    };
    icons.decode::<Vec<RawJson>>().is_ok_and(|icons| icons.iter().all(is_icon))
}

fn is_execution(execution: &RawJson) -> bool {
    execution.object().is_some_and(|execution| {
        let support = execution.get("taskSupport").map(RawJson::text);
        support.is_none_or(|support| support.is_some_and(|word| TASK_SUPPORT.contains(&&*word)))
    })
}

/// The beginning of a text that is too long.
fn cut(text: &str) -> Option<String> {
    if text.len() <= MAX_DESCRIPTION_BYTES {
        return None;
    }
    let end = (0..=MAX_DESCRIPTION_BYTES).rev().find(|end| text.is_char_boundary(*end))?;
    Some(format!("{}…", text.get(..end).unwrap_or_default()))
}

fn not_an_object(which: &str) -> NotPortable {
    refused(&format!("`{which}` must be an object"), &format!("`{which}` 必须是对象"))
}

fn refused(en: &str, zh: &str) -> NotPortable {
    NotPortable(Text::new(en, zh))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolhub_core::{Lang, Say as _};

    use super::*;

    fn offered(definition: &Value) -> Result<Value, String> {
        let offered = portable(&RawJson::from(definition.clone()));
        offered
            .map(|raw| serde_json::from_str(raw.get()).unwrap())
            .map_err(|NotPortable(why)| why.say(Lang::En))
    }

    #[test]
    fn good_definitions_are_offered_byte_for_byte() {
        let text =
            r#"{ "name":"a", "inputSchema" : {"type":"object", "properties":{"n":{"const":1.0}}},"x":1e400}"#;
        let raw = RawJson::parse(text).unwrap();
        assert_eq!(portable(&raw).unwrap().get(), text);
    }

    #[test]
    fn what_certainly_means_the_same_is_repaired() {
        let plain = json!({"type": "object", "properties": {}});
        for (given, expect) in [
            (json!({"name": "a"}), json!({"name": "a", "inputSchema": plain})),
            (json!({"name": "a", "inputSchema": {}}), json!({"name": "a", "inputSchema": plain})),
            (
                json!({"name": "a", "inputSchema": {"type": ["object", "null"], "required": null}}),
                json!({"name": "a", "inputSchema": plain}),
            ),
            (
                json!({"name": "a", "inputSchema": {"properties": {"x": true, "y": false}}}),
                json!({"name": "a", "inputSchema": {"type": "object", "properties": {"x": {}, "y": {"not": {}}}}}),
            ),
            (
                json!({"name": "a", "inputSchema": plain, "description": null, "title": 3, "_meta": [],
                    "icons": [{"src": 1}], "annotations": {"readOnlyHint": "yes", "title": "A"},
                    "execution": {"taskSupport": "maybe"}, "outputSchema": {"type": "array"}}),
                json!({"name": "a", "inputSchema": plain, "annotations": {"title": "A"}}),
            ),
            (
                json!({"name": "a", "inputSchema": plain, "annotations": 7, "outputSchema": null}),
                json!({"name": "a", "inputSchema": plain}),
            ),
        ] {
            assert_eq!(offered(&given).as_ref(), Ok(&expect), "{given}");
            assert_eq!(offered(&expect).as_ref(), Ok(&expect), "a repaired definition needs no repair");
        }
    }

    #[test]
    fn what_cannot_be_repaired_is_refused_with_the_reason() {
        for (schema, why) in [
            (json!({"type": "string"}), "\"type\": \"object\""),
            (json!({"type": 3}), "\"type\": \"object\""),
            (json!({"type": "object", "properties": []}), "inputSchema.properties"),
            (json!({"type": "object", "properties": {"x": "string"}}), "inputSchema.properties.x"),
            (json!({"type": "object", "required": "x"}), "inputSchema.required"),
            (json!([]), "`inputSchema` must be an object"),
        ] {
            let said = offered(&json!({"name": "a", "inputSchema": schema})).unwrap_err();
            assert!(said.contains(why), "{schema}: {said}");
        }
    }

    #[test]
    fn schemas_of_results_are_offered_if_clients_can_compile_them() {
        for (property, kept) in [
            (json!({"type": "string", "pattern": "^[\\w-]+(?:\\.\\d{1,3})?$"}), true),
            (json!({"$ref": "#/$defs/x"}), true),
            (json!({"$ref": "#"}), true),
            (json!({"$ref": "#/properties/a"}), false),
            (json!({"$ref": "#/nowhere"}), false),
            (json!({"$ref": "https://example.invalid/x"}), false),
            (json!({"pattern": "("}), false),
            (json!({"pattern": "(?P<a>x)"}), false),
            (json!({"pattern": "(?i)x"}), false),
            (json!({"pattern": "a\\-b"}), false),
            (json!({"type": "any"}), false),
            (json!({"$id": "x"}), false),
        ] {
            let schema = json!({"type": "object", "properties": {"a": property},
                "$defs": {"x": {"type": "string"}}});
            let given = json!({"name": "a", "inputSchema": {"type": "object", "properties": {}}, "outputSchema": schema});
            assert_eq!(offered(&given).unwrap().get("outputSchema").is_some(), kept, "{given}");
        }
    }

    #[test]
    fn long_descriptions_are_cut_between_letters() {
        let long =
            json!({"name": "a", "inputSchema": {"type": "object"}, "description": "天".repeat(400_000)});
        let text = offered(&long).unwrap()["description"].as_str().unwrap().to_owned();
        assert!(text.len() <= MAX_DESCRIPTION_BYTES + 3 && text.ends_with("天…"));
    }
}
