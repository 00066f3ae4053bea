//! Cursor: `mcpServers` in `mcp.json`, with the variables of editors.

use std::path::PathBuf;

use serde_json::Value;

use super::ClientProgram;
use crate::entry::{ClientServer, ReadResult};
use crate::entry_builder::WriteResult;
use crate::environment::ClientEnvironment;
use crate::format::Format;
use crate::login::{self, OAuthFieldNames, ScopeFormat};
use crate::members::{self, WriteRules};
use crate::reading::{ParsedEntry, ReadContext, VariableSyntax};
use crate::sample::{Evidence, Sample, SampleSyntax};
use crate::syntax::{Syntax, object_at};

/// Variables that editors expand, and no other client.
const EDITOR_VARIABLES: [&str; 3] = ["${env:", "${workspaceFolder", "${userHome}"];

const LOGIN: OAuthFieldNames = OAuthFieldNames {
    holder: "auth",
    client_id: "CLIENT_ID",
    client_secret: Some("CLIENT_SECRET"),
    port: None,
    scopes: ScopeFormat::Listed,
};

pub(super) struct Cursor;

impl ClientProgram for Cursor {
    fn name(&self) -> &'static str {
        "cursor"
    }

    fn title(&self) -> &'static str {
        "Cursor"
    }

    fn format(&self) -> Format {
        Format { disables: false, syntax: Syntax::Json, path: &["mcpServers"], write }
    }

    fn project_file(&self) -> Option<&'static str> {
        Some(".cursor/mcp.json")
    }

    fn user_files(&self, environment: &ClientEnvironment) -> Vec<PathBuf> {
        environment.home(".cursor/mcp.json").into_iter().collect()
    }

    fn recognize(&self, sample: &Sample<'_>) -> Option<Evidence> {
        let SampleSyntax::Json(document) = &sample.content else { return None };
        object_at(document, &["mcpServers"])?;
        let found = EDITOR_VARIABLES.iter().any(|form| sample.text.contains(form));
        found.then_some(Evidence::Variables)
    }

    fn read(&self, document: &Value, context: &ReadContext) -> Vec<ReadResult> {
        let servers = object_at(document, &["mcpServers"]).into_iter().flatten();
        let entry = |(id, value): (&String, &Value)| {
            context.entry(id, value, |fields| {
                let mut read = ParsedEntry::common(fields, VariableSyntax::Editor)?;
                read.extras.oauth = login::read(fields, &LOGIN);
                Ok(read)
            })
        };
        servers.map(entry).collect()
    }
}

fn write(server: &ClientServer) -> WriteResult {
    let rules = WriteRules {
        title: "Cursor",
        variable_syntax: VariableSyntax::Editor,
        remote: true,
        writes_type: true,
        cwd: false,
        call_timeout: None,
        tools: None,
        login: Some(&LOGIN),
    };
    members::write(server, &rules)
}
