//! Codex: `[mcp_servers.NAME]` in `config.toml`. It expands no variables, but has fields that name environment variables.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use toolhub_core::lang::LocalizedText;

use super::ClientProgram;
use crate::entry::{ClientServer, ReadResult};
use crate::entry_builder::{EntryBuilder, WriteResult, default_of};
use crate::environment::ClientEnvironment;
use crate::fields::{Fields, missing_transport};
use crate::format::Format;
use crate::login::{self, OAuthFieldNames, ScopeFormat};
use crate::members::needs_variables;
use crate::reading::{ParsedEntry, ReadContext, VariableSyntax};
use crate::sample::{Evidence, Sample, SampleSyntax};
use crate::syntax::{Syntax, object_at};
use crate::transport::{HttpSpec, StdioSpec, TransportSpec};
use crate::variables::{Variable, format_variable, has_variables, is_variable_name};

const TITLE: &str = "Codex";

const LOGIN: OAuthFieldNames = OAuthFieldNames {
    holder: "oauth",
    client_id: "client_id",
    client_secret: None,
    port: Some("callback_port"),
    scopes: ScopeFormat::Beside,
};

pub(super) struct Codex;

impl ClientProgram for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn title(&self) -> &'static str {
        TITLE
    }

    fn format(&self) -> Format {
        Format { disables: true, syntax: Syntax::Toml, path: &["mcp_servers"], write }
    }

    fn variables(&self) -> &'static [&'static str] {
        &["CODEX_HOME"]
    }

    fn project_file(&self) -> Option<&'static str> {
        Some(".codex/config.toml")
    }

    fn user_files(&self, environment: &ClientEnvironment) -> Vec<PathBuf> {
        let folder = environment.env_folder_or("CODEX_HOME", ".codex");
        folder.map(|folder| folder.join("config.toml")).into_iter().collect()
    }

    fn recognize(&self, sample: &Sample<'_>) -> Option<Evidence> {
        let found = match &sample.content {
            SampleSyntax::Toml => true,
            SampleSyntax::Unknown => sample.text.contains("[mcp_servers"),
            _ => false,
        };
        found.then_some(Evidence::OwnLayout)
    }

    fn read(&self, document: &Value, context: &ReadContext) -> Vec<ReadResult> {
        let servers = object_at(document, &["mcp_servers"]).into_iter().flatten();
        servers.map(|(id, value)| context.entry(id, value, |fields| server(fields, value))).collect()
    }
}

fn server(fields: &mut Fields<'_>, value: &Value) -> Result<ParsedEntry, LocalizedText> {
    let transport = match (fields.text("command")?, fields.text("url")?) {
        (Some(command), _) => TransportSpec::Stdio(StdioSpec {
            command,
            args: fields.string_list("args")?,
            env: fields.pairs("env")?,
            cwd: fields.text("cwd")?.map(Into::into),
            env_pass: inherited_variables(fields, value),
            ..StdioSpec::default()
        }),
        (None, Some(url)) => TransportSpec::Http(HttpSpec { url, headers: headers(fields)? }),
        (None, None) => return Err(missing_transport()),
    };
    let http = matches!(transport, TransportSpec::Http(_));
    let mut read =
        ParsedEntry::new(transport, if http { VariableSyntax::Toolhub } else { VariableSyntax::Unsupported });
    let (second, millisecond) = (Duration::from_secs(1), Duration::from_millis(1));
    read.enabled = fields.flag("enabled").unwrap_or(true);
    let older = fields.time("startup_timeout_ms", millisecond);
    read.extras.connect_timeout = fields.time("startup_timeout_sec", second).or(older);
    read.extras.call_timeout = fields.time("tool_timeout_sec", second);
    let tools =
        value.get("enabled_tools").is_some().then(|| fields.string_list("enabled_tools")).transpose()?;
    read.extras.tools = tools;
    if http {
        read.extras.oauth = login::read(fields, &LOGIN);
    }
    fields.ignore(&["name"]);
    Ok(read)
}

/// Reads `env_vars`: names, or objects with name and source.
fn inherited_variables(fields: &mut Fields<'_>, value: &Value) -> Vec<String> {
    fields.ignore(&["env_vars"]);
    let mut names = Vec::new();
    for variable in value.get("env_vars").and_then(Value::as_array).into_iter().flatten() {
        let name = variable.as_str().or_else(|| variable.get("name").and_then(Value::as_str));
        let remote = variable.get("source").and_then(Value::as_str) == Some("remote");
        match name {
            Some(name) if !remote => names.push(name.to_owned()),
            other => fields.leave_out(format!("env_vars.{}", other.unwrap_or_default())),
        }
    }
    names
}

fn headers(fields: &mut Fields<'_>) -> Result<Vec<(String, String)>, LocalizedText> {
    let mut headers = fields.pairs("http_headers")?;
    for (header, variable) in fields.pairs("env_http_headers")? {
        if is_variable_name(&variable) {
            headers.push((header, format_variable(&variable, None)));
        } else {
            fields.leave_out(format!("env_http_headers.{header}"));
        }
    }
    if let Some(variable) = fields.text("bearer_token_env_var")? {
        if is_variable_name(&variable) {
            headers
                .push(("Authorization".to_owned(), format!("Bearer {}", format_variable(&variable, None))));
        } else {
            fields.leave_out("bearer_token_env_var");
        }
    }
    Ok(headers)
}

fn write(server: &ClientServer) -> WriteResult {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if server.id.is_empty() || !server.id.chars().all(fits) {
        return Err(LocalizedText::new(
            "Codex takes only names of the letters A to Z, digits, `-` and `_`",
            "Codex 只接受由英文字母、数字、`-` 和 `_` 组成的名称",
        ));
    }
    let mut entry = EntryBuilder::default();
    match &server.transport {
        TransportSpec::Stdio(spec) => write_program(&mut entry, spec)?,
        TransportSpec::Http(spec) => {
            write_address(&mut entry, spec)?;
            login::write(&mut entry, &server.extras.oauth, Some(&LOGIN), VariableSyntax::Unsupported);
        }
        TransportSpec::Sse(_) => {
            return Err(LocalizedText::new("Codex does not speak `sse`", "Codex 不支持 `sse`"));
        }
    }
    if !server.enabled {
        entry.put("enabled", false);
    }
    let seconds = |time: Duration| match time.subsec_nanos() {
        0 => Value::from(time.as_secs()),
        _ => Value::from(time.as_secs_f64()),
    };
    if let Some(time) = server.extras.connect_timeout {
        entry.put("startup_timeout_sec", seconds(time));
    }
    if let Some(time) = server.extras.call_timeout {
        entry.put("tool_timeout_sec", seconds(time));
    }
    if let Some(tools) = &server.extras.tools {
        entry.put("enabled_tools", tools.clone());
    }
    Ok(entry)
}

fn write_program(entry: &mut EntryBuilder, spec: &StdioSpec) -> Result<(), LocalizedText> {
    let folder = spec.cwd.as_ref().map(|folder| folder.to_string_lossy().into_owned());
    let fixed =
        [("command", std::slice::from_ref(&spec.command)), ("args", &spec.args), ("cwd", folder.as_slice())];
    for (field, string_list) in fixed {
        if string_list.iter().any(|text| has_variables(text)) {
            return Err(needs_variables(TITLE, field));
        }
    }
    entry.put("command", spec.command.as_str());
    entry.put_list("args", &spec.args);
    let (mut env, mut inherited_variables) = (Vec::new(), spec.env_pass.clone());
    for (name, value) in &spec.env {
        match Variable::whole(value) {
            Some(variable) if variable.name == name => {
                inherited_variables.push(name.clone());
                entry.leave_out_if(variable.default.is_some(), &default_of(name));
            }
            _ if has_variables(value) => entry.leave_out(format!("env.{name}")),
            _ => env.push((name.clone(), value.clone())),
        }
    }
    entry.put_list("env_vars", &inherited_variables);
    if let Some(folder) = folder {
        entry.put("cwd", folder);
    }
    entry.put_pairs("env", env);
    Ok(())
}

fn write_address(entry: &mut EntryBuilder, spec: &HttpSpec) -> Result<(), LocalizedText> {
    if has_variables(&spec.url) {
        return Err(needs_variables(TITLE, "url"));
    }
    entry.put("url", spec.url.as_str());
    let (mut plain, mut named) = (Vec::new(), Vec::new());
    for (header, value) in &spec.headers {
        let token = value.strip_prefix("Bearer ").filter(|_| header.eq_ignore_ascii_case("authorization"));
        let (token, whole) = (token.and_then(Variable::whole), Variable::whole(value));
        if let Some(variable) = token.or(whole) {
            entry.leave_out_if(variable.default.is_some(), &default_of(variable.name));
        }
        match (token, whole) {
            (Some(variable), _) => entry.put("bearer_token_env_var", variable.name),
            (_, Some(variable)) => named.push((header.clone(), variable.name.to_owned())),
            _ if has_variables(value) => entry.leave_out(format!("headers.{header}")),
            _ => plain.push((header.clone(), value.clone())),
        }
    }
    entry.put_pairs("http_headers", plain);
    entry.put_pairs("env_http_headers", named);
    Ok(())
}
