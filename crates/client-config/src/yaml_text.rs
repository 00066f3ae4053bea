//! Serializes values as YAML: on one line if possible, and quoted if a plain scalar would be ambiguous.

use serde_json::{Map, Value};

/// Serializes an entry as lines.
pub(crate) fn serialize_entry(id: &str, members: &Map<String, Value>, indent: usize) -> Vec<String> {
    let mut lines = Vec::new();
    member(id, &Value::Object(members.clone()), indent, &mut lines);
    lines
}

fn member(name: &str, value: &Value, indent: usize, lines: &mut Vec<String>) {
    let (pad, name) = (" ".repeat(indent), quoted(name));
    match value {
        Value::Object(members) if !members.is_empty() => {
            lines.push(format!("{pad}{name}:"));
            members.iter().for_each(|(name, value)| member(name, value, indent + 2, lines));
        }
        Value::Array(items) if !items.is_empty() => {
            lines.push(format!("{pad}{name}:"));
            lines.extend(items.iter().map(|item| format!("{pad}  - {}", inline(item))));
        }
        other => lines.push(format!("{pad}{name}: {}", inline(other))),
    }
}

/// A value on one line. JSON is valid YAML.
fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// A text as a scalar: plain if that is unambiguous, otherwise as a JSON string.
fn quoted(text: &str) -> String {
    const AMBIGUOUS_SCALARS: [&str; 12] =
        ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity"];
    let safe =
        |c: char| c.is_ascii_alphanumeric() || "_-./@".contains(c) || (!c.is_ascii() && c.is_alphanumeric());
    let plain = text.starts_with(char::is_alphabetic)
        && text.chars().all(safe)
        && !AMBIGUOUS_SCALARS.contains(&text.to_ascii_lowercase().as_str());
    if plain { text.to_owned() } else { escaped(&Value::from(text).to_string()) }
}

/// Escapes characters that JSON allows in strings, but YAML treats as line breaks or rejects.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => {
                out += &format!("\\u{:04x}", u32::from(c));
            }
            other => out.push(other),
        }
    }
    out
}
