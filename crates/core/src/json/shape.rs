//! Structural functions on JSON texts: nesting depth, canonical form and pretty-printing.

use serde_json::value::RawValue;

use super::RawJson;
use super::members::borrowed;

/// Maximum nesting depth. Deeper values are rejected, because walking them recursively would exhaust the stack.
pub const MAX_DEPTH: usize = 128;

/// The nesting depth of objects and arrays in a JSON text, if it exceeds [`MAX_DEPTH`].
pub fn too_deep(text: &str) -> Option<usize> {
    // Fast path: few texts contain more than `MAX_DEPTH` opening brackets, and counting bytes is cheap. `{` and `[`
    // differ in one bit; chunks of 255 bytes keep the counts within `u8`.
    let opening = |byte: &u8| u8::from(byte | 0x20 == b'{');
    let opened = |some: &[u8]| usize::from(some.iter().map(opening).sum::<u8>());
    let opened: usize = text.as_bytes().chunks(usize::from(u8::MAX)).map(opened).sum();
    (opened > MAX_DEPTH).then(|| depth(text)).filter(|depth| *depth > MAX_DEPTH)
}

/// The nesting depth of objects and arrays in a JSON text. One pass, no recursion.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    walk_tokens(text, |token| match token {
        "{" | "[" => {
            depth += 1;
            deepest = deepest.max(depth);
        }
        "}" | "]" => depth = depth.saturating_sub(1),
        _ => {}
    });
    deepest
}

/// The canonical text of a value: keys sorted, no white space.
/// `None` if the text is not JSON or too deeply nested.
pub fn canonical_json(text: &str) -> Option<String> {
    if too_deep(text).is_some() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    write_canonical(text, &mut out).then_some(out)
}

fn write_canonical(text: &str, out: &mut String) -> bool {
    match text.as_bytes().first() {
        Some(b'{') => {
            let Some(mut members) = borrowed(text) else { return false };
            // Stable sort: the order of duplicate keys matters, because parsers differ in the one they use.
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            out.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(RawJson::of(&**name).get());
                out.push(':');
                if !write_canonical(value.get(), out) {
                    return false;
                }
            }
            out.push('}');
        }
        Some(b'[') => {
            let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(text) else { return false };
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                if !write_canonical(item.get(), out) {
                    return false;
                }
            }
            out.push(']');
        }
        Some(b'"') => {
            let Ok(string) = serde_json::from_str::<String>(text) else { return false };
            out.push_str(RawJson::of(&string).get());
        }
        _ => out.push_str(text),
    }
    true
}

/// Indents a JSON text; every token is preserved.
pub fn pretty_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0_usize;
    let mut after_open = false;
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    walk_tokens(text, |token| match token {
        "}" | "]" => {
            depth = depth.saturating_sub(1);
            if !after_open {
                line(&mut out, depth);
            }
            after_open = false;
            out.push_str(token);
        }
        "," => {
            out.push(',');
            line(&mut out, depth);
        }
        ":" => out.push_str(": "),
        _ => {
            if std::mem::take(&mut after_open) {
                line(&mut out, depth);
            }
            out.push_str(token);
            if matches!(token, "{" | "[") {
                depth += 1;
                after_open = true;
            }
        }
    });
    out
}

/// Calls `visit` with each token of a JSON text: punctuation, strings with their quotes, and bare words.
fn walk_tokens<'a>(text: &'a str, mut visit: impl FnMut(&'a str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b' ' | b'\t' | b'\r' | b'\n' => {
                at += 1;
                continue;
            }
            b'{' | b'}' | b'[' | b']' | b',' | b':' => at += 1,
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(bytes.len());
            }
            _ => {
                while at < bytes.len()
                    && !matches!(
                        bytes[at],
                        b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' | b'{' | b'}' | b'[' | b']' | b'"'
                    )
                {
                    at += 1;
                }
            }
        }
        visit(text.get(start..at).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    const ODD: &str =
        r#"{"z":1e2,"a":1234567890123456789012345678901234567890,"é":"\u00e9 \"{[","list":[ ],"o":{}}"#;

    #[test]
    fn canonical_form_is_independent_of_formatting() {
        let a = canonical_json(r#"{"b": [1, 2], "a": "\u0041"}"#).unwrap();
        let b = canonical_json(r#"{"a":"A","b":[1,2]}"#).unwrap();
        assert_eq!(a, b);
        assert!(canonical_json(ODD).unwrap().contains("1234567890123456789012345678901234567890"));
    }

    #[test]
    fn pretty_changes_only_whitespace() {
        let formatted = pretty_json(ODD);
        assert!(formatted.contains("\n  \"z\": 1e2,\n"), "{formatted}");
        assert!(formatted.contains("\"list\": []"), "{formatted}");
        assert_eq!(canonical_json(&formatted), canonical_json(ODD));
    }

    #[test]
    fn depth_ignores_braces_in_strings() {
        assert_eq!(depth(r#"{"a":"[[[[","b":[{}]}"#), 3);
        assert_eq!(depth(&"[".repeat(100_000)), 100_000);
        assert!(canonical_json(&("[".repeat(200) + &"]".repeat(200))).is_none());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn pretty_and_canonical_preserve_the_value(value in any_json()) {
            let text = value.to_string();
            prop_assert_eq!(&serde_json::from_str::<Value>(&pretty_json(&text)).unwrap(), &value);
            prop_assert_eq!(&serde_json::from_str::<Value>(&canonical_json(&text).unwrap()).unwrap(), &value);
        }
    }
}
