//! Parses JSON objects of tokens strictly: UTF-8, one object, no duplicate keys at any depth.

use serde_json::{Map, Value};
use toolhub_core::json::key_problem;

/// The members of an unambiguous JSON object; `None` if the text is anything else.
pub(super) fn parse_object(text: &[u8]) -> Option<Map<String, Value>> {
    let text = std::str::from_utf8(text).ok()?;
    // Parsed first, since `key_problem` expects valid JSON.
    match serde_json::from_str(text).ok()? {
        Value::Object(members) if key_problem(text).is_none() => Some(members),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_ambiguous_and_invalid_objects() {
        assert!(parse_object(br#"{"a":1,"b":{"a":2}}"#).is_some());
        for invalid in [
            &br#"{"a":1,"a":1}"#[..],
            br#"{"a":1,"\u0061":2}"#,
            br#"{"b":[{"a":1,"a":2}]}"#,
            br#"{"a":1}{"a":1}"#,
            br#"[{"a":1}]"#,
            br#""a""#,
            b"{\"a\":\"\xff\"}",
            b"\xef\xbb\xbf{}",
            b"",
        ] {
            assert!(parse_object(invalid).is_none(), "{}", String::from_utf8_lossy(invalid));
        }
        let deep = format!("{}{}", "{\"a\":".repeat(5000), "1");
        assert!(parse_object(deep.as_bytes()).is_none());
    }
}
