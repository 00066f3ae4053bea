//! `servers/{id}/entry`: the entry of a server in `mcp.json`, and its change. Secrets are write-only: they are masked in what is
//! read.

use std::path::{Path, PathBuf};

use axum::body::Body;
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolhub::settings::ServerEntryEditor;
use toolhub_client_config::{HttpSpec, LockedFile, StdioSpec, TransportSpec};
use toolhub_core::audit::ChangeKind;
use toolhub_core::{Localize as _, RawJson, RawObject};

use super::config::{
    ChangedLine, changed_lines, check_version, expected_version, invalid_config, set_version, text_version,
};
use super::own_edit::record_own_edit;
use super::server_edit::{
    APPLY_POLL, APPLY_TIMEOUT, NamedValue, audit_change, check_editable, checked_url, name_value_pairs,
    not_in_file,
};
use super::servers;
use crate::problem::Problem;
use crate::request::ConsoleContext;
use crate::route::json_response;

/// The entry of a server.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Entry {
    /// The file.
    pub(crate) file: String,
    #[serde(flatten)]
    pub(crate) fields: EntryFields,
    /// Its version, as in the header `ETag`.
    pub(crate) version: String,
    /// Why it cannot be changed here, if it cannot.
    pub(crate) read_only: Option<String>,
}

/// What an entry states about a server. `{{secret N}}` stands for a secret.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct EntryFields {
    /// The program of a server that is started.
    command: Option<String>,
    /// The arguments of the program.
    args: Vec<String>,
    /// The working directory of the program.
    cwd: Option<String>,
    /// The address of a server that is reached over HTTP.
    url: Option<String>,
    /// Whether the address speaks the earlier transport with server-sent events.
    sse: bool,
    /// Variables of the program, or headers of the address.
    values: Vec<NamedValue>,
}

/// A change of an entry. `{{secret N}}` stands for a secret that stays as it is, at the same place.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct NewEntry {
    #[serde(flatten)]
    fields: EntryFields,
    /// Whether to return the change only, and write nothing.
    #[serde(default)]
    preview: bool,
}

/// The change of an entry.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct EntryChange {
    /// The file.
    file: String,
    /// The lines of the entry that change, with the lines around them.
    lines: Vec<ChangedLine>,
    /// Whether it was written.
    written: bool,
}

impl EntryFields {
    fn of(transport: &TransportSpec) -> Self {
        let values = |pairs: &[(String, String)]| {
            let value =
                |(name, value): &(String, String)| NamedValue { name: name.clone(), value: value.clone() };
            pairs.iter().map(value).collect()
        };
        match transport {
            TransportSpec::Stdio(spec) => Self {
                command: Some(spec.command.clone()),
                args: spec.args.clone(),
                cwd: spec.cwd.as_ref().map(|folder| folder.to_string_lossy().into_owned()),
                values: values(&spec.env),
                ..Self::default()
            },
            TransportSpec::Http(spec) | TransportSpec::Sse(spec) => Self {
                url: Some(spec.url.clone()),
                sse: matches!(transport, TransportSpec::Sse(_)),
                values: values(&spec.headers),
                ..Self::default()
            },
        }
    }

    fn transport(&self) -> Result<TransportSpec, Problem> {
        let pairs = name_value_pairs(&self.values);
        if let Some(name) = repeated_name(&pairs) {
            return Err(Problem::bad_request(
                format!("`{name}` is given twice"),
                format!("`{name}` 出现了两次"),
            ));
        }
        match (&self.command, &self.url) {
            (Some(command), None) => {
                let command = command.trim();
                if command.is_empty() {
                    return Err(Problem::bad_request("the command is empty", "命令为空"));
                }
                let folder = self.cwd.as_deref().map(str::trim).filter(|folder| !folder.is_empty());
                Ok(TransportSpec::Stdio(StdioSpec {
                    command: command.to_owned(),
                    args: self.args.clone(),
                    env: pairs,
                    cwd: folder.map(PathBuf::from),
                    ..StdioSpec::default()
                }))
            }
            (None, Some(url)) => {
                let spec = HttpSpec { url: checked_url(url)?, headers: pairs };
                Ok(if self.sse { TransportSpec::Sse(spec) } else { TransportSpec::Http(spec) })
            }
            _ => Err(Problem::bad_request(
                "give one of `command` and `url`",
                "请在 `command`、`url` 中给出一项",
            )),
        }
    }

    /// The entry as the file states it.
    fn lines(&self) -> String {
        let values = || {
            let object = RawObject::default();
            self.values
                .iter()
                .fold(object, |object, pair| object.with(pair.name.clone(), pair.value.as_str()))
        };
        let mut entry = RawObject::default();
        if let Some(url) = &self.url {
            entry = entry.with("type", if self.sse { "sse" } else { "http" }).with("url", url.as_str());
        }
        if let Some(command) = &self.command {
            entry = entry.with("command", command.as_str());
        }
        if !self.args.is_empty() {
            entry = entry.with("args", RawJson::of(&self.args));
        }
        if let Some(folder) = &self.cwd {
            entry = entry.with("cwd", folder.as_str());
        }
        if !self.values.is_empty() {
            let name = if self.url.is_some() { "headers" } else { "env" };
            entry = entry.with(name, values().into_raw());
        }
        toolhub_core::json::pretty_json(entry.into_raw().get()) + "\n"
    }
}

fn repeated_name(pairs: &[(String, String)]) -> Option<&str> {
    let mut names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.windows(2).find(|two| two[0] == two[1]).map(|two| two[0])
}

pub(crate) fn get(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let spec = servers::find(context)?.spec;
    let (id, origin) = (spec.id.as_str(), &spec.origin);
    let read_only =
        check_editable(context, origin).err().map(|problem| problem.detail.localize(context.lang));
    // The text of a trusted workspace is the one that was checked.
    let text = match &read_only {
        Some(_) => context.hub().paths().text(origin)?.unwrap_or_default(),
        None => std::fs::read_to_string(origin)?,
    };
    let editor = open(origin, &text, id)?;
    let version = text_version(&editor.text());
    let entry = Entry {
        file: origin.display().to_string(),
        fields: EntryFields::of(editor.masked()),
        version: version.clone(),
        read_only,
    };
    let mut response = json_response(StatusCode::OK, &entry);
    set_version(&mut response, &version);
    Ok(response)
}

pub(crate) async fn put(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let before = servers::find(context)?.spec;
    let new: NewEntry = context.json()?;
    let (id, origin) = (before.id.as_str(), &before.origin);
    let transport = new.fields.transport()?;
    check_editable(context, origin)?;
    let expected = expected_version(context)?;
    let file = LockedFile::open(origin)?;
    let (text, lines) = {
        let editor = open(origin, file.text(), id)?;
        check_version(expected, &editor.text())?;
        let shown = [editor.masked(), &transport].map(|transport| EntryFields::of(transport).lines());
        (editor.replace(&transport).map_err(invalid_config)?, changed_lines(&shown[0], &shown[1]))
    };
    let written = !new.preview && text != file.text();
    if written {
        audit_change(context, id, ChangeKind::Updated, Some("changed")).await?;
        record_own_edit(context, origin, || file.write(&text))??;
    }
    drop(file);
    if written {
        // For a limited time: another error in the configuration keeps the hub from applying it.
        let deadline = tokio::time::Instant::now() + APPLY_TIMEOUT;
        while tokio::time::Instant::now() < deadline
            && servers::find(context).is_ok_and(|view| view.spec.is_same_entry(&before))
        {
            tokio::time::sleep(APPLY_POLL).await;
        }
    }
    let change = EntryChange { file: origin.display().to_string(), lines, written };
    Ok(json_response(StatusCode::OK, &change))
}

fn open(file: &Path, text: &str, id: &str) -> Result<ServerEntryEditor, Problem> {
    ServerEntryEditor::open(file, text, id)?.ok_or_else(|| not_in_file(id, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> EntryFields {
        serde_json::from_str::<NewEntry>(text).unwrap().fields
    }

    #[test]
    fn incomplete_entries_are_refused() {
        for wrong in [
            "{}",
            r#"{"command": "x", "url": "http://y"}"#,
            r#"{"command": " "}"#,
            r#"{"url": "file:///etc/passwd"}"#,
            r#"{"command": "x", "values": [{"name": "A", "value": ""}, {"name": " A", "value": ""}]}"#,
        ] {
            assert_eq!(
                fields(wrong).transport().err().map(|problem| problem.status),
                Some(StatusCode::BAD_REQUEST),
                "{wrong}"
            );
        }
    }

    #[test]
    fn entries_are_read_and_shown_alike() {
        for text in [
            r#"{"command": "x", "args": ["a b", ""], "cwd": "/data", "values": [{"name": "A", "value": "1"}]}"#,
            r#"{"url": "http://y/mcp", "sse": true, "values": [{"name": "X", "value": "1"}]}"#,
        ] {
            let fields = fields(text);
            let again = EntryFields::of(&fields.transport().unwrap());
            assert_eq!(again.lines(), fields.lines());
        }
    }
}
