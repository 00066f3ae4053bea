//! The headers of MCP over HTTP, and those that mirror a modern request's body (2026-07-28, transports/streamable-http: request
//! metadata).

use std::borrow::Cow;
use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use toolhub_core::RawJson;
use toolhub_core::lang::LocalizedText;

/// The header with the id of a legacy session.
pub const SESSION_ID: &str = "mcp-session-id";
/// The header with the protocol revision.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The header with the method of a modern request.
pub const METHOD_HEADER: &str = "mcp-method";
/// The header with the name or URI that a modern request is about.
pub const NAME_HEADER: &str = "mcp-name";
/// The header with the last received event of an interrupted stream.
pub const LAST_EVENT_ID: &str = "last-event-id";

/// Whether a text is valid as a header value without encoding.
#[inline]
pub fn is_plain(value: &str) -> bool {
    value.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
}

/// Encodes a header value: plain if that is safe, otherwise in the base64 form of the specification.
#[inline]
pub fn encode_header_value(value: &str) -> Cow<'_, str> {
    let padded = value.starts_with([' ', '\t']) || value.ends_with([' ', '\t']);
    let sentinel = value.starts_with("=?base64?") && value.ends_with("?=");
    if is_plain(value) && !padded && !sentinel {
        value.into()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(value)).into()
    }
}

/// A parameter that a tool requires to be mirrored into a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredParam {
    header: String,
    path: Vec<String>,
}

impl MirroredParam {
    /// The name of the header.
    pub fn header_name(&self) -> String {
        format!("Mcp-Param-{}", self.header)
    }

    /// The required value of the header for these arguments.
    pub fn value_in(&self, arguments: &Value) -> Option<String> {
        let value = self.path.iter().try_fold(arguments, |value, step| value.get(step))?;
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }
}

/// The parameters that `schema` marks with `x-mcp-header`, or why the marks make the tool unusable over HTTP.
pub fn mirrored(schema: &RawJson) -> Result<Vec<MirroredParam>, LocalizedText> {
    // Most schemas have no marks; a substring search avoids traversing them.
    if !schema.get().contains("x-mcp-header") {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    walk(&schema.value(), &mut Vec::new(), Reach::Static, &mut found)?;
    let mut seen = HashSet::new();
    for mirrored in &found {
        if !seen.insert(mirrored.header.to_ascii_lowercase()) {
            let name = &mirrored.header;
            return Err(LocalizedText::new(
                format!("`x-mcp-header` `{name}` is used twice"),
                format!("`x-mcp-header` `{name}` 用了两次"),
            ));
        }
    }
    Ok(found)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Reachable through `properties` only.
    Static,
    /// Reachable otherwise: marks are not allowed.
    Other,
}

fn walk(
    schema: &Value,
    path: &mut Vec<String>,
    reach: Reach,
    found: &mut Vec<MirroredParam>,
) -> Result<(), LocalizedText> {
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(items) => {
            return items.iter().try_for_each(|item| walk(item, path, Reach::Other, found));
        }
        _ => return Ok(()),
    };
    if let Some(mark) = members.get("x-mcp-header") {
        let dotted_path = path.join(".");
        let name = mark.as_str().filter(|name| is_token(name));
        let name = name.ok_or_else(|| {
            LocalizedText::new(
                format!("`x-mcp-header` of `{dotted_path}` is {mark}, not a header name"),
                format!("`{dotted_path}` 的 `x-mcp-header` 是 {mark}，不是请求头名称"),
            )
        })?;
        if reach == Reach::Other || path.is_empty() {
            return Err(LocalizedText::new(
                format!("`x-mcp-header` `{name}` is at a place where its value cannot be found"),
                format!("`x-mcp-header` `{name}` 所在位置无法取值"),
            ));
        }
        if !matches!(members.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            return Err(LocalizedText::new(
                format!("`x-mcp-header` of `{dotted_path}` needs type string, integer or boolean"),
                format!("`{dotted_path}` 的 `x-mcp-header` 要求类型为 string、integer 或 boolean"),
            ));
        }
        found.push(MirroredParam { header: name.to_owned(), path: path.clone() });
    }
    for (key, value) in members {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    path.push(name.clone());
                    walk(property, path, reach, found)?;
                    path.pop();
                }
            }
            // Data, not schemas.
            ("const" | "enum" | "default" | "examples", _) => {}
            (_, value) => walk(value, path, Reach::Other, found)?,
        }
    }
    Ok(())
}

fn is_token(name: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(token)
}

/// The `Mcp-Param-*` headers of a call.
#[inline]
pub fn param_headers(mirrored: &[MirroredParam], arguments: &RawJson) -> Vec<(String, String)> {
    if mirrored.is_empty() {
        return Vec::new();
    }
    let arguments = arguments.value();
    let header = |mirrored: &MirroredParam| {
        Some((mirrored.header_name(), encode_header_value(&mirrored.value_in(&arguments)?).into_owned()))
    };
    mirrored.iter().filter_map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn encodes_header_values_like_the_spec_examples() {
        let check = |value: &str, expect: &str| assert_eq!(encode_header_value(value), expect);
        check("us-west1", "us-west1");
        check("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?=");
        check(" padded ", "=?base64?IHBhZGRlZCA=?=");
        check("line1\nline2", "=?base64?bGluZTEKbGluZTI=?=");
        check("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=");
    }

    #[test]
    fn mirrors_marked_parameters_into_headers() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "off": {"type": "boolean", "x-mcp-header": "Off"},
        }});
        let marks = mirrored(&RawJson::from(schema)).unwrap();
        let arguments = RawJson::from(json!({"region": "东京", "deep": {"n": -7}, "off": null}));
        assert_eq!(
            param_headers(&marks, &arguments),
            [
                ("Mcp-Param-Region".to_owned(), "=?base64?5Lic5Lqs?=".to_owned()),
                ("Mcp-Param-N".to_owned(), "-7".to_owned()),
            ]
        );
    }

    #[test]
    fn rejects_tools_with_invalid_header_marks() {
        let check = |property: Value| {
            let schema = json!({"type": "object", "properties": {"a": property, "b": {"type": "string", "x-mcp-header": "B"}}});
            assert!(mirrored(&RawJson::from(schema.clone())).is_err(), "{schema}");
        };
        check(json!({"type": "string", "x-mcp-header": ""}));
        check(json!({"type": "string", "x-mcp-header": "a b"}));
        check(json!({"type": "string", "x-mcp-header": "b"}));
        check(json!({"type": "number", "x-mcp-header": "A"}));
        check(json!({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}));
        check(json!({"anyOf": [{"type": "string", "x-mcp-header": "A"}]}));
    }
}
