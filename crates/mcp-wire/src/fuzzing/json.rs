//! Compares the member scanner and the raw views of JSON with `serde_json`.

use std::collections::HashSet;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use toolhub_core::RawJson;
use toolhub_core::json::{KeyProblem, MAX_DEPTH, canonical_json, pretty_json, too_deep};

use crate::scan::{JsonScanner, has_member, is_plain};

/// The maximum nesting depth of the scanner.
const SCANNED_DEPTH: usize = 64;

/// The members of an object in order, including duplicates, as `serde_json` reads them.
#[derive(Debug)]
pub struct Members(pub Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Ordered;

        impl<'de> Visitor<'de> for Ordered {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Ordered)
    }
}

impl Members {
    /// The members of the object in a text.
    pub fn of(text: &str) -> Option<Vec<(String, String)>> {
        let Self(members) = serde_json::from_str(text).ok()?;
        Some(members.into_iter().map(|(name, value)| (name, value.get().to_owned())).collect())
    }
}

/// The nesting depth of a text; an upper bound if it is not JSON.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// A key that occurs twice in one object, after unescaping, at any depth, as `serde_json` reads it.
pub fn repeated_key(text: &str) -> Option<String> {
    let Some(members) = Members::of(text) else {
        let items = serde_json::from_str::<Vec<Box<RawValue>>>(text).unwrap_or_default();
        return items.iter().find_map(|item| repeated_key(item.get()));
    };
    let mut seen = HashSet::new();
    let duplicate =
        members.iter().find(|(name, _)| !seen.insert(name.as_str())).map(|(name, _)| name.clone());
    duplicate.or_else(|| members.iter().find_map(|(_, value)| repeated_key(value)))
}

/// Checks that the scanner and `serde_json` agree, and that rejected texts are invalid or nested too deeply.
pub fn json_members(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    let slow = serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get);
    let mut scan = JsonScanner::new(text);
    let fast = scan.value().filter(|_| scan.is_at_end());
    assert!(fast == slow || (fast.is_none() && depth(text) > SCANNED_DEPTH), "{fast:?} {slow:?}");
    scanned_members(text);
    assert_eq!(is_plain(text), !text.bytes().any(|byte| matches!(byte, b'"' | b'\\' | 0..b' ')));
    assert_eq!(too_deep(text).is_some(), text.len() > MAX_DEPTH && exceeds_max_depth(text));
    match RawJson::parse(text) {
        Ok(raw) => {
            ambiguous_keys(&raw);
            assert_eq!(Some(raw.get()), slow);
            raw_views(&raw);
        }
        Err(_) => assert!(slow.is_none()),
    }
    // Neither may panic on invalid JSON.
    let _ = (canonical_json(text), pretty_json(text));
}

/// Checks that exactly the duplicate keys are found, except for keys that `serde_json` cannot decode.
fn ambiguous_keys(raw: &RawJson) {
    let (problem, duplicate) = (raw.key_problem(), repeated_key(raw.get()));
    let has_surrogates = raw.get().to_ascii_lowercase().contains("\\ud");
    match problem {
        None => assert_eq!(duplicate, None),
        Some(KeyProblem::Duplicate(_)) => assert!(duplicate.is_some() || has_surrogates),
        Some(KeyProblem::NotUnicode) => assert!(has_surrogates),
    }
}

/// Exact for JSON; for other texts both count in the same way.
fn exceeds_max_depth(text: &str) -> bool {
    depth(text) > MAX_DEPTH
}

fn scanned_members(text: &str) {
    let (mut scan, mut found) = (JsonScanner::new(text), Vec::new());
    let walked = scan.members(|scan, name| {
        found.push((name.to_owned(), scan.value()?.to_owned()));
        Some(())
    });
    let all = Members::of(text);
    if walked.is_some() && scan.is_at_end() {
        assert_eq!(Some(&found), all.as_ref());
    }
    let names = all.iter().flatten().map(|(name, _)| name.as_str()).chain(["a", "params", ""]);
    for name in names.take(20) {
        let expected = all.as_ref().map(|all| all.iter().any(|(other, _)| other == name));
        if let Some(has) = has_member(text, name) {
            assert_eq!(Some(has), expected, "{name:?}");
        }
    }
}

/// Checks that the views of a value agree with each other and with `serde_json`.
fn raw_views(raw: &RawJson) {
    let text = raw.get();
    let all = Members::of(text);
    let object = raw.object();
    assert_eq!(object.is_some(), all.is_some());
    if let (Some(object), Some(all)) = (object, &all) {
        let members: Vec<(String, String)> =
            object.iter().map(|(name, value)| (name.to_owned(), value.get().to_owned())).collect();
        assert_eq!(&members, all);
        for (name, _) in all.iter().take(20) {
            let first = all.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
            assert_eq!(object.get(name).map(RawJson::get), first);
            assert!(raw.has_member(name), "{name:?}");
        }
        let written = object.into_raw();
        assert_eq!(Members::of(written.get()).as_ref(), Some(all));
        member_added(raw, all);
    }
    for name in ["a", "k", "\u{e9}", "\n"] {
        assert_eq!(raw.has_member(name), all.iter().flatten().any(|(other, _)| other == name), "{name:?}");
    }
    let string = serde_json::from_str::<String>(text).ok();
    assert_eq!(raw.text().as_deref(), string.as_deref());
    // A tree cannot represent a lone surrogate, which a raw value keeps.
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    assert_eq!(raw.value(), value);
    let same = |text: &str| serde_json::from_str::<Value>(text).ok() == Some(value.clone());
    let formatted = pretty_json(text);
    assert!(same(&formatted), "{formatted}");
    let written = canonical_json(text);
    assert_eq!(written.is_none(), too_deep(text).is_some());
    if let Some(written) = written {
        assert!(same(&written), "{written}");
        assert_eq!(canonical_json(&written).as_ref(), Some(&written));
        assert_eq!(canonical_json(&formatted).as_ref(), Some(&written));
    }
}

fn member_added(raw: &RawJson, all: &[(String, String)]) {
    let with = raw.clone().with_last("k\"", &RawJson::from(true));
    let mut expected = all.to_vec();
    if !all.iter().any(|(name, _)| name == "k\"") {
        expected.push(("k\"".to_owned(), "true".to_owned()));
    }
    assert_eq!(Members::of(with.get()), Some(expected));
}
