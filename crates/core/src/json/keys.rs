//! Detects keys that JSON parsers interpret differently: duplicate keys of an object, and keys that are not valid
//! Unicode.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use super::RawJson;

/// Objects with at most this many keys are compared pair by pair; larger ones with a hash set.
const MAX_PAIRWISE: usize = 8;
/// Maximum characters of a key in an error.
const MAX_REPORTED_KEY_CHARS: usize = 80;

/// Why the keys of a JSON text are ambiguous. RFC 8259 leaves open which of two equal keys counts, so that a check of
/// one of them does not protect a peer that reads the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyProblem {
    /// An object has this key more than once, after unescaping; shortened if long.
    Duplicate(String),
    /// A key is not valid Unicode: it contains an unpaired surrogate.
    NotUnicode,
}

impl fmt::Display for KeyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate(key) => write!(f, "duplicate key {}", RawJson::of(key)),
            Self::NotUnicode => f.write_str("a key has an unpaired surrogate"),
        }
    }
}

/// Finds the first ambiguous object of a JSON text, at any depth. One pass without recursion, linear in the length of
/// the text for any keys. The result is unspecified if the text is not JSON.
pub fn key_problem(text: &str) -> Option<KeyProblem> {
    let mut walk = Walk::default();
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => walk.open(Some(walk.keys.len())),
            b'[' => walk.open(None),
            b'}' | b']' => {
                if let Some(problem) = walk.close() {
                    return Some(problem);
                }
            }
            b',' => walk.expects_key = matches!(walk.open.last(), Some(Some(_))),
            b'"' => {
                let start = at;
                at += 1;
                let mut escaped = false;
                loop {
                    match bytes.get(at) {
                        Some(b'"') | None => break,
                        Some(b'\\') => {
                            escaped = true;
                            at += 2;
                        }
                        Some(_) => at += 1,
                    }
                }
                if std::mem::take(&mut walk.expects_key) {
                    match key(text, start..at.saturating_add(1), escaped) {
                        Some(key) => walk.keys.push(key),
                        None => return Some(KeyProblem::NotUnicode),
                    }
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The unescaped key at this position, whose range includes the quotes.
fn key(text: &str, position: std::ops::Range<usize>, escaped: bool) -> Option<Cow<'_, str>> {
    let quoted = text.get(position)?;
    if escaped {
        return serde_json::from_str(quoted).ok().map(Cow::Owned);
    }
    quoted.strip_prefix('"')?.strip_suffix('"').map(Cow::Borrowed)
}

#[derive(Default)]
struct Walk<'a> {
    /// The keys of all open objects, the innermost last.
    keys: Vec<Cow<'a, str>>,
    /// For each open bracket, the index of its object's first key; `None` for an array.
    open: Vec<Option<usize>>,
    /// Whether the next string is a key.
    expects_key: bool,
}

impl Walk<'_> {
    fn open(&mut self, keys: Option<usize>) {
        self.open.push(keys);
        self.expects_key = keys.is_some();
    }

    fn close(&mut self) -> Option<KeyProblem> {
        self.expects_key = false;
        let start = self.open.pop()??;
        let problem = repeated(self.keys.get(start..)?);
        self.keys.truncate(start);
        problem
    }
}

/// The first duplicate key in the list.
fn repeated(keys: &[Cow<'_, str>]) -> Option<KeyProblem> {
    let duplicate = if keys.len() <= MAX_PAIRWISE {
        keys.iter().enumerate().find(|(position, key)| keys.iter().take(*position).any(|other| other == *key))
    } else {
        let mut seen: HashSet<&str> = HashSet::with_capacity(keys.len());
        keys.iter().enumerate().find(|(_, key)| !seen.insert(key))
    };
    duplicate.map(|(_, key)| KeyProblem::Duplicate(key.chars().take(MAX_REPORTED_KEY_CHARS).collect()))
}

/// A form that is equal for all keys that some parser reads as the same one. Go's `encoding/json` matches keys by simple case
/// folding, which also equates `ſ` with `s` and the Kelvin sign with `k`; texts of C end at a NUL.
pub fn fold_key(key: &str) -> String {
    let key = key.split_once('\0').map_or(key, |(before, _)| before);
    key.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

    use super::*;

    fn check(text: &str, expect: Option<&str>) {
        let found = key_problem(text).map(|problem| problem.to_string());
        assert_eq!(found.as_deref(), expect, "{text}");
    }

    #[test]
    fn finds_duplicate_keys_at_any_depth() {
        check(r#"{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}"#, None);
        check(r#"{"a":1,"a":2}"#, Some(r#"duplicate key "a""#));
        check(r#"{"a":1,"\u0061":2}"#, Some(r#"duplicate key "a""#));
        check(r#"[1,{"x":[{"k":"a","k" : "b"}]}]"#, Some(r#"duplicate key "k""#));
        check(r#"{"":1,"":2}"#, Some(r#"duplicate key """#));
        check(r#"{"\ud83d\ude00":1,"😀":2}"#, Some(r#"duplicate key "😀""#));
        check(r#"{"\/":1,"/":2}"#, Some(r#"duplicate key "/""#));
        check(r#"{"a":"{\"b\":1,\"b\":2}","b":"\\"}"#, None);
        check(r#"{"a":["x","x"],"b":"a"}"#, None);
        check(r#"{"\ud800":1}"#, Some("a key has an unpaired surrogate"));
        check(r#"{"a":"\ud800"}"#, None);
        check("\"a\"", None);
    }

    #[test]
    fn many_keys_take_linear_time() {
        let keys: Vec<String> = (0..250_000).map(|key| format!(r#""k{key}":1"#)).collect();
        let text = format!("{{{}}}", keys.join(","));
        let began = std::time::Instant::now();
        check(&text, None);
        check(&format!(r#"{{{},"k0":2}}"#, keys.join(",")), Some(r#"duplicate key "k0""#));
        // A pairwise comparison would need thirty billion steps.
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    }

    #[test]
    fn folds_keys_like_case_insensitive_parsers() {
        for (one, other) in
            [("Folder", "folder"), ("ſize", "size"), ("\u{212a}ey", "key"), ("Path\0x", "path")]
        {
            assert_eq!(fold_key(one), fold_key(other));
        }
        assert_ne!(fold_key("folder"), fold_key("folders"));
    }

    /// Whether serde_json finds a duplicate key: an independent parser.
    struct Twice(bool);

    impl<'de> Deserialize<'de> for Twice {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Any;
            impl<'de> Visitor<'de> for Any {
                type Value = Twice;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("JSON")
                }
                fn visit_unit<E>(self) -> Result<Twice, E> {
                    Ok(Twice(false))
                }
                fn visit_bool<E>(self, _: bool) -> Result<Twice, E> {
                    Ok(Twice(false))
                }
                fn visit_u64<E>(self, _: u64) -> Result<Twice, E> {
                    Ok(Twice(false))
                }
                fn visit_str<E>(self, _: &str) -> Result<Twice, E> {
                    Ok(Twice(false))
                }
                fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Twice, A::Error> {
                    let mut twice = false;
                    while let Some(Twice(inner)) = seq.next_element()? {
                        twice |= inner;
                    }
                    Ok(Twice(twice))
                }
                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Twice, A::Error> {
                    let (mut seen, mut twice) = (Vec::<String>::new(), false);
                    while let Some((key, Twice(inner))) = map.next_entry::<String, Twice>()? {
                        twice |= inner || seen.contains(&key);
                        seen.push(key);
                    }
                    Ok(Twice(twice))
                }
            }
            deserializer.deserialize_any(Any)
        }
    }

    /// JSON texts whose objects often have duplicate keys, spelled with and without escapes.
    fn any_text() -> impl Strategy<Value = String> {
        let key = prop::sample::select(vec![
            r#""p""#,
            r#""\u0070""#,
            r#""q""#,
            r#""\u0071""#,
            r#""""#,
            r#""\"""#,
            r#""{""#,
            r#""p\\""#,
        ]);
        let leaf = prop::sample::select(vec!["null", "true", "7", r#""p""#, r#""\"p\":1,""#, "{}", "[ ]"]);
        leaf.prop_map(str::to_owned).prop_recursive(4, 24, 4, move |inner| {
            let member = (key.clone(), inner.clone()).prop_map(|(key, value)| format!("{key} : {value}"));
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
                prop::collection::vec(member, 0..12).prop_map(|members| format!("{{{}}}", members.join(","))),
            ]
        })
    }

    proptest! {
        #[test]
        fn agrees_with_serde_on_duplicates(text in any_text()) {
            let Twice(twice) = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(key_problem(&text).is_some(), twice, "{}", text);
        }
    }
}
