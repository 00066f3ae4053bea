//! Verifies an edit: the new entries read as intended, and everything else as before.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::source::Entries;
use crate::syntax::object_at;

/// Whether `after` is `before` with exactly these entries at `path`.
pub(crate) fn only_these_changed(before: &Value, after: &Value, path: &[&str], entries: &Entries) -> bool {
    let Some(servers) = object_at(after, path) else { return false };
    let has_entries =
        entries.iter().all(|(id, members)| servers.get(id).and_then(Value::as_object) == Some(members));
    has_entries && without(before, path, entries) == without(after, path, entries)
}

/// Whether `after` is `before` without exactly these entries at `path`.
pub(crate) fn only_these_removed(before: &Value, after: &Value, path: &[&str], ids: &BTreeSet<&str>) -> bool {
    let gone = object_at(after, path).is_none_or(|servers| !ids.iter().any(|id| servers.contains_key(*id)));
    let entries: Entries = ids.iter().map(|id| ((*id).to_owned(), Map::new())).collect();
    gone && without(before, path, &entries) == without(after, path, &entries)
}

/// The document without these entries, and without parents that are then empty, since the edit may have added them.
fn without(document: &Value, path: &[&str], entries: &Entries) -> Value {
    let Value::Object(members) = document else { return document.clone() };
    let mut rest: Map<String, Value> = members.clone();
    match path {
        [] => rest.retain(|id, _| !entries.iter().any(|(entry, _)| entry == id)),
        [key, deeper @ ..] => {
            if let Some(inner) = members.get(*key) {
                let inner = without(inner, deeper, entries);
                let empty = inner.is_null() || inner.as_object().is_some_and(Map::is_empty);
                if empty {
                    rest.shift_remove(*key);
                } else {
                    rest.insert((*key).to_owned(), inner);
                }
            }
        }
    }
    Value::Object(rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn detects_unrelated_changes() {
        let new = json!({"command": "x"});
        let entries: Entries = vec![("b".to_owned(), new.as_object().cloned().unwrap())];
        let check = |before: Value, after: Value, expect: bool| {
            assert_eq!(only_these_changed(&before, &after, &["s"], &entries), expect, "{before} → {after}");
        };
        check(json!({"t": 1}), json!({"t": 1, "s": {"b": new}}), true);
        check(json!({"s": {"a": 1, "b": 2}}), json!({"s": {"a": 1, "b": new}}), true);
        check(json!({"s": null}), json!({"s": {"b": new}}), true);
        check(json!({"t": 1}), json!({"t": 2, "s": {"b": new}}), false);
        check(json!({"s": {"a": 1}}), json!({"s": {"b": new}}), false);
        check(json!({}), json!({"s": {"b": {"command": "y"}}}), false);
        check(json!({}), json!({}), false);
    }
}
