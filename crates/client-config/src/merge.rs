//! Merges servers into the text of a file: existing content is kept, and the result is parsed again and verified.

use std::path::Path;

use serde_json::{Map, Value};
use toolhub_core::lang::LocalizedText;

use crate::check::only_these_changed;
use crate::entry::{ClientServer, ServerAction, ServerOutcome};
use crate::error::ConfigError;
use crate::format::{Format, strip_bom};
use crate::source::{Entries, Obstacle, SourceFile};
use crate::syntax::object_at;

/// The file to be edited.
#[derive(Debug, Clone, Copy)]
pub struct TargetFile<'a> {
    /// The file.
    pub file: &'a Path,
    /// Its text; empty if it does not exist.
    pub text: &'a str,
    /// Its format.
    pub format: Format,
    /// Whether existing servers of the same name are replaced.
    pub replace: bool,
}

/// The result of an edit.
#[derive(Debug)]
pub struct MergeResult {
    /// The complete text; unchanged if nothing was written.
    pub text: String,
    /// The outcome for each server, in their order.
    pub outcomes: Vec<ServerOutcome>,
}

/// Why nothing was written.
#[derive(Debug)]
pub enum EditError {
    /// The file is invalid.
    Config(ConfigError),
    /// The file is valid, but cannot be edited without changing other content.
    Unsafe {
        /// The reason.
        why: ConfigError,
        /// A snippet for manual insertion, with values that may be secrets replaced.
        snippet: Box<str>,
    },
}

/// Merges servers into a file's text.
pub fn merge_servers(target: &TargetFile<'_>, servers: &[ClientServer]) -> Result<MergeResult, EditError> {
    let Format { syntax, path, write, .. } = target.format;
    let text = strip_bom(target.text);
    let document = syntax.parse(target.file, text).map_err(EditError::Config)?;
    let existing = object_at(&document, path);
    let mut entries = Entries::new();
    let mut outcomes = Vec::new();
    for server in servers {
        let exists = existing.is_some_and(|existing| existing.contains_key(&server.id));
        let is_duplicate = entries.iter().any(|(id, _)| *id == server.id);
        if is_duplicate || (exists && !target.replace) {
            outcomes.push(ServerOutcome::not_written(&server.id, ServerAction::Kept, already_exists()));
            continue;
        }
        match write(server) {
            Ok(entry) => {
                outcomes.push(ServerOutcome {
                    id: server.id.clone(),
                    action: if exists { ServerAction::Replaced } else { ServerAction::Added },
                    why: None,
                    left_out: [server.left_out.clone(), entry.left_out].concat(),
                    notes: [server.notes.clone(), entry.notes].concat(),
                });
                entries.push((server.id.clone(), entry.members));
            }
            Err(why) => outcomes.push(ServerOutcome::not_written(&server.id, ServerAction::Skipped, why)),
        }
    }
    if entries.is_empty() {
        return Ok(MergeResult { text: target.text.to_owned(), outcomes });
    }
    let source = SourceFile { file: target.file, text };
    let edited = syntax.insert(source, path, &entries).and_then(|new| {
        let after = syntax.parse(target.file, &new);
        match after.is_ok_and(|after| only_these_changed(&document, &after, path, &entries)) {
            true => Ok(new),
            false => Err(Obstacle::Unsafe(LocalizedText::new(
                "it is written in a way that cannot be edited without touching the rest",
                "其写法无法在不触动其余内容的情况下编辑",
            ))),
        }
    });
    let mark = &target.text[..target.text.len() - text.len()];
    match edited {
        Ok(new) => Ok(MergeResult { text: format!("{mark}{new}"), outcomes }),
        Err(Obstacle::Config(error)) => Err(EditError::Config(error)),
        Err(Obstacle::Unsafe(why)) => {
            let nothing = SourceFile { file: target.file, text: "" };
            let snippet = syntax.insert(nothing, path, &masked(entries)).unwrap_or_default().into();
            Err(EditError::Unsafe { why: ConfigError::whole(target.file, why), snippet })
        }
    }
}

fn already_exists() -> LocalizedText {
    LocalizedText::new(
        "a server of that name is there: `--replace` takes this one instead",
        "已有同名服务器：加 `--replace` 可用此项替换",
    )
}

/// The entries with placeholders in place of values that may be secrets.
fn masked(entries: Entries) -> Entries {
    let holders = ["env", "envs", "headers", "http_headers"];
    let mask = |(id, mut members): (String, Map<String, Value>)| {
        for holder in holders {
            if let Some(Value::Object(values)) = members.get_mut(holder) {
                values.iter_mut().for_each(|(name, value)| *value = format!("<{name}>").into());
            }
        }
        (id, members)
    };
    entries.into_iter().map(mask).collect()
}
