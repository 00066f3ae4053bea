//! Writes settings of imported servers to `[[servers]]` of `toolhub.toml`.

use std::path::Path;
use std::time::Duration;

use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};
use toolhub_client_config::{ClientServer, ConfigError, TransportSpec};
use toolhub_core::OAuthSpec;
use toolhub_core::lang::LocalizedText;

/// The settings of one server, and which of them were written.
pub(crate) struct ExtraSettings {
    pub(crate) id: String,
    fields: Vec<(&'static str, Value)>,
    /// The written settings.
    pub(crate) settings: Vec<String>,
    /// Settings that were not written because the file has other values.
    pub(crate) left_out: Vec<String>,
}

impl ExtraSettings {
    /// The settings of a server that `mcp.json` cannot express; `None` if there are none.
    pub(crate) fn of(server: &ClientServer) -> Option<Self> {
        let extras = &server.extras;
        let list = |texts: &[String]| Value::from(texts.iter().map(String::as_str).collect::<Array>());
        let mut fields = Vec::new();
        let mut add =
            |key: &'static str, value: Option<Value>| fields.extend(value.map(|value| (key, value)));
        add("connect_timeout", extras.connect_timeout.map(span));
        add("call_timeout", extras.call_timeout.map(span));
        add("tools", extras.tools.as_deref().map(list));
        if let TransportSpec::Stdio(spec) = &server.transport {
            add("env_pass", (!spec.env_pass.is_empty()).then(|| list(&spec.env_pass)));
        }
        add("oauth", login(&extras.oauth));
        (!fields.is_empty()).then(|| Self {
            id: server.id.clone(),
            fields,
            settings: Vec::new(),
            left_out: Vec::new(),
        })
    }

    fn put(&mut self, table: &mut dyn TableLike, replace: bool) {
        for (key, value) in &self.fields {
            if table.contains_key(key) && !replace {
                self.left_out.push((*key).to_owned());
            } else {
                table.insert(key, Item::Value(value.clone()));
                self.settings.push((*key).to_owned());
            }
        }
    }
}

fn span(time: Duration) -> Value {
    match time.subsec_nanos() {
        0 => format!("{}s", time.as_secs()).into(),
        _ => format!("{}ms", time.as_millis().max(1)).into(),
    }
}

fn login(login: &OAuthSpec) -> Option<Value> {
    let mut table = InlineTable::new();
    if let Some(id) = &login.client_id {
        table.insert("client_id", id.into());
    }
    if let Some(secret) = &login.client_secret {
        table.insert("client_secret", secret.expose().into());
    }
    if !login.scopes.is_empty() {
        table.insert("scopes", login.scopes.iter().map(String::as_str).collect::<Array>().into());
    }
    if let Some(port) = login.redirect_port {
        table.insert("redirect_port", i64::from(port).into());
    }
    (!table.is_empty()).then(|| table.into())
}

/// Adds these settings to the text of `toolhub.toml`. Existing values are kept unless `replace` is set.
pub(crate) fn written(
    file: &Path,
    text: &str,
    extras: &mut [ExtraSettings],
    replace: bool,
) -> Result<String, ConfigError> {
    if extras.is_empty() {
        return Ok(text.to_owned());
    }
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        let what = error.message().to_owned();
        let byte = error.span().map_or(0, |span| span.start);
        ConfigError::at(file, text, byte, LocalizedText::new(what.clone(), what))
    })?;
    let servers = document.entry("servers").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    for extra in extras {
        match servers {
            Item::ArrayOfTables(tables) => {
                let known = tables.iter_mut().find(|table| names(*table, &extra.id));
                match known {
                    Some(table) => extra.put(table, replace),
                    None => {
                        let mut table = Table::new();
                        table.insert("id", toml_edit::value(extra.id.as_str()));
                        extra.put(&mut table, replace);
                        tables.push(table);
                    }
                }
            }
            // `servers = [{ … }]` is equivalent.
            Item::Value(Value::Array(list)) => {
                let is_it =
                    |value: &Value| value.as_inline_table().is_some_and(|table| names(table, &extra.id));
                let known = list.iter().position(is_it);
                match known.and_then(|at| list.get_mut(at)).and_then(Value::as_inline_table_mut) {
                    Some(table) => extra.put(table, replace),
                    None => {
                        let mut table = InlineTable::new();
                        table.insert("id", extra.id.as_str().into());
                        extra.put(&mut table, replace);
                        list.push(table);
                    }
                }
            }
            _ => extra.left_out = extra.fields.iter().map(|(key, _)| (*key).to_owned()).collect(),
        }
    }
    Ok(document.to_string())
}

fn names(table: &dyn TableLike, id: &str) -> bool {
    table.get("id").and_then(Item::as_str) == Some(id)
}

#[cfg(test)]
mod tests {
    use toolhub::settings::Settings;
    use toolhub_client_config::{Extras, StdioSpec};

    use super::*;

    fn server(id: &str) -> ClientServer {
        let spec = StdioSpec { env_pass: vec!["TOKEN".to_owned()], ..StdioSpec::default() };
        ClientServer {
            id: id.to_owned(),
            transport: TransportSpec::Stdio(spec),
            enabled: true,
            extras: Extras {
                call_timeout: Some(Duration::from_millis(1500)),
                tools: Some(vec!["read".to_owned()]),
                ..Extras::default()
            },
            left_out: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn adds_settings_and_keeps_existing_ones() {
        let check = |text: &str, replace: bool, expect: &str, left_out: &[&str]| {
            let mut extras = [ExtraSettings::of(&server("甲")).unwrap()];
            let new = written(Path::new("t"), text, &mut extras, replace).unwrap();
            assert_eq!(new, expect);
            assert_eq!(extras[0].left_out, left_out, "{text}");
            let settings: Settings = toml_edit::de::from_str(&new).unwrap();
            assert_eq!(settings.servers.last().map(|extras| extras.id.as_str()), Some("甲"));
        };
        let entry = "[[servers]]\nid = \"甲\"\ncall_timeout = \"1500ms\"\ntools = [\"read\"]\nenv_pass = [\"TOKEN\"]\n";
        check("", false, entry, &[]);
        let before = "# mine\n[limits]\ncall = \"5s\" # short\n\n[[servers]]\nid = \"a\" # first\n";
        check(before, false, &format!("{before}\n{entry}"), &[]);
        let known = "[[servers]]\nid = \"甲\"\ncall_timeout = \"9s\" # mine\n";
        let rest = "tools = [\"read\"]\nenv_pass = [\"TOKEN\"]\n";
        check(known, false, &format!("{known}{rest}"), &["call_timeout"]);
        let inline = "servers = [{ id = \"a\" }]\n";
        let also = "servers = [{ id = \"a\" }, { id = \"甲\", call_timeout = \"1500ms\", tools = [\"read\"], env_pass = [\"TOKEN\"] }]\n";
        check(inline, false, also, &[]);
        let replaced = "[[servers]]\nid = \"甲\"\ncall_timeout = \"1500ms\"";
        let mut extras = [ExtraSettings::of(&server("甲")).unwrap()];
        assert!(written(Path::new("t"), known, &mut extras, true).unwrap().starts_with(replaced));
    }
}
