//! Tool definitions that every client accepts. Clients validate a whole `tools/list` at once (the TypeScript SDK with
//! zod, the Python SDK with pydantic, others by decoding into types), so that one invalid definition would empty the
//! list. Definitions are repaired if the meaning certainly stays the same; a tool that cannot be repaired is left out.

mod input;
mod javascript;
mod offer;
mod output;
mod text;
mod types;

use toolhub_core::lang::LocalizedText;
use toolhub_core::text::byte_prefix;
use toolhub_core::{RawJson, RawObject};

pub use offer::portable_offer;

/// Maximum length of a description in bytes.
const MAX_DESCRIPTION_BYTES: usize = 32 << 10;
/// Hints that are booleans (2025-11-25, schema: ToolAnnotations).
const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
/// The themes of icons (2025-11-25, schema: Icon).
const THEMES: [&str; 2] = ["light", "dark"];
/// Values of `execution.taskSupport`.
const TASK_SUPPORT: [&str; 3] = ["forbidden", "optional", "required"];

/// Why a tool is not offered to clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortabilityError(pub LocalizedText);

/// Returns the definition in a form that every client accepts. It is unchanged if it is valid.
pub fn make_portable(definition: &RawJson) -> Result<RawJson, PortabilityError> {
    let sanitized = text::sanitized(definition)?;
    let definition = sanitized.as_ref().unwrap_or(definition);
    let Some(mut members) = definition.object() else {
        return Err(not_portable("it is no object", "它不是对象"));
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
    if input::repair(&mut tree)? {
        input = RawJson::from(tree).object().unwrap_or_default();
        changed = true;
    }
    if changed {
        members.set("inputSchema", input);
    }
    // Clients use it to check results, not calls: without it every result is accepted.
    if let Some(schema) = members.get("outputSchema") {
        match output::repair(schema) {
            Some(repaired) if repaired.get() == schema.get() => {}
            Some(repaired) => {
                members.set("outputSchema", repaired);
                changed = true;
            }
            None => {
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
    if let Some(short) =
        members.get("description").and_then(RawJson::text).and_then(|text| shortened_description(&text))
    {
        members.set("description", short);
        changed = true;
    }
    changed |= repair_annotations(&mut members);
    changed |= remove_unless(&mut members, "_meta", RawJson::is_object);
    changed |= remove_unless(&mut members, "icons", are_icons);
    changed |= remove_unless(&mut members, "execution", is_execution);
    Ok(if changed { members.into_raw() } else { definition.clone() })
}

/// Makes the schema describe an object, as arguments and structured results require. Returns whether it has changed.
fn repair_schema(schema: &mut RawObject, which: &str) -> Result<bool, PortabilityError> {
    let mut changed = false;
    let kind =
        schema.get("type").map(|kind| (kind.decode::<String>().ok(), kind.decode::<Vec<String>>().ok()));
    match kind {
        Some((Some(kind), _)) if kind == "object" => {}
        None => {
            *schema = with_type(schema);
            changed = true;
        }
        // Arguments are always an object.
        Some((_, Some(kinds))) if kinds.iter().any(|kind| kind == "object") => {
            schema.set("type", "object");
            changed = true;
        }
        Some(_) => {
            return Err(not_portable(
                &format!("`{which}` must have `\"type\": \"object\"`"),
                &format!("`{which}` 必须有 `\"type\": \"object\"`"),
            ));
        }
    }
    if let Some(properties) = schema.get("properties") {
        let mut properties =
            properties.object().ok_or_else(|| not_an_object(&format!("{which}.properties")))?;
        let names: Vec<String> = properties
            .iter()
            .filter(|(_, property)| !property.is_object())
            .map(|(name, _)| name.to_owned())
            .collect();
        for name in &names {
            // `true` accepts everything and `false` nothing; some clients support only schemas that are objects.
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
            return Err(not_portable(
                &format!("`{which}.required` must be a list of names"),
                &format!("`{which}.required` 必须是名称列表"),
            ));
        }
    }
    Ok(changed)
}

/// Returns the schema with `type` as its first member, for readability.
fn with_type(schema: &RawObject) -> RawObject {
    let first = RawObject::default().with("type", "object");
    schema.iter().fold(first, |typed, (name, value)| typed.with(name.to_owned(), value.clone()))
}

/// Removes invalid annotations. They are only hints.
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
            let theme = icon.get("theme").map(RawJson::text);
            let theme = theme.is_none_or(|theme| theme.is_some_and(|theme| THEMES.contains(&&*theme)));
            icon.contains("src") && is_text(&icon, "src") && is_text(&icon, "mimeType") && sizes && theme
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

/// The beginning of a description that is too long, with `…`.
fn shortened_description(text: &str) -> Option<String> {
    (text.len() > MAX_DESCRIPTION_BYTES).then(|| format!("{}…", byte_prefix(text, MAX_DESCRIPTION_BYTES)))
}

fn not_an_object(which: &str) -> PortabilityError {
    not_portable(&format!("`{which}` must be an object"), &format!("`{which}` 必须是对象"))
}

fn not_portable(en: &str, zh: &str) -> PortabilityError {
    PortabilityError(LocalizedText::new(en, zh))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolhub_core::{Lang, Localize as _};

    use super::*;

    fn offered(definition: &Value) -> Result<Value, String> {
        let offered = make_portable(&RawJson::from(definition.clone()));
        offered
            .map(|raw| serde_json::from_str(raw.get()).unwrap())
            .map_err(|PortabilityError(why)| why.localize(Lang::En))
    }

    #[test]
    fn keeps_valid_definitions_byte_for_byte() {
        let text = r#"{ "name":"a", "inputSchema" : {"type":"object", "properties":{"n":{"type":"number","const":1.0}}},"x":1e300}"#;
        let raw = RawJson::parse(text).unwrap();
        assert_eq!(make_portable(&raw).unwrap().get(), text);
    }

    #[test]
    fn repairs_definitions_without_changing_their_meaning() {
        let plain = json!({"type": "object", "properties": {}});
        let all =
            ["string", "number", "boolean", "object", "array", "null"].map(|kind| json!({"type": kind}));
        for (input, expect) in [
            (json!({"name": "a"}), json!({"name": "a", "inputSchema": plain})),
            (json!({"name": "a", "inputSchema": {}}), json!({"name": "a", "inputSchema": plain})),
            (
                json!({"name": "a", "inputSchema": {"type": ["object", "null"], "required": null}}),
                json!({"name": "a", "inputSchema": plain}),
            ),
            (
                json!({"name": "a", "inputSchema": {"properties": {"x": true, "y": false}}}),
                json!({"name": "a", "inputSchema": {"type": "object",
                    "properties": {"x": {"anyOf": all}, "y": {"not": {}, "anyOf": all}}}}),
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
            assert_eq!(offered(&input).as_ref(), Ok(&expect), "{input}");
            assert_eq!(offered(&expect).as_ref(), Ok(&expect), "a repaired definition needs no repair");
        }
    }

    #[test]
    fn rejects_irreparable_definitions_with_reason() {
        for (schema, why) in [
            (json!({"type": "string"}), "\"type\": \"object\""),
            (json!({"type": 3}), "\"type\": \"object\""),
            (json!({"type": "object", "properties": []}), "inputSchema.properties"),
            (json!({"type": "object", "properties": {"x": "string"}}), "inputSchema.properties.x"),
            (json!({"type": "object", "required": "x"}), "inputSchema.required"),
            (json!([]), "`inputSchema` must be an object"),
        ] {
            let error = offered(&json!({"name": "a", "inputSchema": schema})).unwrap_err();
            assert!(error.contains(why), "{schema}: {error}");
        }
    }

    #[test]
    fn keeps_output_schemas_that_clients_can_compile() {
        for (property, is_kept) in [
            (json!({"type": "string", "pattern": "^[\\w-]+(?:\\.\\d{1,3})?$"}), true),
            (json!({"$ref": "#/$defs/x"}), true),
            (json!({"$ref": "#"}), true),
            (json!({"$ref": "#/properties/a"}), false),
            (json!({"$ref": "#/nowhere"}), false),
            (json!({"$ref": "https://example.invalid/x"}), false),
            (json!({"$id": "x"}), false),
        ] {
            let schema = json!({"type": "object", "properties": {"a": property},
                "$defs": {"x": {"type": "string"}}});
            let input = json!({"name": "a", "inputSchema": {"type": "object", "properties": {}}, "outputSchema": schema});
            assert_eq!(offered(&input).unwrap().get("outputSchema").is_some(), is_kept, "{input}");
        }
        for (key, value) in [
            ("pattern", "("),
            ("pattern", "(?P<a>x)"),
            ("pattern", "(?i)x"),
            ("pattern", "a\\-b"),
            ("type", "any"),
            ("id", "x"),
            ("minimum", "0"),
        ] {
            let plain = json!({"name": "a", "inputSchema": {"type": "object", "properties": {}},
                "outputSchema": {"type": "object", "properties": {"a": {}}}});
            let mut input = plain.clone();
            input["outputSchema"]["properties"]["a"][key] = json!(value);
            assert_eq!(offered(&input), Ok(plain), "{input}");
        }
    }

    #[test]
    fn truncates_long_descriptions_at_char_boundary() {
        let long =
            json!({"name": "a", "inputSchema": {"type": "object"}, "description": "天".repeat(400_000)});
        let text = offered(&long).unwrap()["description"].as_str().unwrap().to_owned();
        assert!(text.len() <= MAX_DESCRIPTION_BYTES + 3 && text.ends_with("天…"));
    }
}
