//! `toolhub init --undo`: restores the recorded files. A file that is unchanged since gets its previous bytes; in an edited file,
//! entries that `init` added are removed if they are unchanged, and entries that it removed are restored.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, TableLike};
use toolhub::settings::Paths;
use toolhub_client_config as clients;
use toolhub_client_config::{
    Client, ConfigError, EditError, Format, LockedFile, RevertResult, TOOLHUB_FORMAT, TargetFile,
    write_atomically,
};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Lang, Localize as _, RawJson, RawObject};

use crate::app::App;
use crate::commands::init::files::{checked_path, text_of};
use crate::commands::init::plan::NEW_SETTINGS;
use crate::commands::init::record::{FileChange, FileRole, InitRecord};
use crate::commands::init::report::show_undo;
use crate::commands::init::undone_file::{UndoStatus, UndoneFile};
use crate::exit::Exit;

pub(crate) fn run(app: &App, paths: &Paths, dry_run: bool) -> anyhow::Result<Exit> {
    let lang = app.lang();
    let mut record = InitRecord::read(&paths.data_dir)?;
    let undo = Undo { lang, dry_run, user: paths.home_dir.as_deref() };
    let mut rows = Vec::new();
    let mut keep = BTreeSet::new();
    let mut left = Vec::new();
    // Newest run first, so that each file is in the state that the run left.
    while let Some(mut run) = record.runs.pop() {
        let mut unfinished = Vec::new();
        run.files.sort_by_key(|change| change.role != FileRole::Client);
        for change in &run.files {
            let row = undo.file(change, &mut keep);
            // Servers that could not be restored to a client stay in the user's own files until they are.
            let waits = change.role != FileRole::Client && !unfinished.is_empty();
            if row.status == UndoStatus::Failed || waits {
                unfinished.push(change.clone());
            }
            rows.push(row);
        }
        if !unfinished.is_empty() {
            run.files = unfinished;
            left.insert(0, run);
        }
    }
    let complete = left.is_empty();
    record.runs = left;
    if !dry_run && !rows.is_empty() {
        record.write(&paths.data_dir)?;
    }
    if app.screen.json {
        let files: Vec<RawObject> = rows.iter().map(UndoneFile::as_json).collect();
        let json = RawObject::default()
            .with("dry_run", dry_run)
            .with("complete", complete)
            .with("files", RawJson::of(&files));
        app.screen.json(&json.into_raw());
    } else {
        show_undo(app, &rows, dry_run, &InitRecord::path(&paths.data_dir));
    }
    Ok(if complete { Exit::Done } else { Exit::Failed })
}

struct Undo<'a> {
    lang: Lang,
    dry_run: bool,
    user: Option<&'a Path>,
}

impl Undo<'_> {
    /// Reverts the change of one file. Adds servers that could not be restored to a client to `keep`.
    fn file(&self, change: &FileChange, keep: &mut BTreeSet<String>) -> UndoneFile {
        let row = self.try_file(change, keep).unwrap_or_else(|error| {
            let mut row = UndoneFile::new(change, UndoStatus::Failed);
            row.error = Some(error.localize(self.lang));
            row
        });
        if change.role == FileRole::Client && matches!(row.status, UndoStatus::Failed | UndoStatus::Missing) {
            keep.extend(taken(change));
        }
        row
    }

    fn try_file(&self, change: &FileChange, keep: &BTreeSet<String>) -> Result<UndoneFile, ConfigError> {
        let file = &change.file;
        if change.role == FileRole::Client && checked_path(file, self.user)? != change.real {
            return Err(ConfigError::whole(
                file,
                LocalizedText::new(
                    "it is another file now, by a link, and stays as it is",
                    "它现在经由链接指向另一个文件，保持不变",
                ),
            ));
        }
        let exists = text_of(file)?.is_some();
        let locked = LockedFile::open(file)?;
        let current = exists.then(|| locked.text());
        if current == change.before.as_deref() {
            return Ok(UndoneFile::new(change, UndoStatus::Unchanged));
        }
        let Some(current) = current else { return Ok(UndoneFile::new(change, UndoStatus::Missing)) };
        let keeps = change.role != FileRole::Client && !keep.is_empty();
        if current == change.after && !keeps {
            return match &change.before {
                Some(before) => {
                    self.write(file, before)?;
                    Ok(UndoneFile::new(change, UndoStatus::Restored))
                }
                None => {
                    self.delete(file)?;
                    Ok(UndoneFile::new(change, UndoStatus::Deleted))
                }
            };
        }
        let before = change.before.as_deref().unwrap_or_default();
        let keep: Vec<String> = keep.iter().cloned().collect();
        let reverted = match change.role {
            FileRole::Settings => revert_settings(file, before, &change.after, current, &keep)?,
            role => {
                let format = format_of(role, change)?;
                let target = TargetFile { file, text: current, format, replace: false };
                clients::revert_change(&target, before, &change.after, &keep).map_err(
                    |refused| match refused {
                        EditError::Config(error) | EditError::Unsafe { why: error, .. } => error,
                    },
                )?
            }
        };
        let nothing_left = change.before.is_none() && is_blank(change.role, file, &reverted.text);
        let mut row =
            UndoneFile::new(change, if nothing_left { UndoStatus::Deleted } else { UndoStatus::Edited });
        match nothing_left {
            true => self.delete(file)?,
            false => self.write(file, &reverted.text)?,
        }
        (row.removed, row.restored, row.kept) = (reverted.removed, reverted.restored, reverted.kept);
        Ok(row)
    }

    fn write(&self, file: &Path, text: &str) -> Result<(), ConfigError> {
        if self.dry_run {
            return Ok(());
        }
        write_atomically(file, text)
    }

    fn delete(&self, file: &Path) -> Result<(), ConfigError> {
        if self.dry_run {
            return Ok(());
        }
        std::fs::remove_file(file).map_err(|error| ConfigError::io(file, &error))
    }
}

fn format_of(role: FileRole, change: &FileChange) -> Result<Format, ConfigError> {
    let client = change.client.as_deref().and_then(Client::named);
    match (role, client) {
        (FileRole::Client, Some(client)) => Ok(client.format()),
        (FileRole::Client, None) => Err(ConfigError::whole(
            &change.file,
            LocalizedText::new("its client is not known", "不认识其客户端"),
        )),
        _ => Ok(TOOLHUB_FORMAT),
    }
}

/// The servers that `init` removed from a client's file.
fn taken(change: &FileChange) -> Vec<String> {
    let Ok(format) = format_of(change.role, change) else { return Vec::new() };
    let read = |text: &str| clients::raw_entries(format, &change.file, text).unwrap_or_default();
    let after = read(&change.after);
    let before = read(change.before.as_deref().unwrap_or_default());
    before.into_iter().map(|(id, _)| id).filter(|id| !after.contains_key(id)).collect()
}

/// Whether a file that `init` created contains nothing of the user.
fn is_blank(role: FileRole, file: &Path, text: &str) -> bool {
    match role {
        FileRole::Settings => text.trim().is_empty() || text == NEW_SETTINGS,
        FileRole::Servers => {
            clients::raw_entries(TOOLHUB_FORMAT, file, text).is_ok_and(|entries| entries.is_empty())
                && !text.contains("//")
        }
        FileRole::Client => false,
    }
}

/// `[[servers]]` of `toolhub.toml` by id, with all keys and values.
fn settings_by_id(file: &Path, text: &str) -> Result<Map<String, Value>, ConfigError> {
    let parsed: Value = toml_edit::de::from_str(text).map_err(|error| {
        let what = error.message().to_owned();
        let byte = error.span().map_or(0, |span| span.start);
        ConfigError::at(file, text, byte, LocalizedText::new(what.clone(), what))
    })?;
    let tables = parsed["servers"].as_array().into_iter().flatten();
    Ok(tables.filter_map(|table| Some((table["id"].as_str()?.to_owned(), table.clone()))).collect())
}

/// Removes the keys from `toolhub.toml` that `init` added and whose values are unchanged.
fn revert_settings(
    file: &Path,
    before: &str,
    after: &str,
    current: &str,
    keep: &[String],
) -> Result<RevertResult, ConfigError> {
    let (old, new) = (settings_by_id(file, before)?, settings_by_id(file, after)?);
    let present = settings_by_id(file, current)?;
    let mut document: DocumentMut = current.parse().map_err(|error: toml_edit::TomlError| {
        let what = error.message().to_owned();
        ConfigError::at(
            file,
            current,
            error.span().map_or(0, |span| span.start),
            LocalizedText::new(what.clone(), what),
        )
    })?;
    let (mut removed, mut kept) = (Vec::new(), Vec::new());
    let mut take = |table: &mut dyn TableLike| -> bool {
        let Some(id) = table.get("id").and_then(Item::as_str).map(str::to_owned) else { return false };
        let Some(added) = new.get(&id).and_then(Value::as_object).filter(|_| !keep.contains(&id)) else {
            return false;
        };
        let is_old = |key: &str| old.get(&id).is_some_and(|table| table.get(key).is_some());
        for (key, value) in added.iter().filter(|(key, _)| *key != "id" && !is_old(key)) {
            match present.get(&id).and_then(|table| table.get(key)) {
                Some(current) if current == value => {
                    table.remove(key);
                    removed.push(format!("{id}.{key}"));
                }
                Some(_) => kept.push(format!("{id}.{key}")),
                None => {}
            }
        }
        !old.contains_key(&id) && table.len() == 1
    };
    let mut is_empty = false;
    match document.get_mut("servers") {
        Some(Item::ArrayOfTables(tables)) => {
            let gone: Vec<usize> =
                tables.iter_mut().enumerate().filter_map(|(at, table)| take(table).then_some(at)).collect();
            gone.into_iter().rev().for_each(|at| drop(tables.remove(at)));
            is_empty = tables.is_empty();
        }
        Some(Item::Value(toml_edit::Value::Array(list))) => {
            let tables = list.iter_mut().enumerate();
            let gone: Vec<usize> =
                tables.filter_map(|(at, value)| take(value.as_inline_table_mut()?).then_some(at)).collect();
            gone.into_iter().rev().for_each(|at| drop(list.remove(at)));
        }
        _ => {}
    }
    if is_empty {
        document.remove("servers");
    }
    Ok(RevertResult { text: document.to_string(), removed, restored: Vec::new(), kept })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undo_keeps_settings_of_other_servers() {
        let check = |before: &str, after: &str, current: &str, expect: &str, kept: &[&str]| {
            let reverted = revert_settings(Path::new("t"), before, after, current, &[]).unwrap();
            assert_eq!(reverted.text, expect);
            assert_eq!(reverted.kept, kept);
        };
        let a = "[[servers]]\nid = \"a\"\ncall_timeout = \"9s\"\n";
        let b = "\n[[servers]]\nid = \"b\"\ntools = [\"x\"]\n";
        let head = "[limits]\ncall = \"5s\" # mine\n\n";
        check("", a, &format!("{head}{a}"), "[limits]\ncall = \"5s\" # mine\n", &[]);
        check("", a, &format!("{a}{b}"), b, &[]);
        check(a, &format!("{a}{b}"), &format!("{head}{a}{b}"), &format!("{head}{a}"), &[]);
        // A value that was changed since is kept.
        let changed = a.replace("9s", "1s");
        check("", a, &format!("{head}{changed}"), &format!("{head}{changed}"), &["a.call_timeout"]);
        let more = format!("{a}tools = [\"mine\"]\n");
        check("", a, &more, "[[servers]]\nid = \"a\"\ntools = [\"mine\"]\n", &[]);
        let inline = "servers = [{ id = \"z\" }, { id = \"a\", call_timeout = \"9s\" }]\n";
        check(
            "servers = [{ id = \"z\" }]\n",
            inline,
            &format!("lang = \"en\"\n{inline}"),
            "lang = \"en\"\nservers = [{ id = \"z\" }]\n",
            &[],
        );
    }
}
