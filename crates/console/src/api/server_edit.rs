//! Changes to the servers in `mcp.json`: add, enable, disable and remove. The running hub applies them as it applies every change
//! of the file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::Body;
use http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolhub::settings::ConfigError;
use toolhub::{ServerView, switch_tool};
use toolhub_client_config::{HttpSpec, StdioSpec, TransportSpec};
use toolhub_core::audit::{AuditAction, AuditEvent, ChangeEvent, ChangeKind, ChangedObject};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Lang, Localize as _, RawJson, RawObject, ServerId, Source};
use toolhub_mcp_client::config::{ServerEntry, add_server, parse_servers, remove_server, set_enabled};

use super::Empty;
use super::own_edit::record_own_edit;
use super::servers;
use crate::problem::Problem;
use crate::request::ConsoleContext;
use crate::route::json_response;

/// How long a request waits until the hub has applied a change.
pub(super) const APPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// How often it looks whether that has happened.
pub(super) const APPLY_POLL: Duration = Duration::from_millis(50);

/// A server to add: a command, a URL, or the JSON of another client.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct NewServer {
    /// Its name; not needed if `json_response` has it.
    #[serde(default)]
    id: Option<String>,
    /// A command line.
    #[serde(default)]
    command: Option<String>,
    /// The address of an HTTP server.
    #[serde(default)]
    url: Option<String>,
    /// Variables of the command, or headers of the URL.
    #[serde(default)]
    values: Vec<NamedValue>,
    /// The working directory of the command.
    #[serde(default)]
    cwd: Option<String>,
    /// `{"mcpServers": {…}}`, `{NAME: {…}}` or one server, as other clients write them.
    #[serde(default)]
    json: Option<String>,
    /// Whether to return the change only, and write nothing.
    #[serde(default)]
    preview: bool,
}

/// A variable or a header.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct NamedValue {
    pub(super) name: String,
    pub(super) value: String,
}

/// A change of `mcp.json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ServerChange {
    /// The servers that were added.
    ids: Vec<String>,
    /// The file.
    file: String,
    /// The lines of the new entries in `mcpServers`.
    added_lines: Vec<String>,
    /// The number of the other servers in the file, which stay as they are.
    other_servers: usize,
    /// Whether it was written.
    written: bool,
}

/// A change of a server, of which one member is given.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ServerPatch {
    /// Whether the server is used.
    enabled: Option<bool>,
    /// The name of a tool at the server to switch off.
    switch_off: Option<String>,
    /// The name of a tool at the server to switch on again.
    switch_on: Option<String>,
}

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Self {
        let detail = LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh));
        Self::new(StatusCode::CONFLICT, "config", detail)
    }
}

/// The text of a file of the settings; empty if there is no file.
pub(super) fn text_of(file: &Path) -> std::io::Result<String> {
    match std::fs::read_to_string(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        text => text,
    }
}

pub(crate) async fn add(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let new: NewServer = context.json()?;
    let entries = entries(&new)?;
    for ServerEntry { id, .. } in &entries {
        if context.hub().servers().iter().any(|view| view.spec.id.as_str() == id) {
            let detail = LocalizedText::new(
                format!("there is a server `{id}` already: choose another name, or remove that one first"),
                format!("已有服务器 `{id}`：请换一个名称，或先移除它"),
            );
            return Err(Problem::new(StatusCode::CONFLICT, "config", detail));
        }
    }
    let file = &context.hub().paths().servers;
    check_editable(context, file)?;
    // The file as a whole may contain secrets of other servers: only the new entries are shown.
    let added_lines = entry_lines(&with_entries("", &entries)?);
    let before = text_of(file)?;
    let other_servers = parse_servers(file, &before)?.len();
    with_entries(&before, &entries)?;
    let ids: Vec<String> = entries.iter().map(|entry| entry.id.clone()).collect();
    if !new.preview {
        for entry in &entries {
            audit_change(context, &entry.id, ChangeKind::Created, None).await?;
            record_own_edit(context, file, || add_server(file, entry, false))??;
        }
        await_servers(context, |known| ids.iter().all(|id| known.contains(id))).await;
    }
    let file = file.display().to_string();
    let change = ServerChange { ids, file, added_lines, other_servers, written: !new.preview };
    Ok(json_response(StatusCode::OK, &change))
}

/// The entries in the text of a file that has nothing else: its lines without the two opening ones (`{` and `"mcpServers": {`)
/// and the two closing ones.
fn entry_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let inner = lines.get(2..lines.len().saturating_sub(2)).unwrap_or(&lines);
    inner.iter().map(|line| (*line).to_owned()).collect()
}

/// The text of a file after these entries were added to it.
fn with_entries(before: &str, entries: &[ServerEntry]) -> Result<String, Problem> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("mcp.json");
    if !before.is_empty() {
        std::fs::write(&file, before)?;
    }
    for entry in entries {
        add_server(&file, entry, false)?;
    }
    Ok(std::fs::read_to_string(&file)?)
}

/// The servers that a request describes.
fn entries(new: &NewServer) -> Result<Vec<ServerEntry>, Problem> {
    let id = new.id.as_deref().map(str::trim).filter(|id| !id.is_empty());
    let given = [new.command.is_some(), new.url.is_some(), new.json.is_some()];
    if given.iter().filter(|given| **given).count() != 1 {
        return Err(Problem::bad_request(
            "give one of `command`, `url` and `json`",
            "请在 `command`、`url`、`json` 中给出一项",
        ));
    }
    let entries = match &new.json {
        Some(text) => entries_of_json(text, id)?,
        None => {
            let id = id.ok_or_else(|| Problem::bad_request("the server needs a name", "服务器需要名称"))?;
            vec![ServerEntry { id: id.to_owned(), transport: transport(new)? }]
        }
    };
    for ServerEntry { id, .. } in &entries {
        if ServerId::RESERVED.contains(&id.as_str()) {
            return Err(Problem::bad_request(
                format!("`{id}` cannot be the name of a server, as it means something else: choose another"),
                format!("`{id}` 另有含义，不能用作服务器名：请换一个"),
            ));
        }
        // It becomes part of the names of tools.
        if id.is_empty() || !id.chars().all(|letter| letter.is_alphanumeric() || "-_.".contains(letter)) {
            return Err(Problem::bad_request(
                format!(
                    "`{id}` cannot be the name of a server: it has letters, digits, `-`, `_` and `.` only, since it becomes part of the names of tools"
                ),
                format!(
                    "`{id}` 不能用作服务器名：只能使用字母、数字、`-`、`_` 和 `.`，因为它会成为工具名称的一部分"
                ),
            ));
        }
    }
    Ok(entries)
}

fn transport(new: &NewServer) -> Result<TransportSpec, Problem> {
    let pairs = name_value_pairs(&new.values);
    let folder = new.cwd.as_deref().map(str::trim).filter(|folder| !folder.is_empty());
    if let Some(url) = &new.url {
        return Ok(TransportSpec::Http(HttpSpec { url: checked_url(url)?, headers: pairs }));
    }
    let words = words(new.command.as_deref().unwrap_or_default()).ok_or_else(|| {
        Problem::bad_request("a quote in the command is not closed", "命令中的引号没有闭合")
    })?;
    let Some((command, args)) = words.split_first() else {
        return Err(Problem::bad_request("the command is empty", "命令为空"));
    };
    Ok(TransportSpec::Stdio(StdioSpec {
        command: command.clone(),
        args: args.to_vec(),
        env: pairs,
        cwd: folder.map(PathBuf::from),
        ..StdioSpec::default()
    }))
}

/// Variables or headers; those without a name are left out.
pub(super) fn name_value_pairs(values: &[NamedValue]) -> Vec<(String, String)> {
    let pairs = values.iter().map(|pair| (pair.name.trim().to_owned(), pair.value.clone()));
    pairs.filter(|(name, _)| !name.is_empty()).collect()
}

/// The address of a server, which is one of HTTP.
pub(super) fn checked_url(url: &str) -> Result<String, Problem> {
    let url = url.trim();
    if url.starts_with("http://") || url.starts_with("https://") {
        return Ok(url.to_owned());
    }
    Err(Problem::bad_request(
        format!("`{url}` is no address: write it with `http://` or `https://` in front"),
        format!("`{url}` 不是地址：请在前面写上 `http://` 或 `https://`"),
    ))
}

/// Splits a command line into words as a shell does, without any expansion. Returns `None` if a quote is not closed.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = line.trim().chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            (Some(_), letter) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

fn entries_of_json(text: &str, id: Option<&str>) -> Result<Vec<ServerEntry>, Problem> {
    let wrong = || {
        Problem::bad_request(
            "this JSON holds no server: paste {\"mcpServers\": {…}}, {\"NAME\": {…}}, or one server and its name",
            "此 JSON 中没有服务器：请粘贴 {\"mcpServers\": {…}}、{\"名称\": {…}}，或单个服务器并填写名称",
        )
    };
    let value = RawJson::parse(text).map_err(|error| invalid_json(&error))?;
    let members = value.object().ok_or_else(wrong)?;
    let is_one = members.contains("command") || members.contains("url");
    let full = ["mcpServers", "servers"].iter().find_map(|key| members.get(key).and_then(RawJson::object));
    let servers = match (is_one, id, full) {
        (true, Some(id), _) => RawObject::default().with(id.to_owned(), members.into_raw()),
        (true, None, _) => return Err(wrong()),
        (false, _, Some(servers)) => servers,
        (false, _, None) => members,
    };
    let whole = RawObject::default().with("mcpServers", servers.into_raw()).into_raw();
    // The position is that in another text than the one that was typed.
    let specs = parse_servers(Path::new("mcp.json"), whole.get())
        .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, "bad-request", error.message))?;
    if specs.is_empty() {
        return Err(wrong());
    }
    let entry = |spec: &toolhub_mcp_client::config::ServerSpec| ServerEntry {
        id: spec.id.as_str().to_owned(),
        transport: spec.transport.clone(),
    };
    Ok(specs.iter().map(entry).collect())
}

/// Why a text is not JSON, and where.
fn invalid_json(error: &serde_json::Error) -> Problem {
    let (line, column) = (error.line(), error.column());
    let (en, zh) = match error.is_eof() {
        true => ("it ends too early, a bracket or a quote is not closed", "内容不完整，括号或引号没有闭合"),
        false => ("there is a syntax error", "语法错误"),
    };
    Problem::bad_request(
        format!("this is not valid JSON: {en} (line {line}, column {column})"),
        format!("不是有效的 JSON：{zh}（第 {line} 行第 {column} 列）"),
    )
}

pub(crate) async fn patch(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let view = servers::find(context)?;
    let enabled = match context.json()? {
        ServerPatch { enabled: Some(enabled), switch_off: None, switch_on: None } => enabled,
        ServerPatch { enabled: None, switch_off: Some(tool), switch_on: None } => {
            return switch(context, &tool, false).await;
        }
        ServerPatch { enabled: None, switch_off: None, switch_on: Some(tool) } => {
            return switch(context, &tool, true).await;
        }
        _ => {
            return Err(Problem::bad_request(
                "give one of `enabled`, `switch_off` and `switch_on`",
                "请在 `enabled`、`switch_off`、`switch_on` 中给出一项",
            ));
        }
    };
    let (id, origin) = (view.spec.id.as_str(), &view.spec.origin);
    check_editable(context, origin)?;
    let detail = if enabled { "enabled" } else { "disabled" };
    audit_change(context, id, ChangeKind::Updated, Some(detail)).await?;
    if !record_own_edit(context, origin, || set_enabled(origin, id, enabled))?? {
        return Err(not_in_file(id, origin));
    }
    let deadline = tokio::time::Instant::now() + APPLY_TIMEOUT;
    while tokio::time::Instant::now() < deadline
        && servers::find(context).is_ok_and(|view| view.spec.enabled != enabled)
    {
        tokio::time::sleep(APPLY_POLL).await;
    }
    Ok(json_response(StatusCode::OK, &servers::read(context)?))
}

/// Switches a tool of a server off or on. The server is connected again with the new list.
async fn switch(context: &ConsoleContext<'_>, tool: &str, enabled: bool) -> Result<Response<Body>, Problem> {
    let view = servers::find(context)?;
    let (id, config) = (view.spec.id.to_string(), &context.hub().paths().config);
    check_editable(context, config)?;
    let is_disabled = |view: &ServerView| view.spec.disabled_tools.iter().any(|name| name == tool);
    let is_listed = || {
        let own = Source::Server(view.spec.id.clone());
        context.hub().catalog().named(tool).any(|entry| entry.tool.source == own)
    };
    if !enabled && !is_disabled(&view) && !is_listed() {
        return Err(Problem::not_found(
            format!("`{id}` has no tool `{tool}`"),
            format!("`{id}` 没有工具 `{tool}`"),
        ));
    }
    let detail = format!("switched `{tool}` {}", if enabled { "on" } else { "off" });
    audit_change(context, &id, ChangeKind::Updated, Some(&detail)).await?;
    record_own_edit(context, config, || switch_tool(config, &id, tool, enabled))??;
    let deadline = tokio::time::Instant::now() + APPLY_TIMEOUT;
    while tokio::time::Instant::now() < deadline
        && servers::find(context).is_ok_and(|view| is_disabled(&view) == enabled)
    {
        tokio::time::sleep(APPLY_POLL).await;
    }
    Ok(json_response(StatusCode::OK, &servers::read(context)?))
}

pub(crate) async fn remove(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let view = servers::find(context)?;
    let (id, origin) = (view.spec.id.to_string(), &view.spec.origin);
    check_editable(context, origin)?;
    audit_change(context, &id, ChangeKind::Deleted, None).await?;
    if !record_own_edit(context, origin, || remove_server(origin, &id))?? {
        return Err(not_in_file(&id, origin));
    }
    // A server without a login has nothing to revoke.
    let _ = context.hub().logout(&id).await;
    await_servers(context, |known| !known.contains(&id)).await;
    context.hub().forget_server(&id).await;
    Ok(json_response(StatusCode::OK, &Empty {}))
}

pub(super) fn not_in_file(id: &str, file: &Path) -> Problem {
    let file = file.display();
    let detail = LocalizedText::new(
        format!("`{id}` is not in `{file}` any more"),
        format!("`{file}` 中已没有 `{id}`"),
    );
    Problem::new(StatusCode::CONFLICT, "not-in-file", detail)
}

/// Refuses changes of files in a trusted folder: a change from elsewhere, which was not reviewed yet, would be trusted with it.
pub(crate) fn check_editable(context: &ConsoleContext<'_>, file: &Path) -> Result<(), Problem> {
    let paths = context.hub().paths();
    let is_own = file == paths.servers || file == paths.config;
    if is_own && !paths.workspace.is_bound_config() {
        return Ok(());
    }
    let file = file.display();
    let detail = LocalizedText::new(
        format!(
            "`{file}` is part of a trusted folder: change it with `toolhub` there, which reviews the folder first"
        ),
        format!("`{file}` 属于受信任的目录：请在该目录中用 `toolhub` 修改，它会先检查目录"),
    );
    Err(Problem::new(StatusCode::CONFLICT, "trusted-folder", detail))
}

/// Waits until the hub has applied a change, for a limited time: another error in the configuration keeps it from that.
async fn await_servers(context: &ConsoleContext<'_>, is_applied: impl Fn(&[String]) -> bool) {
    let deadline = tokio::time::Instant::now() + APPLY_TIMEOUT;
    loop {
        let known: Vec<String> =
            context.hub().servers().into_iter().map(|view| view.spec.id.to_string()).collect();
        if is_applied(&known) || tokio::time::Instant::now() >= deadline {
            return;
        }
        tokio::time::sleep(APPLY_POLL).await;
    }
}

pub(super) async fn audit_change(
    context: &ConsoleContext<'_>,
    id: &str,
    change: ChangeKind,
    detail: Option<&str>,
) -> Result<(), Problem> {
    let event = ChangeEvent {
        object: ChangedObject::Server,
        name: id.to_owned(),
        change,
        sha256: None,
        detail: Some(format!("{} in the console", detail.unwrap_or(change.name()))),
    };
    let event = AuditEvent::now(context.principal().id(), AuditAction::Change(event));
    Ok(context.hub().record_audit(event).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_split_like_a_shell_does() {
        let check = |line: &str, expected: Option<&[&str]>| {
            let found = words(line);
            let found: Option<Vec<&str>> = found.as_ref().map(|all| all.iter().map(String::as_str).collect());
            assert_eq!(found.as_deref(), expected, "{line}");
        };
        check("npx -y server", Some(&["npx", "-y", "server"]));
        check("  a  'b c' \"d 'e\" f\\ g ''  ", Some(&["a", "b c", "d 'e", "f g", ""]));
        check("a \"b\\\"c\" '\\n'", Some(&["a", "b\"c", "\\n"]));
        check("a $HOME; rm *", Some(&["a", "$HOME;", "rm", "*"]));
        check("a 'b", None);
        check("", Some(&[]));
    }

    #[test]
    fn pasted_json_of_other_clients_is_read() {
        let ids = |text: &str, id: Option<&str>| {
            entries_of_json(text, id).map(|all| all.into_iter().map(|entry| entry.id).collect::<Vec<_>>())
        };
        let server = r#"{"command": "x"}"#;
        assert_eq!(ids(&format!("{{\"mcpServers\": {{\"a\": {server}}}}}"), None).unwrap(), ["a"]);
        assert_eq!(ids(&format!("{{\"a\": {server}, \"b\": {server}}}"), None).unwrap(), ["a", "b"]);
        assert_eq!(ids(server, Some("c")).unwrap(), ["c"]);
        let problem = entries_of_json("{\"mcpServers\":\n {", None).err().unwrap();
        assert!(problem.detail.localize(Lang::En).contains("not valid JSON"), "{problem:?}");
        assert!(problem.detail.localize(Lang::En).contains("line 2, column 2"), "{problem:?}");
        let problem = entries_of_json("{\"mcpServers\": {\"a\": 1}}", None).err().unwrap();
        assert_eq!(problem.detail.localize(Lang::Zh), "服务器 `a` 应为对象 `{…}`");
        for wrong in [server, "[]", "{", "{}", "1"] {
            assert_eq!(ids(wrong, None).err().unwrap().status, StatusCode::BAD_REQUEST, "{wrong}");
        }
    }

    #[test]
    fn lines_of_new_entries_are_those_inside_the_list() {
        let transport =
            TransportSpec::Http(HttpSpec { url: "http://y/mcp".to_owned(), ..HttpSpec::default() });
        let lines = entry_lines(&with_entries("", &[ServerEntry { id: "a".to_owned(), transport }]).unwrap());
        assert!(lines[0].trim_start().starts_with("\"a\""), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("http://y/mcp")), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("mcpServers")), "{lines:?}");
        let count =
            |brace| lines.iter().flat_map(|line| line.chars()).filter(|letter| *letter == brace).count();
        assert_eq!(count('{'), count('}'), "{lines:?}");
    }

    #[test]
    fn invalid_servers_are_refused() {
        let new = |id: &str, command: Option<&str>, url: Option<&str>| NewServer {
            id: Some(id.to_owned()),
            command: command.map(str::to_owned),
            url: url.map(str::to_owned),
            values: Vec::new(),
            cwd: None,
            json: None,
            preview: true,
        };
        assert!(entries(&new("a", Some("x"), None)).is_ok());
        for (id, command, url) in [
            ("", Some("x"), None),
            ("native", Some("x"), None),
            ("a/b", Some("x"), None),
            ("my server!", Some("x"), None),
            ("a", None, None),
            ("a", Some("x"), Some("http://y")),
            ("a", Some(" "), None),
            ("a", None, Some("file:///etc/passwd")),
        ] {
            assert!(entries(&new(id, command, url)).is_err(), "{id} {command:?} {url:?}");
        }
    }
}
