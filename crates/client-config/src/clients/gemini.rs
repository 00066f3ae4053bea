//! Gemini CLI: `mcpServers` in `settings.json`, with lists of allowed and excluded servers.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use toolhub_core::lang::LocalizedText;

use super::ClientProgram;
use crate::entry::{ClientServer, ReadResult};
use crate::entry_builder::WriteResult;
use crate::environment::ClientEnvironment;
use crate::fields::{Fields, unsupported_type};
use crate::format::Format;
use crate::login::{self, OAuthFieldNames, ScopeFormat};
use crate::members::{self, WriteRules};
use crate::reading::{ParsedEntry, ReadContext, VariableSyntax};
use crate::sample::{Evidence, Sample, SampleSyntax};
use crate::syntax::{Syntax, object_at};
use crate::transport::{HttpSpec, TransportSpec};

const LOGIN: OAuthFieldNames = OAuthFieldNames {
    holder: "oauth",
    client_id: "clientId",
    client_secret: Some("clientSecret"),
    port: None,
    scopes: ScopeFormat::Listed,
};

/// Fields of an entry that no other client has.
const OWN_FIELDS: [&str; 4] = ["httpUrl", "trust", "includeTools", "excludeTools"];

pub(super) struct Gemini;

impl ClientProgram for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn title(&self) -> &'static str {
        "Gemini CLI"
    }

    fn format(&self) -> Format {
        Format { disables: false, syntax: Syntax::Json, path: &["mcpServers"], write }
    }

    fn variables(&self) -> &'static [&'static str] {
        &["GEMINI_CLI_HOME"]
    }

    fn project_file(&self) -> Option<&'static str> {
        Some(".gemini/settings.json")
    }

    fn user_files(&self, environment: &ClientEnvironment) -> Vec<PathBuf> {
        let folder = environment.env_folder_or("GEMINI_CLI_HOME", "");
        folder.map(|folder| folder.join(".gemini/settings.json")).into_iter().collect()
    }

    fn recognize(&self, sample: &Sample<'_>) -> Option<Evidence> {
        let SampleSyntax::Json(document) = &sample.content else { return None };
        let mut servers = object_at(document, &["mcpServers"])?.values().filter_map(Value::as_object);
        let own = servers.any(|server| OWN_FIELDS.iter().any(|key| server.contains_key(*key)));
        let lists = document.get("mcp").and_then(|lists| lists.get("allowed").or(lists.get("excluded")));
        (own || lists.is_some()).then_some(Evidence::Fields)
    }

    fn read(&self, document: &Value, context: &ReadContext) -> Vec<ReadResult> {
        read(document, context)
    }
}

fn read(document: &Value, context: &ReadContext) -> Vec<ReadResult> {
    let names = |key: &str| document.get("mcp").and_then(|mcp| mcp.get(key)).and_then(Value::as_array);
    let (allowed, excluded) = (names("allowed"), names("excluded"));
    // Gemini CLI compares these names without regard to case.
    let lists = |list: &Vec<Value>, id: &str| {
        let same =
            |name: &Value| name.as_str().is_some_and(|name| name.trim().to_lowercase() == id.to_lowercase());
        list.iter().any(same)
    };
    let entry = |(id, value): (&String, &Value)| {
        let mut found = context.entry(id, value, server)?;
        found.enabled &= allowed.is_none_or(|list| list.is_empty() || lists(list, id));
        found.enabled &= !excluded.is_some_and(|list| lists(list, id));
        Ok(found)
    };
    object_at(document, &["mcpServers"]).into_iter().flatten().map(entry).collect()
}

fn server(fields: &mut Fields<'_>) -> Result<ParsedEntry, LocalizedText> {
    if fields.text("tcp")?.is_some() {
        return Err(unsupported_type("tcp"));
    }
    // Takes precedence over `url` and `command` in Gemini CLI too.
    let mut read = match fields.text("httpUrl")? {
        Some(url) => {
            fields.ignore(&["type", "url"]);
            let spec = HttpSpec { url, headers: fields.pairs("headers")? };
            ParsedEntry::new(TransportSpec::Http(spec), VariableSyntax::Shell)
        }
        None => ParsedEntry::common(fields, VariableSyntax::Shell)?,
    };
    read.extras.oauth = login::read(fields, &LOGIN);
    read.extras.call_timeout = fields.time("timeout", Duration::from_millis(1));
    // `tool(argument)` allows the tool as well.
    let name = |tool: String| tool.split('(').next().unwrap_or_default().to_owned();
    let tools: Vec<String> = fields.string_list("includeTools")?.into_iter().map(name).collect();
    read.extras.tools = (!tools.is_empty()).then_some(tools);
    Ok(read)
}

fn write(server: &ClientServer) -> WriteResult {
    let rules = WriteRules {
        title: "Gemini CLI",
        variable_syntax: VariableSyntax::Shell,
        remote: true,
        writes_type: false,
        cwd: true,
        call_timeout: Some("timeout"),
        tools: Some("includeTools"),
        login: Some(&LOGIN),
    };
    members::write(server, &rules)
}
