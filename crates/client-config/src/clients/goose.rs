//! goose: `extensions` in `config.yaml`. Extensions built into goose are not servers, and its secrets are not exported.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};
use toolhub_core::lang::LocalizedText;

use super::ClientProgram;
use crate::entry::{ClientServer, ReadResult};
use crate::entry_builder::{EntryBuilder, WriteResult, default_of};
use crate::environment::{ClientEnvironment, OperatingSystem};
use crate::fields::{Fields, missing_transport, unsupported_type};
use crate::format::Format;
use crate::login;
use crate::members::needs_variables;
use crate::reading::{ParsedEntry, ReadContext, VariableSyntax};
use crate::sample::{Evidence, Sample, SampleSyntax};
use crate::syntax::{Syntax, object_at};
use crate::transport::{HttpSpec, StdioSpec, TransportSpec};
use crate::variables::{Variable, format_variable, has_variables, map_bare, map_braced};

const TITLE: &str = "goose";

pub(super) struct Goose;

impl ClientProgram for Goose {
    fn name(&self) -> &'static str {
        "goose"
    }

    fn title(&self) -> &'static str {
        TITLE
    }

    fn format(&self) -> Format {
        Format { disables: true, syntax: Syntax::Yaml, path: &["extensions"], write }
    }

    fn variables(&self) -> &'static [&'static str] {
        &["GOOSE_PATH_ROOT"]
    }

    fn user_files(&self, environment: &ClientEnvironment) -> Vec<PathBuf> {
        let file = match (environment.named.get("GOOSE_PATH_ROOT"), environment.system) {
            (Some(root), _) => Some(root.join("config/config.yaml")),
            (None, OperatingSystem::Windows) => {
                environment.app_config_folder().map(|folder| folder.join("Block/goose/config/config.yaml"))
            }
            // goose uses the XDG folders on macOS too.
            (None, _) => environment
                .env_folder_or("XDG_CONFIG_HOME", ".config")
                .map(|folder| folder.join("goose/config.yaml")),
        };
        file.into_iter().collect()
    }

    fn recognize(&self, sample: &Sample<'_>) -> Option<Evidence> {
        let found = match &sample.content {
            SampleSyntax::Yaml => true,
            SampleSyntax::Unknown => sample.text.lines().any(|line| line.starts_with("extensions:")),
            _ => false,
        };
        found.then_some(Evidence::Fields)
    }

    fn read(&self, document: &Value, context: &ReadContext) -> Vec<ReadResult> {
        let servers = object_at(document, &["extensions"]).into_iter().flatten();
        servers.map(|(id, value)| context.entry(id, value, server)).collect()
    }
}

fn server(fields: &mut Fields<'_>) -> Result<ParsedEntry, LocalizedText> {
    let kind = fields.text("type")?.unwrap_or_default();
    let (mut envs, secrets) = (fields.pairs("envs")?, fields.string_list("env_keys")?);
    let mut read = match kind.as_str() {
        "stdio" => {
            let command = fields.text("cmd")?.ok_or_else(missing_transport)?;
            let missing = secrets.iter().filter(|name| !envs.iter().any(|(known, _)| known == *name));
            let missing: Vec<_> = missing.map(|name| (name.clone(), format_variable(name, None))).collect();
            envs.extend(missing);
            let args = fields.string_list("args")?;
            let spec = StdioSpec { command, args, env: envs, ..StdioSpec::default() };
            ParsedEntry::new(TransportSpec::Stdio(spec), VariableSyntax::Toolhub)
        }
        "sse" | "streamable_http" => {
            let url = fields.text("uri")?.ok_or_else(missing_transport)?;
            let headers = fields.pairs("headers")?;
            let expand_goose_variables = |text: &str| expand_goose_variables(text, &envs, &secrets);
            let headers =
                headers.iter().map(|(name, value)| (name.clone(), expand_goose_variables(value))).collect();
            let spec = HttpSpec { url: expand_goose_variables(&url), headers };
            let http = kind == "streamable_http";
            let transport = if http { TransportSpec::Http(spec) } else { TransportSpec::Sse(spec) };
            ParsedEntry::new(transport, VariableSyntax::Toolhub)
        }
        "builtin" | "platform" | "frontend" | "inline_python" => {
            return Err(LocalizedText::new("it is part of goose itself", "它是 goose 自带的"));
        }
        other => return Err(unsupported_type(other)),
    };
    read.notes.extend(secrets.iter().map(|name| {
        LocalizedText::new(
            format!("set the variable `{name}`: goose keeps it with its secrets"),
            format!("请设置环境变量 `{name}`：goose 将其存放在自己的密钥库中"),
        )
    }));
    read.enabled = fields.flag("enabled").unwrap_or(true);
    read.extras.call_timeout = fields.time("timeout", Duration::from_secs(1));
    let tools = fields.string_list("available_tools")?;
    read.extras.tools = (!tools.is_empty()).then_some(tools);
    fields.ignore(&["name", "display_name", "bundled"]);
    Ok(read)
}

/// goose expands variables in the URL and headers from `envs`, which are plain text, and from its secrets.
fn expand_goose_variables(text: &str, envs: &[(String, String)], secrets: &[String]) -> String {
    let known = |name: &str| {
        let plain = envs.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        plain.or_else(|| secrets.iter().any(|secret| secret == name).then(|| format_variable(name, None)))
    };
    let bare = map_bare(text, &mut |name| known(name));
    map_braced(&bare, &mut |inner| known(inner.trim()))
}

fn write(server: &ClientServer) -> WriteResult {
    let mut entry = EntryBuilder::default();
    entry.put("enabled", server.enabled);
    match &server.transport {
        TransportSpec::Stdio(spec) => write_program(&mut entry, &server.id, spec)?,
        TransportSpec::Http(spec) => write_address(&mut entry, &server.id, spec),
        TransportSpec::Sse(_) => {
            return Err(LocalizedText::new("goose no longer speaks `sse`", "goose 已不再支持 `sse`"));
        }
    }
    match server.extras.call_timeout {
        Some(time) if time.as_secs() > 0 => entry.put("timeout", time.as_secs()),
        time => entry.leave_out_if(time.is_some(), "call_timeout"),
    }
    if let Some(tools) = &server.extras.tools {
        entry.put("available_tools", tools.clone());
        // goose treats an empty list as all tools.
        entry.leave_out_if(tools.is_empty(), "tools");
    }
    entry.leave_out_if(server.extras.connect_timeout.is_some(), "connect_timeout");
    login::write(&mut entry, &server.extras.oauth, None, VariableSyntax::Unsupported);
    let key = key_of(&server.id);
    if key != server.id {
        entry.notes.push(LocalizedText::new(
            format!("in goose its tools have the prefix `{key}`"),
            format!("在 goose 中，其工具以 `{key}` 为前缀"),
        ));
    }
    Ok(entry)
}

/// The key that goose derives from a name.
fn key_of(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let word = |c: char| if fits(c) { c.to_ascii_lowercase() } else { '_' };
    name.chars().filter(|c| !c.is_whitespace()).map(word).collect()
}

fn write_program(entry: &mut EntryBuilder, id: &str, spec: &StdioSpec) -> Result<(), LocalizedText> {
    for (field, string_list) in [("command", std::slice::from_ref(&spec.command)), ("args", &spec.args)] {
        if string_list.iter().any(|text| has_variables(text)) {
            return Err(needs_variables(TITLE, field));
        }
    }
    entry.put("type", "stdio");
    entry.put("name", id);
    entry.put("description", "");
    entry.put("cmd", spec.command.as_str());
    entry.put("args", spec.args.clone());
    // `env_pass` needs no counterpart: programs started by goose inherit the whole environment.
    let (mut envs, mut secrets) = (Map::new(), Vec::new());
    for (name, value) in &spec.env {
        match Variable::whole(value) {
            Some(variable) if variable.name == name => {
                secrets.push(name.clone());
                entry.leave_out_if(variable.default.is_some(), &default_of(name));
            }
            _ if has_variables(value) => entry.leave_out(format!("env.{name}")),
            _ => drop(envs.insert(name.clone(), value.as_str().into())),
        }
    }
    entry.put("envs", envs);
    entry.put("env_keys", secrets);
    entry.leave_out_if(spec.cwd.is_some(), "cwd");
    Ok(())
}

fn write_address(entry: &mut EntryBuilder, id: &str, spec: &HttpSpec) {
    entry.put("type", "streamable_http");
    entry.put("name", id);
    entry.put("description", "");
    let mut names = Vec::new();
    let mut named = |entry: &mut EntryBuilder, text: &str| {
        map_braced(text, &mut |inner| {
            let Variable { name, default } = Variable::inner(inner)?;
            entry.leave_out_if(default.is_some(), &default_of(name));
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
            Some(format_variable(name, None))
        })
    };
    let url = named(entry, &spec.url);
    let headers: Map<String, Value> =
        spec.headers.iter().map(|(name, value)| (name.clone(), named(entry, value).into())).collect();
    entry.put("uri", url);
    entry.put("envs", Map::new());
    entry.put("env_keys", names);
    entry.put("headers", headers);
}
