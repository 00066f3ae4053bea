//! Finds the ID of the first item in the result of a search, for a step that reads that item.

use serde_json::Value;

/// Labels of an ID in plain text. The value follows after a colon, an equals sign or a blank.
const LABELS: [&str; 4] = ["id:", "id=", "id ", "编号："];

/// Whether a parameter takes the ID of an item: `email_id`, `eventId`, `id`.
pub(crate) fn is_id(parameter: &str) -> bool {
    parameter == "id" || parameter.ends_with("_id") || parameter.ends_with("Id") || parameter.ends_with("ID")
}

/// The ID of the first item of a result. `None` if the result has none: its whole text is not an ID.
pub(crate) fn first_id(parameter: &str, data: Option<&Value>, text: &str) -> Option<String> {
    let parsed = serde_json::from_str::<Value>(text.trim()).ok();
    if let Some(found) = data.and_then(|data| in_value(parameter, data)) {
        return Some(found);
    }
    match &parsed {
        Some(Value::String(text)) => return as_word(text),
        Some(value @ (Value::Array(_) | Value::Object(_))) => return in_value(parameter, value),
        _ => {}
    }
    as_word(text).or_else(|| in_text(text))
}

/// The ID in the first object that has one, depth first.
fn in_value(parameter: &str, value: &Value) -> Option<String> {
    match value {
        Value::Object(members) => {
            let named = members.get(parameter).or_else(|| members.get("id")).or_else(|| {
                let mut ids = members.iter().filter(|(name, _)| is_id(name));
                ids.next().map(|(_, value)| value)
            });
            match named {
                Some(Value::String(id)) if !id.is_empty() => Some(id.clone()),
                Some(Value::Number(id)) => Some(id.to_string()),
                _ => members.values().find_map(|member| in_value(parameter, member)),
            }
        }
        Value::Array(items) => items.first().and_then(|item| in_value(parameter, item)),
        _ => None,
    }
}

/// A text of a single word.
fn as_word(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && !text.contains(char::is_whitespace)).then(|| text.to_owned())
}

/// `1. ID: msg-7 …`: the word after the first label.
fn in_text(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let found = LABELS.iter().filter_map(|label| {
        let at = lower.match_indices(label).map(|(at, _)| at).find(|at| {
            let before = lower[..*at].chars().next_back();
            before.is_none_or(|c| !c.is_alphanumeric())
        })?;
        Some((at, at + label.len()))
    });
    let (_, start) = found.min()?;
    let word = text[start..].split_whitespace().next()?;
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    word.contains(|c: char| c.is_ascii_digit()).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extracts_id_of_first_item() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(first_id("email_id", None, text).as_deref(), expect, "{text}");
        };
        check(r#"[{"id":"m-1","subject":"a"},{"id":"m-2"}]"#, Some("m-1"));
        check(r#"{"emails":[{"email_id":7,"thread_id":"t"}]}"#, Some("7"));
        check("1. ID: msg-7 Venue deposit\n2. ID: msg-8", Some("msg-7"));
        check("msg-7", Some("msg-7"));
        check("2 mails found", None);
        check("[]", None);
        check("no paid invoice 5", None);
    }
}
