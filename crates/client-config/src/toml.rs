//! TOML: parsed into a tree, and edited with comments and order preserved.

use std::path::Path;

use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table};
use toolhub_core::lang::LocalizedText;

use crate::error::ConfigError;
use crate::source::{Entries, Obstacle, SourceFile, not_an_object};

fn parse_error(file: &Path, text: &str, message: &str, byte: usize) -> ConfigError {
    let what =
        LocalizedText::new(format!("not valid TOML: {message}"), format!("不是有效的 TOML：{message}"));
    ConfigError::at(file, text, byte, what)
}

pub(crate) fn parse(file: &Path, text: &str) -> Result<Value, ConfigError> {
    toml_edit::de::from_str(text)
        .map_err(|error| parse_error(file, text, error.message(), error.span().map_or(0, |span| span.start)))
}

pub(crate) fn insert(source: SourceFile<'_>, path: &[&str], entries: &Entries) -> Result<String, Obstacle> {
    let SourceFile { file, text } = source;
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        parse_error(file, text, error.message(), error.span().map_or(0, |span| span.start))
    })?;
    let mut item = document.as_item_mut();
    let mut inline = false;
    for (depth, key) in path.iter().enumerate() {
        let table = item.as_table_like_mut().ok_or_else(|| not_an_object(file, &path[..depth]))?;
        item = table.entry(key).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        inline |= item.is_inline_table();
    }
    let table = item.as_table_like_mut().ok_or_else(|| not_an_object(file, path))?;
    for (id, members) in entries {
        let entry =
            if inline { Item::Value(inline_of(members).into()) } else { Item::Table(table_of(members)) };
        table.insert(id, entry);
    }
    Ok(document.to_string())
}

/// Comments at the start of the file stay there; those above an entry further down move to the end of the text.
pub(crate) fn remove(source: SourceFile<'_>, path: &[&str], ids: &[&str]) -> Result<String, Obstacle> {
    let SourceFile { file, text } = source;
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        parse_error(file, text, error.message(), error.span().map_or(0, |span| span.start))
    })?;
    let (mut head, mut tail) = (String::new(), String::new());
    let mut item = document.as_item_mut();
    for (depth, key) in path.iter().enumerate() {
        let table = item.as_table_like_mut().ok_or_else(|| not_an_object(file, &path[..depth]))?;
        item = table.get_mut(key).ok_or_else(|| not_an_object(file, &path[..=depth]))?;
    }
    let table = item.as_table_like_mut().ok_or_else(|| not_an_object(file, path))?;
    for id in ids {
        let removed = table.remove(id);
        let above =
            removed.as_ref().and_then(Item::as_table).and_then(|table| table.decor().prefix()?.as_str());
        let Some(above) = above.filter(|above| above.contains('#')) else { continue };
        let lines = above.lines().filter(|line| line.trim_start().starts_with('#'));
        let comments = lines.fold(String::new(), |comments, line| comments + line + "\n");
        if text.starts_with(above) {
            head = comments;
        } else {
            tail += &comments;
        }
    }
    if !tail.is_empty() {
        let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
        let gap = if trailing.is_empty() { "\n" } else { "" };
        document.set_trailing(format!("{trailing}{gap}{tail}"));
    }
    Ok(format!("{head}{document}"))
}

fn table_of(members: &Map<String, Value>) -> Table {
    let mut table = Table::new();
    for (name, value) in members {
        match value {
            Value::Object(inner) => {
                table.insert(name, Item::Table(table_of(inner)));
            }
            other => {
                if let Some(value) = value_of(other) {
                    table.insert(name, Item::Value(value));
                }
            }
        }
    }
    table
}

fn inline_of(members: &Map<String, Value>) -> InlineTable {
    members.iter().filter_map(|(name, value)| Some((name.as_str(), value_of(value)?))).collect()
}

/// Converts a value; `None` for null, which TOML does not have.
fn value_of(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(list) => list.iter().filter_map(value_of).collect::<Array>().into(),
        Value::Object(members) => inline_of(members).into(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::only_these_changed;

    #[test]
    fn inserts_entries_into_every_table_form() {
        let new = json!({"command": "x", "args": ["-y"], "env": {"K": "v"}, "timeout": 1.5});
        let entries: Entries = vec![("b".to_owned(), new.as_object().cloned().unwrap())];
        let check = |text: &str, expect: &str| {
            let file = Path::new("config.toml");
            let after = insert(SourceFile { file, text }, &["mcp_servers"], &entries).unwrap();
            assert!(after.starts_with(text.trim_end_matches([' ', '}', '\n'])), "{after}");
            assert!(after.contains(expect), "{after}");
            let (before, after) = (parse(file, text).unwrap(), parse(file, &after).unwrap());
            assert!(only_these_changed(&before, &after, &["mcp_servers"], &entries), "{after}");
        };
        let table = "[mcp_servers.b]\ncommand = \"x\"\nargs = [\"-y\"]\ntimeout = 1.5\n\n[mcp_servers.b.env]\nK = \"v\"\n";
        check("", table);
        check("# mine\nmodel = \"m\"\n", table);
        check("[mcp_servers]\na = { command = \"y\" }\n", table);
        check("[mcp_servers]\na.command = \"y\" # dotted\n", table);
        check("[mcp_servers.a]\ncommand = \"y\"\n", table);
        check(
            "mcp_servers = { a = { command = \"y\" } }\n",
            "b = { command = \"x\", args = [\"-y\"], env = { K = \"v\" }",
        );
    }

    #[test]
    fn rejects_value_that_is_not_a_table() {
        let source = SourceFile { file: Path::new("config.toml"), text: "mcp_servers = 5\n" };
        let refused = insert(source, &["mcp_servers"], &vec![("b".to_owned(), Map::new())]);
        assert!(
            matches!(refused, Err(Obstacle::Config(error)) if error.to_string().contains("should be an object"))
        );
    }
}
