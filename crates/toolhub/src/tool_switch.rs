//! Switches single tools of servers off and on: `disabled_tools` of `[[servers]]` in `toolhub.toml`. Nothing else in the file
//! changes.

use std::path::Path;

use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, TableLike, Value, value};
use toolhub_client_config::{ConfigError, LockedFile};
use toolhub_core::lang::LocalizedText;

use crate::settings::Settings;

const LIST: &str = "disabled_tools";

/// Switches a tool of a server on or off. Returns whether the file has changed. A result that cannot be used is not written.
pub fn switch_tool(config: &Path, server: &str, tool: &str, enabled: bool) -> Result<bool, ConfigError> {
    let file = LockedFile::open(config)?;
    // An invalid file is reported with its position, and not changed.
    Settings::parse(config, file.text())?;
    let inline = || {
        ConfigError::at(
            config,
            file.text(),
            0,
            LocalizedText::new(
                "`servers` is not written as `[[servers]]` tables: write it so first",
                "`servers` 没有写成 `[[servers]]` 的形式：请先修改",
            ),
        )
    };
    let mut document: DocumentMut = file.text().parse().map_err(|_| inline())?;
    let servers = document.entry("servers").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    let tables = servers.as_array_of_tables_mut().ok_or_else(inline)?;
    let names = |table: &Table| table.get("id").and_then(Item::as_str) == Some(server);
    let position = tables.iter().position(names);
    let table = match position.and_then(|index| tables.get_mut(index)) {
        Some(table) => table,
        None if enabled => return Ok(false),
        None => {
            let mut table = Table::new();
            table["id"] = value(server);
            tables.push(table);
            let last = tables.len() - 1;
            tables.get_mut(last).ok_or_else(inline)?
        }
    };
    change(table, tool, enabled);
    let text = document.to_string();
    Settings::parse(config, &text)?;
    file.write(&text)
}

fn change(table: &mut dyn TableLike, tool: &str, enabled: bool) {
    let names = |value: &Value| value.as_str() == Some(tool);
    let list = table.get_mut(LIST).and_then(Item::as_array_mut);
    match (list, enabled) {
        (Some(list), true) => list.retain(|value| !names(value)),
        (Some(list), false) if list.iter().any(names) => {}
        (Some(list), false) => list.push(tool),
        (None, true) => {}
        (None, false) => {
            table.insert(LIST, value(std::iter::once(tool).collect::<Array>()));
        }
    }
    if table.get(LIST).and_then(Item::as_array).is_some_and(Array::is_empty) {
        table.remove(LIST);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn switches_change_their_list_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("toolhub.toml");
        let before =
            "# Kept.\n[limits]\ncall = \"5s\" # kept, too\n\n[[servers]]\nid = \"a\"\npin = \"block\"\n";
        fs::write(&file, before).unwrap();
        let text = || fs::read_to_string(&file).unwrap();
        assert!(!switch_tool(&file, "a", "x", true).unwrap());
        assert!(!switch_tool(&file, "b", "x", true).unwrap());
        assert_eq!(text(), before);
        assert!(switch_tool(&file, "a", "x", false).unwrap());
        assert!(!switch_tool(&file, "a", "x", false).unwrap());
        assert!(switch_tool(&file, "a", "y", false).unwrap());
        assert!(switch_tool(&file, "b", "\"z\n", false).unwrap());
        let settings = Settings::parse(&file, &text()).unwrap();
        let lists: Vec<&[String]> =
            settings.servers.iter().map(|server| server.disabled_tools.as_slice()).collect();
        assert_eq!(lists, [&["x".to_owned(), "y".to_owned()][..], &["\"z\n".to_owned()]]);
        assert!(switch_tool(&file, "a", "x", true).unwrap());
        assert!(switch_tool(&file, "a", "y", true).unwrap());
        assert!(text().starts_with(before), "{}", text());
    }

    #[test]
    fn unusable_files_are_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("toolhub.toml");
        for text in ["a = ", "servers = [{ id = \"a\" }]\n", "[limits]\ncall = \"soon\"\n"] {
            fs::write(&file, text).unwrap();
            assert!(switch_tool(&file, "a", "x", false).is_err(), "{text}");
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
    }
}
