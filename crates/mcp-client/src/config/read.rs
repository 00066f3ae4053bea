//! Reads `mcpServers` files. Every error has file, line and column.

use std::path::{Path, PathBuf};

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use toolhub_client_config::{ConfigError, HttpSpec, StdioSpec, TransportSpec};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Lang, Localize as _, ServerId};

use super::spec::ServerSpec;

/// The servers of a file, in its order; empty if the file does not exist.
pub fn read_servers(file: &Path) -> Result<Vec<ServerSpec>, ConfigError> {
    match std::fs::read_to_string(file) {
        Ok(text) => parse_servers(file, &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(ConfigError::io(file, &error)),
    }
}

/// The servers in a file's text, in its order. None of them has consent yet.
pub fn parse_servers(file: &Path, text: &str) -> Result<Vec<ServerSpec>, ConfigError> {
    // Skips a byte order mark, which JSON does not allow.
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default())
        .map_err(|error| ConfigError::jsonc(file, text, &error))?;
    let reader = Reader { file, text };
    let Some(root) = parsed.value else { return Ok(Vec::new()) };
    let root = reader.object(&root, &LocalizedText::new("the file", "文件"))?;
    let Some(servers) = root.get("mcpServers") else { return reader.reject_misplaced_servers(root) };
    let servers = reader.object(&servers.value, &LocalizedText::from("`mcpServers`"))?;
    let mut specs: Vec<ServerSpec> = Vec::with_capacity(servers.properties.len());
    for property in &servers.properties {
        let spec = reader.server(property)?;
        if specs.iter().any(|other| other.id == spec.id) {
            let id = &spec.id;
            let (en, zh) = (format!("server `{id}` is defined twice"), format!("服务器 `{id}` 出现了两次"));
            return Err(reader.error_at(property, en, zh));
        }
        specs.push(spec);
    }
    Ok(specs)
}

/// A server in a message.
fn server_text(id: &str) -> LocalizedText {
    LocalizedText::new(format!("server `{id}`"), format!("服务器 `{id}`"))
}

/// A member of the entry of a server in a message.
fn member_text(key: &str, id: &str) -> LocalizedText {
    LocalizedText::new(format!("`{key}` of server `{id}`"), format!("服务器 `{id}` 的 `{key}`"))
}

struct Reader<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Reader<'_> {
    fn error_at(&self, node: &impl Ranged, en: String, zh: String) -> ConfigError {
        ConfigError::at(self.file, self.text, node.start(), LocalizedText::new(en, zh))
    }

    /// A file without `mcpServers` has no servers. Reports an error if another member looks like a list of servers.
    fn reject_misplaced_servers(&self, root: &Object<'_>) -> Result<Vec<ServerSpec>, ConfigError> {
        let is_entry = |value: &Value<'_>| {
            value
                .as_object()
                .is_some_and(|entry| entry.get("command").is_some() || entry.get("url").is_some())
        };
        let holds_entries = |value: &Value<'_>| {
            value
                .as_object()
                .is_some_and(|object| object.properties.iter().any(|entry| is_entry(&entry.value)))
        };
        let misplaced = root
            .properties
            .iter()
            .find(|property| is_entry(&property.value) || holds_entries(&property.value));
        match misplaced {
            None => Ok(Vec::new()),
            Some(property) => Err(self.error_at(
                property,
                "servers belong under `mcpServers`: `{\"mcpServers\": {…}}`".to_owned(),
                "服务器应写在 `mcpServers` 之下：`{\"mcpServers\": {…}}`".to_owned(),
            )),
        }
    }

    fn object<'v, 't>(
        &self,
        value: &'v Value<'t>,
        what: &LocalizedText,
    ) -> Result<&'v Object<'t>, ConfigError> {
        value.as_object().ok_or_else(|| {
            let (en, zh) = (what.localize(Lang::En), what.localize(Lang::Zh));
            self.error_at(
                value,
                format!("{en} should be an object `{{…}}`"),
                format!("{zh} 应为对象 `{{…}}`"),
            )
        })
    }

    fn string(&self, value: &Value<'_>, what: &LocalizedText) -> Result<String, ConfigError> {
        let error_at = || {
            let (en, zh) = (what.localize(Lang::En), what.localize(Lang::Zh));
            self.error_at(value, format!("{en} should be a string"), format!("{zh} 应为字符串"))
        };
        let text = value.as_string_lit().ok_or_else(error_at)?.value.to_string();
        self.reject_nul(value, &text, what)?;
        Ok(text)
    }

    /// No argument, variable or path of a program can contain a NUL.
    fn reject_nul(&self, node: &impl Ranged, text: &str, what: &LocalizedText) -> Result<(), ConfigError> {
        if !text.contains('\0') {
            return Ok(());
        }
        let (en, zh) = (what.localize(Lang::En), what.localize(Lang::Zh));
        Err(self.error_at(
            node,
            format!("{en} contains a NUL character: remove it"),
            format!("{zh} 含有 NUL 字符：请删除"),
        ))
    }

    fn server(&self, property: &ObjectProp<'_>) -> Result<ServerSpec, ConfigError> {
        let id = property.name.as_str();
        if id.trim().is_empty() || ServerId::RESERVED.contains(&id) {
            let (en, zh) = (format!("`{id}` cannot be a server's name"), format!("`{id}` 不能用作服务器名"));
            return Err(self.error_at(property, en + ": choose another", zh + "：请换一个"));
        }
        let members = self.object(&property.value, &server_text(id))?;
        let transport = self.transport(id, property, members)?;
        let mut spec = ServerSpec::new(ServerId::new(id), transport, self.file.to_owned());
        // Other clients write `disabled` or `enabled`.
        let flag = |name: &str| {
            members.get(name).and_then(|property| property.value.as_boolean_lit()).map(|lit| lit.value)
        };
        spec.enabled = flag("enabled").unwrap_or(true) && !flag("disabled").unwrap_or(false);
        Ok(spec)
    }

    fn transport(
        &self,
        id: &str,
        property: &ObjectProp<'_>,
        members: &Object<'_>,
    ) -> Result<TransportSpec, ConfigError> {
        let text = |key: &str| {
            let member = members.get(key).map(|member| self.string(&member.value, &member_text(key, id)));
            member.transpose()
        };
        let kind = text("type")?;
        match (kind.as_deref(), text("command")?, text("url")?) {
            (None | Some("stdio"), Some(command), _) => Ok(TransportSpec::Stdio(StdioSpec {
                command,
                args: self.strings(members, "args", id)?,
                env: self.pairs(members, "env", id)?,
                cwd: text("cwd")?.map(PathBuf::from),
                ..StdioSpec::default()
            })),
            (None | Some("http" | "streamable-http" | "streamableHttp"), _, Some(url)) => {
                Ok(TransportSpec::Http(HttpSpec { url, headers: self.pairs(members, "headers", id)? }))
            }
            (Some("sse"), _, Some(url)) => {
                Ok(TransportSpec::Sse(HttpSpec { url, headers: self.pairs(members, "headers", id)? }))
            }
            (None | Some("stdio" | "http" | "streamable-http" | "streamableHttp" | "sse"), ..) => Err(self
                .error_at(
                    property,
                    format!("server `{id}` needs a `command` (stdio) or a `url` (http)"),
                    format!("服务器 `{id}` 需要 `command`（stdio）或 `url`（http）"),
                )),
            (Some(other), ..) => {
                let node = members.get("type").map_or(property, |member| member);
                Err(self.error_at(
                    node,
                    format!("server `{id}` has the unknown type `{other}`: use `stdio`, `http` or `sse`"),
                    format!("服务器 `{id}` 的类型 `{other}` 未知：请用 `stdio`、`http` 或 `sse`"),
                ))
            }
        }
    }

    fn strings(&self, members: &Object<'_>, key: &str, id: &str) -> Result<Vec<String>, ConfigError> {
        let Some(member) = members.get(key) else { return Ok(Vec::new()) };
        let what = member_text(key, id);
        let (en, zh) = (what.localize(Lang::En), what.localize(Lang::Zh));
        let Some(list) = member.value.as_array() else {
            let (en, zh) = (format!("{en} should be a list of strings"), format!("{zh} 应为字符串列表"));
            return Err(self.error_at(&member.value, en, zh));
        };
        let each = LocalizedText::new(format!("each of {en}"), format!("{zh} 的每一项"));
        list.elements.iter().map(|element| self.string(element, &each)).collect()
    }

    fn pairs(&self, members: &Object<'_>, key: &str, id: &str) -> Result<Vec<(String, String)>, ConfigError> {
        let Some(member) = members.get(key) else { return Ok(Vec::new()) };
        let object = self.object(&member.value, &member_text(key, id))?;
        let pair = |property: &ObjectProp<'_>| {
            let name = property.name.as_str().to_owned();
            self.reject_nul(property, &name, &member_text(key, id))?;
            // Accepts numbers and booleans too, which users write for ports and flags.
            let value = match &property.value {
                Value::NumberLit(number) => number.value.to_owned(),
                Value::BooleanLit(flag) => flag.value.to_string(),
                other => self.string(other, &member_text(&format!("{key}.{name}"), id))?,
            };
            Ok((name, value))
        };
        object.properties.iter().map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<ServerSpec>, String> {
        parse_servers(Path::new("mcp.json"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn reads_servers_in_order_and_accepts_comments() {
        let text = r#"{
            // first
            "other": 1,
            "mcpServers": {
                "z": {"command": "z", "args": ["-x"], "env": {"PORT": 80, "A": "b"}, "vendor": {}},
                "a": {"type": "streamable-http", "url": "http://localhost/mcp", "headers": {"X": "${T}"}, "disabled": true},
            },
        }"#;
        let servers = read(text).unwrap();
        let listed: Vec<_> =
            servers.iter().map(|spec| (spec.id.as_str(), spec.transport.name(), spec.enabled)).collect();
        assert_eq!(listed, [("z", "stdio", true), ("a", "http", false)]);
        let TransportSpec::Stdio(spec) = &servers[0].transport else { panic!() };
        assert_eq!(spec.env, [("PORT".to_owned(), "80".to_owned()), ("A".to_owned(), "b".to_owned())]);
    }

    #[test]
    fn errors_name_line_and_column() {
        let check = |text: &str, expect: &str| assert_eq!(read(text).unwrap_err(), expect);
        check(
            "{\n  \"mcpServers\": {,}\n}",
            "`mcp.json`, line 2, column 18: not valid JSON: Unexpected token in object",
        );
        check(
            "{\"mcpServers\": []}",
            "`mcp.json`, line 1, column 16: `mcpServers` should be an object `{…}`",
        );
        check(
            "{\"mcpServers\": {\n \"a\": {\"command\": 5}}}",
            "`mcp.json`, line 2, column 19: `command` of server `a` should be a string",
        );
        check(
            "{\"mcpServers\": {\"中文\": 1, \"a\": {}}}",
            "`mcp.json`, line 1, column 23: server `中文` should be an object `{…}`",
        );
        check(
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\"b\\u0000\"]}}}",
            "`mcp.json`, line 1, column 48: each of `args` of server `a` contains a NUL character: remove it",
        );
        check(
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"env\": {\"B\\u0000\": 1}}}}",
            "`mcp.json`, line 1, column 47: `env` of server `a` contains a NUL character: remove it",
        );
        check(
            "{\"mcpServers\": {\"a\": {}}}",
            "`mcp.json`, line 1, column 17: server `a` needs a `command` (stdio) or a `url` (http)",
        );
        check(
            "{\"servers\": {\"a\": {\"command\": \"x\"}}}",
            "`mcp.json`, line 1, column 2: servers belong under `mcpServers`: `{\"mcpServers\": {…}}`",
        );
        check(
            "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"a\": {\"url\": \"y\"}}}",
            "`mcp.json`, line 1, column 40: server `a` is defined twice",
        );
        check(
            "{\"mcpServers\": {\"native\": {\"command\": \"x\"}}}",
            "`mcp.json`, line 1, column 17: `native` cannot be a server's name: choose another",
        );
    }
}
