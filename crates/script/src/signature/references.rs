//! The references of a JSON Schema: finds their targets, and names those that contain themselves.

use std::collections::BTreeMap;

use serde_json::Value;

/// References that are followed one after another before a schema is given up.
const MAX_REFERENCE_CHAIN: usize = 16;

/// The references of one schema document.
#[derive(Debug)]
pub(super) struct References<'a> {
    root: &'a Value,
    /// Names of recursive targets, by reference.
    names: BTreeMap<String, String>,
}

impl<'a> References<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self { root, names: BTreeMap::new() }
    }

    /// The target of a reference inside the document, and the last reference of the chain. Other documents are not read.
    pub(super) fn target(&self, reference: &str) -> Option<(String, &'a Value)> {
        let mut reference = reference.to_owned();
        for _ in 0..MAX_REFERENCE_CHAIN {
            let pointer = reference.strip_prefix('#')?;
            let target = self.root.pointer(&decoded(pointer)?)?;
            match target.get("$ref").and_then(Value::as_str) {
                Some(next) if target.as_object().is_some_and(|object| object.len() == 1) => {
                    next.clone_into(&mut reference);
                }
                _ => return Some((reference, target)),
            }
        }
        None
    }

    /// The name of a recursive target, which is the last part of its path.
    pub(super) fn name(&mut self, reference: &str) -> String {
        if let Some(name) = self.names.get(reference) {
            return name.clone();
        }
        let last = reference.rsplit('/').next().unwrap_or_default();
        let mut name: String =
            last.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_').take(40).collect();
        if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            name.insert_str(0, "Type");
        }
        if let Some(first) = name.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let taken = |name: &String| self.names.values().any(|other| other == name);
        let plain = name.clone();
        let mut number = 2;
        while taken(&name) {
            name = format!("{plain}{number}");
            number += 1;
        }
        self.names.insert(reference.to_owned(), name.clone());
        name
    }
}

/// Decodes percent escapes of a fragment.
fn decoded(pointer: &str) -> Option<String> {
    if !pointer.contains('%') {
        return Some(pointer.to_owned());
    }
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn follows_references_inside_the_document() {
        let root = json!({ "$defs": {
            "a b": { "type": "string" }, "Alias": { "$ref": "#/$defs/a%20b" },
            "Loop": { "$ref": "#/$defs/Loop" }, "x/y": { "type": "null" }
        } });
        let references = References::new(&root);
        let found = |reference: &str| references.target(reference).map(|(_, target)| target.clone());
        assert_eq!(found("#/$defs/a%20b"), Some(json!({ "type": "string" })));
        assert_eq!(found("#/$defs/Alias"), Some(json!({ "type": "string" })));
        assert_eq!(found("#/$defs/x~1y"), Some(json!({ "type": "null" })));
        assert_eq!(found("#").as_ref(), Some(&root));
        for nothing in ["#/$defs/Loop", "#/$defs/none", "http://example.com/#/a", "#/%zz", "#/%f", "a"] {
            assert_eq!(found(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn names_are_identifiers_and_unique() {
        let root = json!({});
        let mut references = References::new(&root);
        assert_eq!(references.name("#/$defs/node"), "Node");
        assert_eq!(references.name("#/definitions/node"), "Node2");
        assert_eq!(references.name("#/$defs/node"), "Node");
        assert_eq!(references.name("#"), "Type");
        assert_eq!(references.name("#/$defs/*/ evil"), "Evil");
    }
}
