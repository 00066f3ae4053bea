//! Removes servers from the text of a file, and restores those that an earlier edit removed. All other entries are unchanged.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};
use toolhub_core::lang::LocalizedText;

use crate::check::{only_these_changed, only_these_removed};
use crate::entry::ClientServer;
use crate::error::ConfigError;
use crate::format::{Format, strip_bom};
use crate::merge::{EditError, TargetFile};
use crate::source::{Entries, Obstacle, SourceFile};
use crate::syntax::object_at;

/// The raw entries in a file's text, by name.
pub fn raw_entries(format: Format, file: &Path, text: &str) -> Result<Map<String, Value>, ConfigError> {
    let document = format.syntax.parse(file, strip_bom(text))?;
    Ok(object_at(&document, format.path).cloned().unwrap_or_default())
}

/// The entry for a server in a format; `None` if the format cannot express it.
pub fn entry_of(format: Format, server: &ClientServer) -> Option<Value> {
    (format.write)(server).ok().map(|written| Value::Object(written.members))
}

/// The text without the entries of these names. Missing names are ignored.
pub fn remove_servers(target: &TargetFile<'_>, ids: &[String]) -> Result<String, EditError> {
    let present = raw_entries(target.format, target.file, target.text).map_err(EditError::Config)?;
    let ids: Vec<&str> = ids.iter().map(String::as_str).filter(|id| present.contains_key(*id)).collect();
    edit(target, &ids, &Entries::new())
}

/// The result of an undo in a file that has changed since.
#[derive(Debug)]
pub struct RevertResult {
    /// The complete text.
    pub text: String,
    /// Entries that the earlier edit had added, now removed.
    pub removed: Vec<String>,
    /// Entries that the earlier edit had removed, now restored.
    pub restored: Vec<String>,
    /// Entries that differ from those the earlier edit wrote or removed: left unchanged.
    pub kept: Vec<String>,
}

/// Undoes the change of entries from `before` to `after` in `target`; the added entries in `keep` stay. An entry that has been
/// modified since the edit stays too.
pub fn revert_change(
    target: &TargetFile<'_>,
    before: &str,
    after: &str,
    keep: &[String],
) -> Result<RevertResult, EditError> {
    let read = |text: &str| raw_entries(target.format, target.file, text).map_err(EditError::Config);
    let (before, after, current) = (read(before)?, read(after)?, read(target.text)?);
    let (mut removed, mut restored, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    let mut restored_entries = Entries::new();
    for (id, entry) in &after {
        if before.contains_key(id) || keep.contains(id) {
            continue;
        }
        match current.get(id) {
            Some(present) if present == entry => removed.push(id.clone()),
            Some(_) => kept.push(id.clone()),
            None => {}
        }
    }
    for (id, entry) in &before {
        let (false, Value::Object(members)) = (after.contains_key(id), entry) else { continue };
        match current.get(id) {
            None => {
                restored.push(id.clone());
                restored_entries.push((id.clone(), members.clone()));
            }
            Some(present) if present == entry => {}
            Some(_) => kept.push(id.clone()),
        }
    }
    let ids: Vec<&str> = removed.iter().map(String::as_str).collect();
    let text = edit(target, &ids, &restored_entries)?;
    Ok(RevertResult { text, removed, restored, kept })
}

/// Adds entries, then removes others, and verifies the text after each step.
fn edit(target: &TargetFile<'_>, ids: &[&str], restored_entries: &Entries) -> Result<String, EditError> {
    let Format { syntax, path, .. } = target.format;
    let text = strip_bom(target.text);
    let mark = &target.text[..target.text.len() - text.len()];
    let parse = |text: &str| syntax.parse(target.file, text).map_err(EditError::Config);
    let mut new = text.to_owned();
    if !restored_entries.is_empty() {
        let document = parse(&new)?;
        let inserted = syntax.insert(SourceFile { file: target.file, text: &new }, path, restored_entries);
        new = inserted.map_err(|obstacle| edit_error(target.file, obstacle))?;
        if !only_these_changed(&document, &parse(&new)?, path, restored_entries) {
            return Err(edit_error(target.file, not_editable()));
        }
    }
    if !ids.is_empty() {
        let document = parse(&new)?;
        let removed = syntax.remove(SourceFile { file: target.file, text: &new }, path, ids);
        new = removed.map_err(|obstacle| edit_error(target.file, obstacle))?;
        let names: BTreeSet<&str> = ids.iter().copied().collect();
        if !only_these_removed(&document, &parse(&new)?, path, &names) {
            return Err(edit_error(target.file, not_editable()));
        }
    }
    Ok(format!("{mark}{new}"))
}

fn not_editable() -> Obstacle {
    Obstacle::Unsafe(LocalizedText::new(
        "it is written in a way that cannot be edited without touching the rest",
        "其写法无法在不触动其余内容的情况下编辑",
    ))
}

fn edit_error(file: &Path, obstacle: Obstacle) -> EditError {
    match obstacle {
        Obstacle::Config(error) => EditError::Config(error),
        Obstacle::Unsafe(why) => EditError::Unsafe { why: ConfigError::whole(file, why), snippet: "".into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::Client;
    use crate::tests::named;

    const JSON: &str = "{\n  // head\n  \"theme\": 1.0,\n  \"mcpServers\": {\n    // first\n    \"a\": {\"command\": \"a\"}, // tail\n    \"b\": {\"command\": \"b\"}\n  }\n}\n";
    const TOML: &str = "# head\n\n[mcp_servers.a]\ncommand = \"a\" # mine\n\n[mcp_servers.a.env]\nK = \"v\"\n\n# about b\n[mcp_servers.b]\ncommand = \"b\"\n\n# the end\n[tui]\nx = 1\n";
    const YAML: &str = "# head\nextensions:\n  # about a\n  a:\n    type: stdio\n    cmd: a\n  b:\n    type: stdio\n    cmd: b\n\n# the end\nother: 1\n";

    fn target(client: Client, text: &str) -> TargetFile<'_> {
        TargetFile { file: Path::new("config"), text, format: client.format(), replace: false }
    }

    fn names(client: Client, text: &str) -> Vec<String> {
        raw_entries(client.format(), Path::new("config"), text).unwrap().keys().cloned().collect()
    }

    #[test]
    fn removes_entries_and_keeps_comments() {
        for (client, text, comments) in [
            (named("cursor"), JSON, ["// head", "\"theme\": 1.0"]),
            (named("codex"), TOML, ["# head", "# the end"]),
            (named("goose"), YAML, ["# head", "# the end"]),
        ] {
            for id in ["a", "b"] {
                let after =
                    remove_servers(&target(client, text), &[id.to_owned(), "absent".to_owned()]).unwrap();
                assert_eq!(names(client, &after), [if id == "a" { "b" } else { "a" }], "{after}");
                assert!(comments.iter().all(|comment| after.contains(comment)), "{after}");
            }
            let both = remove_servers(&target(client, text), &["a".to_owned(), "b".to_owned()]).unwrap();
            assert!(names(client, &both).is_empty(), "{both}");
            assert!(comments.iter().all(|comment| both.contains(comment)), "{both}");
            assert_eq!(remove_servers(&target(client, text), &["absent".to_owned()]).unwrap(), text);
        }
    }

    #[test]
    fn keeps_comments_at_the_start_of_a_toml_file() {
        let after = remove_servers(&target(named("codex"), TOML), &["a".to_owned()]).unwrap();
        assert!(after.starts_with("# head\n\n# about b\n[mcp_servers.b]"), "{after}");
        let after = remove_servers(&target(named("codex"), TOML), &["b".to_owned()]).unwrap();
        assert!(after.starts_with("# head\n") && after.ends_with("# about b\n"), "{after}");
    }

    #[test]
    fn reverts_only_its_own_entries() {
        for (client, text) in [(named("cursor"), JSON), (named("codex"), TOML), (named("goose"), YAML)] {
            let key = if client == named("goose") { "cmd" } else { "command" };
            let entry = |value: &str| -> Entries {
                let members = serde_json::json!({key: value, "type": "stdio"});
                vec![("hub".to_owned(), members.as_object().cloned().unwrap())]
            };
            let put = |text: &str, entries: &Entries| {
                edit(&target(client, text), &[], entries).unwrap_or_else(|error| panic!("{error:?}"))
            };
            let after =
                remove_servers(&target(client, &put(text, &entry("hub"))), &["a".to_owned()]).unwrap();
            // The user has added `mine` meanwhile, and reuses the name `a` in the second part.
            let mut mine = entry("mine");
            mine[0].0 = "mine".to_owned();
            let edited = put(&after, &mine);
            let reverted = revert_change(&target(client, &edited), text, &after, &[]).unwrap();
            let found: BTreeSet<String> = names(client, &reverted.text).into_iter().collect();
            assert_eq!(found, ["a", "b", "mine"].map(str::to_owned).into());
            assert_eq!((reverted.removed, reverted.restored), (vec!["hub".to_owned()], vec!["a".to_owned()]));
            assert!(reverted.kept.is_empty());
            let mut other = entry("other");
            other[0].0 = "a".to_owned();
            let changed = put(&put(&after, &other), &entry("changed"));
            let reverted = revert_change(&target(client, &changed), text, &after, &[]).unwrap();
            assert_eq!(reverted.text, changed, "{client:?}");
            assert_eq!(reverted.kept, ["hub", "a"]);
            let reverted =
                revert_change(&target(client, &edited), text, &after, &["hub".to_owned()]).unwrap();
            assert!(names(client, &reverted.text).contains(&"hub".to_owned()));
        }
    }

    #[test]
    fn rejects_edits_of_yaml_flow_mappings() {
        let text = "extensions: {a: {cmd: x}, b: {cmd: y}}\n";
        let edit_error = remove_servers(&target(named("goose"), text), &["a".to_owned()]);
        assert!(matches!(edit_error, Err(EditError::Unsafe { .. })), "{edit_error:?}");
    }
}
