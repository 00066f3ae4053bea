//! Edits `mcpServers` files: adds, removes or switches one server, and leaves every other byte unchanged.

use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use toolhub_client_config::{ConfigError, TransportSpec, lock_file, write_atomically};
use toolhub_core::lang::LocalizedText;

use super::read::read_servers;

/// The entry to be written.
#[derive(Debug, Clone)]
pub struct ServerEntry {
    /// The server id.
    pub id: String,
    /// The transport.
    pub transport: TransportSpec,
}

/// Adds a server, or replaces the one with that id if `replace` is set.
pub fn add_server(file: &Path, entry: &ServerEntry, replace: bool) -> Result<(), ConfigError> {
    let _lock = lock_file(file)?;
    let text = read_or_new(file)?;
    let root = parse(file, &text)?;
    let servers = servers_of(file, &root)?;
    let value = to_cst_value(&entry.transport);
    match servers.get(&entry.id) {
        Some(existing) if replace => existing.set_value(value),
        Some(_) => {
            let id = &entry.id;
            return Err(ConfigError::whole(
                file,
                LocalizedText::new(
                    format!("server `{id}` exists already: choose another name, or add `--replace`"),
                    format!("服务器 `{id}` 已存在：请换个名字，或加 `--replace`"),
                ),
            ));
        }
        None => {
            servers.append(&entry.id, value);
            servers.ensure_multiline();
        }
    }
    let new = with_final_newline(root.to_string());
    check(file, &new)?;
    write_atomically(file, &new)
}

/// Removes a server. Returns whether it existed.
pub fn remove_server(file: &Path, id: &str) -> Result<bool, ConfigError> {
    let _lock = lock_file(file)?;
    if !read_servers(file)?.iter().any(|spec| spec.id.as_str() == id) {
        return Ok(false);
    }
    let text = read_or_new(file)?;
    let root = parse(file, &text)?;
    let Some(property) = servers_of(file, &root)?.get(id) else { return Ok(false) };
    property.remove();
    write_atomically(file, &root.to_string())?;
    Ok(true)
}

/// Enables or disables a server. Returns whether it exists.
pub fn set_enabled(file: &Path, id: &str, on: bool) -> Result<bool, ConfigError> {
    let _lock = lock_file(file)?;
    let text = read_or_new(file)?;
    let root = parse(file, &text)?;
    let entry = servers_of(file, &root)?.get(id).and_then(|property| property.object_value());
    let Some(entry) = entry else { return Ok(false) };
    // Most clients write `disabled`; an existing `enabled` is updated too.
    if let Some(enabled) = entry.get("enabled") {
        enabled.set_value(CstInputValue::Bool(on));
    }
    match (entry.get("disabled"), on) {
        (Some(disabled), true) => disabled.remove(),
        (Some(disabled), false) => disabled.set_value(CstInputValue::Bool(true)),
        (None, true) => {}
        (None, false) => drop(entry.append("disabled", CstInputValue::Bool(true))),
    }
    write_atomically(file, &root.to_string())?;
    Ok(true)
}

fn read_or_new(file: &Path) -> Result<String, ConfigError> {
    match std::fs::read_to_string(file) {
        Ok(text) if text.trim().is_empty() => Ok("{}\n".to_owned()),
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok("{}\n".to_owned()),
        Err(error) => Err(ConfigError::io(file, &error)),
    }
}

fn parse(file: &Path, text: &str) -> Result<CstRootNode, ConfigError> {
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| ConfigError::jsonc(file, text, &error))
}

fn servers_of(file: &Path, root: &CstRootNode) -> Result<CstObject, ConfigError> {
    let not_an_object = |what: &str| {
        ConfigError::whole(
            file,
            LocalizedText::new(format!("{what} should be an object"), format!("{what} 应为对象")),
        )
    };
    let object = root.object_value_or_create().ok_or_else(|| not_an_object("the file"))?;
    let servers = object.object_value_or_create("mcpServers").ok_or_else(|| not_an_object("`mcpServers`"))?;
    object.ensure_multiline();
    Ok(servers)
}

fn with_final_newline(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Verifies that the new text can be parsed, so that no broken file is written.
fn check(file: &Path, text: &str) -> Result<(), ConfigError> {
    parse(file, text).map(drop)
}

fn to_cst_value(transport: &TransportSpec) -> CstInputValue {
    let text = |value: &str| CstInputValue::String(value.to_owned());
    let pairs = |pairs: &[(String, String)]| {
        CstInputValue::Object(pairs.iter().map(|(name, value)| (name.clone(), text(value))).collect())
    };
    let mut members: Vec<(String, CstInputValue)> = Vec::new();
    match transport {
        TransportSpec::Stdio(spec) => {
            members.push(("command".to_owned(), text(&spec.command)));
            if !spec.args.is_empty() {
                let args = spec.args.iter().map(|arg| text(arg)).collect();
                members.push(("args".to_owned(), CstInputValue::Array(args)));
            }
            if !spec.env.is_empty() {
                members.push(("env".to_owned(), pairs(&spec.env)));
            }
            if let Some(folder) = &spec.cwd {
                members.push(("cwd".to_owned(), text(&folder.to_string_lossy())));
            }
        }
        TransportSpec::Http(spec) | TransportSpec::Sse(spec) => {
            members.push(("type".to_owned(), text(transport.name())));
            members.push(("url".to_owned(), text(&spec.url)));
            if !spec.headers.is_empty() {
                members.push(("headers".to_owned(), pairs(&spec.headers)));
            }
        }
    }
    CstInputValue::Object(members)
}

#[cfg(test)]
mod tests {
    use toolhub_client_config::{HttpSpec, StdioSpec};

    use super::*;

    fn stdio(id: &str) -> ServerEntry {
        let spec =
            StdioSpec { command: "run".to_owned(), args: vec!["-x".to_owned()], ..StdioSpec::default() };
        ServerEntry { id: id.to_owned(), transport: TransportSpec::Stdio(spec) }
    }

    #[test]
    fn preserves_comments_and_unknown_keys() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        let text = "{\n  // keep me\n  \"theme\": 1.0,\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\", \"vendor\": 12345678901234567890123}, // and me\n    /* b */ \"b\": {\"url\": \"u\"}\n  }\n}\n";
        std::fs::write(&file, text).unwrap();
        add_server(&file, &stdio("c"), false).unwrap();
        let after = std::fs::read_to_string(&file).unwrap();
        let preserved = [
            "// keep me",
            "\"theme\": 1.0",
            "12345678901234567890123}, // and me",
            "/* b */ \"b\": {\"url\": \"u\"}",
        ];
        assert!(preserved.iter().all(|part| after.contains(part)), "{after}");
        assert_eq!(read_servers(&file).unwrap().len(), 3);
        assert!(remove_server(&file, "c").unwrap());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        assert!(!remove_server(&file, "c").unwrap());
    }

    #[test]
    fn disables_and_enables_a_server() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        let text =
            "{\n  \"mcpServers\": {\n    // keep\n    \"a\": {\n      \"command\": \"x\"\n    }\n  }\n}\n";
        std::fs::write(&file, text).unwrap();
        assert!(set_enabled(&file, "a", false).unwrap());
        assert!(!read_servers(&file).unwrap()[0].enabled);
        assert!(set_enabled(&file, "a", true).unwrap());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        assert!(!set_enabled(&file, "b", true).unwrap());
    }

    #[test]
    fn writes_a_readable_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sub/mcp.json");
        add_server(&file, &stdio("a"), false).unwrap();
        let http = HttpSpec {
            url: "http://localhost/mcp".to_owned(),
            headers: vec![("K".to_owned(), "v".to_owned())],
        };
        add_server(
            &file,
            &ServerEntry { id: "中文".to_owned(), transport: TransportSpec::Http(http) },
            false,
        )
        .unwrap();
        insta::assert_snapshot!(std::fs::read_to_string(&file).unwrap());
    }

    #[test]
    fn refuses_to_overwrite_broken_files_and_existing_servers() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        std::fs::write(&file, "{ broken").unwrap();
        assert!(add_server(&file, &stdio("a"), false).is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{ broken");
        std::fs::write(&file, "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}").unwrap();
        assert!(add_server(&file, &stdio("a"), false).unwrap_err().to_string().contains("--replace"));
        add_server(&file, &stdio("a"), true).unwrap();
        assert!(std::fs::read_to_string(&file).unwrap().contains("\"run\""));
    }
}
