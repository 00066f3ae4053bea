//! Writes server-sent events: with a name for responses, without one for chat.

use serde_json::Value;

/// The end of a chat stream.
pub(crate) const DONE: &str = "data: [DONE]\n\n";
/// A comment, which keeps the connection open.
pub(crate) const HEARTBEAT: &str = ": waiting\n\n";
/// Characters that some clients take for the end of a line, although server-sent events end lines only with CR and LF. JSON
/// escapes all others.
const LINE_BREAKS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// An event without a name.
pub(crate) fn data(value: &Value) -> String {
    format!("data: {}\n\n", line(value))
}

/// An event with a name.
pub(crate) fn event(name: &str, value: &Value) -> String {
    format!("event: {name}\ndata: {}\n\n", line(value))
}

/// JSON text without line breaks of any kind.
fn line(value: &Value) -> String {
    let json = value.to_string();
    if json.is_ascii() || !json.contains(LINE_BREAKS) {
        return json;
    }
    // Outside of strings, JSON text is ASCII.
    LINE_BREAKS
        .iter()
        .fold(json, |json, character| json.replace(*character, &format!("\\u{:04x}", u32::from(*character))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_one_line_for_every_client() {
        let text = "a\r\nb\u{2028}data: [DONE]\u{2029}\u{85}\u{b}\u{c}\u{1c}c\\n";
        let frame = data(&json!({ "text": text }));
        let value = frame.strip_prefix("data: ").and_then(|rest| rest.strip_suffix("\n\n")).unwrap();
        let is_break = |character: char| character.is_control() || LINE_BREAKS.contains(&character);
        assert!(!value.contains(is_break), "{value:?}");
        let parsed: Value = serde_json::from_str(value).unwrap();
        assert_eq!(parsed["text"], text);
    }
}
