//! VS Code: `servers` in `mcp.json`, with its variables and input prompts.

use std::path::PathBuf;

use serde_json::Value;

use super::ClientProgram;
use crate::entry::{ClientServer, ReadResult, UnusableEntry};
use crate::entry_builder::WriteResult;
use crate::environment::ClientEnvironment;
use crate::fields::unsupported_type;
use crate::format::Format;
use crate::login::{self, OAuthFieldNames, ScopeFormat};
use crate::members::{self, WriteRules};
use crate::reading::{ParsedEntry, ReadContext, VariableSyntax};
use crate::sample::{Evidence, Sample, SampleSyntax};
use crate::syntax::{Syntax, object_at};
use crate::transport::TransportSpec;

const LOGIN: OAuthFieldNames = OAuthFieldNames {
    holder: "oauth",
    client_id: "clientId",
    client_secret: None,
    port: None,
    scopes: ScopeFormat::Unsupported,
};

pub(super) struct VsCode;

impl ClientProgram for VsCode {
    fn name(&self) -> &'static str {
        "vscode"
    }

    fn title(&self) -> &'static str {
        "VS Code"
    }

    fn format(&self) -> Format {
        Format { disables: false, syntax: Syntax::Json, path: &["servers"], write }
    }

    fn project_file(&self) -> Option<&'static str> {
        Some(".vscode/mcp.json")
    }

    fn user_files(&self, environment: &ClientEnvironment) -> Vec<PathBuf> {
        environment.app_config_folder().map(|folder| folder.join("Code/User/mcp.json")).into_iter().collect()
    }

    fn recognize(&self, sample: &Sample<'_>) -> Option<Evidence> {
        let SampleSyntax::Json(document) = &sample.content else { return None };
        let servers = object_at(document, &["servers"]).or_else(|| object_at(document, &["mcp", "servers"]));
        servers.map(|_| Evidence::OwnLayout)
    }

    fn read(&self, document: &Value, context: &ReadContext) -> Vec<ReadResult> {
        read(document, context)
    }
}

/// Reads the servers of an `mcp.json`, or those in `settings.json` of older versions.
fn read(document: &Value, context: &ReadContext) -> Vec<ReadResult> {
    let (servers, inputs) = match object_at(document, &["servers"]) {
        Some(servers) => (Some(servers), document.get("inputs")),
        None => {
            let settings = document.get("mcp");
            (
                settings.and_then(|settings| object_at(settings, &["servers"])),
                settings.and_then(|settings| settings.get("inputs")),
            )
        }
    };
    let context = ReadContext { inputs: inputs.map(read_inputs).unwrap_or_default(), ..context.clone() };
    let entry = |(id, value): (&String, &Value)| {
        let found = context.entry(id, value, |fields| {
            fields.ignore(&["gallery", "version"]);
            let mut read = ParsedEntry::common(fields, VariableSyntax::Editor)?;
            read.extras.oauth = login::read(fields, &LOGIN);
            Ok(read)
        })?;
        match &found.transport {
            TransportSpec::Http(spec) | TransportSpec::Sse(spec)
                if spec.url.starts_with("unix:") || spec.url.starts_with("pipe:") =>
            {
                let kind = spec.url.split(':').next().unwrap_or_default();
                Err(UnusableEntry { id: id.clone(), why: unsupported_type(kind) })
            }
            _ => Ok(found),
        }
    };
    servers.into_iter().flatten().map(entry).collect()
}

fn read_inputs(inputs: &Value) -> Vec<(String, Option<String>)> {
    let text = |input: &Value, key: &str| input.get(key).and_then(Value::as_str).map(str::to_owned);
    let inputs = inputs.as_array().into_iter().flatten();
    inputs.filter_map(|input| Some((text(input, "id")?, text(input, "default")))).collect()
}

fn write(server: &ClientServer) -> WriteResult {
    let rules = WriteRules {
        title: "VS Code",
        variable_syntax: VariableSyntax::Editor,
        remote: true,
        writes_type: true,
        cwd: true,
        call_timeout: None,
        tools: None,
        login: Some(&LOGIN),
    };
    members::write(server, &rules)
}
