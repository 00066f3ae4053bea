//! The servers of all files without duplicates, merged with `[[servers]]` of `toolhub.toml`.

use std::io::{Error, ErrorKind};
use std::sync::Arc;

use toolhub_client_config::{ConfigError, TransportSpec};
use toolhub_core::lang::{Lang, Localize as _, LocalizedText};
use toolhub_mcp_client::config::{Credentials, ServerSpec, parse_servers};

use super::paths::Paths;
use super::server_members::member_notes;
use super::toml::{ServerExtras, Settings};
use crate::process_sandbox::Sandbox;
use crate::trust::Restriction;

/// All configured servers in file order, and warnings.
pub fn load_servers(
    paths: &Paths,
    settings: &Settings,
) -> Result<(Vec<ServerSpec>, Vec<LocalizedText>), ConfigError> {
    let mut notes = settings.notes.clone();
    let mut servers = match paths.text(&paths.servers)? {
        Some(text) => {
            let servers = parse_servers(&paths.servers, &text)?;
            notes.extend(member_notes(&paths.servers, &text, &paths.config));
            servers
        }
        None => Vec::new(),
    };
    for spec in shared_servers(paths)? {
        if let Some(first) = servers.iter().find(|other| other.id == spec.id) {
            let (id, used, unused) = (&spec.id, first.origin.display(), spec.origin.display());
            notes.push(LocalizedText::new(
                format!("server `{id}` is defined in `{used}` and in `{unused}`; the first one is used"),
                format!("服务器 `{id}` 同时在 `{used}` 和 `{unused}` 中；使用前者"),
            ));
        } else {
            servers.push(spec);
        }
    }
    for spec in &mut servers {
        spec.pin = settings.approvals.pin;
        if let Some(connect) = settings.limits.connect {
            spec.connect_timeout = connect.0;
        }
    }
    for extras in &settings.servers {
        match servers.iter_mut().find(|spec| spec.id.as_str() == extras.id) {
            Some(spec) => {
                apply(extras, spec);
                spec.roots = extras.roots(&paths.config);
                notes.extend(apply_sandbox(extras, spec, paths));
                notes.extend(credentials_note(spec));
            }
            None => {
                let (id, file) = (&extras.id, paths.servers.display());
                notes.push(LocalizedText::new(
                    format!("`[[servers]]` speaks of `{id}`, which is not in `{file}`"),
                    format!("`[[servers]]` 提到的 `{id}` 不在 `{file}` 中"),
                ));
            }
        }
    }
    // Last: the consent covers the settings of the entry, too.
    for spec in &mut servers {
        spec.consent = paths.workspace.consent(spec, &spec.origin);
    }
    Ok((servers, notes))
}

/// A note with those of `servers` that are not started, or not in the current folder, because it is not trusted.
pub fn folder_note<'a>(
    servers: impl IntoIterator<Item = &'a ServerSpec>,
    paths: &Paths,
) -> Option<LocalizedText> {
    let (mut moved, mut refused) = (Vec::new(), Vec::new());
    for spec in servers.into_iter().filter(|spec| spec.enabled) {
        match paths.workspace.restriction(spec, &spec.origin) {
            Some(Restriction::Moved { file }) => moved.push((format!("`{}`", spec.id), file)),
            Some(Restriction::Refused { word, trusted }) => {
                refused.push(Restriction::refusal(spec.id.as_str(), &word, trusted));
            }
            None => {}
        }
    }
    let notes: Vec<LocalizedText> = refused.into_iter().chain(moved_note(&moved, paths)).collect();
    let join = |lang, gap: &str| notes.iter().map(|note| note.localize(lang)).collect::<Vec<_>>().join(gap);
    (!notes.is_empty()).then(|| LocalizedText::new(join(Lang::En, "; "), join(Lang::Zh, "；")))
}

/// A note with the servers that start in another folder, each with the file that is the reason.
fn moved_note(moved: &[(String, String)], paths: &Paths) -> Option<LocalizedText> {
    let (_, file) = moved.first()?;
    let ids: Vec<&str> = moved.iter().map(|(id, _)| id.as_str()).collect();
    let folder = paths.workspace.neutral_folder();
    let folder = folder.display();
    let (en, zh) = (ids.join(", "), ids.join("、"));
    let (start, it) = if ids.len() == 1 { ("starts", "it runs") } else { ("start", "they run") };
    Some(LocalizedText::new(
        format!(
            "{en} {start} in an empty folder of `{folder}` and not in this one, whose `{file}` could change what {it}: run `toolhub trust` if you trust this folder as it is now, or give the server a folder with `--cwd`"
        ),
        format!(
            "{zh} 在 `{folder}` 内的空目录中启动，而不是在当前目录：当前目录未受信任，或在信任之后有改动，其中的 `{file}` 可能影响它的运行。若信任当前目录的现状，请运行 `toolhub trust`，或用 `--cwd` 为服务器指定目录"
        ),
    ))
}

/// The servers of a trusted project's `.mcp.json`.
fn shared_servers(paths: &Paths) -> Result<Vec<ServerSpec>, ConfigError> {
    let Some((file, bytes)) = paths.workspace.shared_servers() else { return Ok(Vec::new()) };
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ConfigError::io(file, &Error::new(ErrorKind::InvalidData, error)))?;
    parse_servers(file, text)
}

fn apply(extras: &ServerExtras, spec: &mut ServerSpec) {
    spec.enabled = extras.enabled.unwrap_or(spec.enabled);
    spec.era = extras.era;
    spec.connect_timeout = extras.connect_timeout.map_or(spec.connect_timeout, |span| span.0);
    spec.call_timeout = extras.call_timeout.map(|span| span.0);
    spec.idle_timeout = extras.idle_timeout.map(|span| span.0).or(spec.idle_timeout);
    spec.instances = extras.instances();
    spec.copies = extras.copies();
    spec.labels.clone_from(&extras.labels);
    spec.credentials = extras.credentials();
    spec.tools.clone_from(&extras.tools);
    spec.disabled_tools.clone_from(&extras.disabled_tools);
    spec.hints.clone_from(&extras.hints);
    spec.tags.clone_from(&extras.tags);
    spec.pin = extras.pin.unwrap_or(spec.pin);
    spec.oauth.clone_from(&extras.oauth);
    if let TransportSpec::Stdio(stdio) = &mut spec.transport {
        stdio.env_pass.clone_from(&extras.env_pass);
    }
}

/// A note if callers of a server cannot have credentials of their own. Their calls fail then: they never use those of the hub.
fn credentials_note(spec: &ServerSpec) -> Option<LocalizedText> {
    let setting = match spec.credentials {
        Credentials::Shared => return None,
        Credentials::Caller => "credentials = \"caller\"",
        Credentials::Exchange => "credentials = \"exchange\"",
    };
    let (en, zh) = match &spec.transport {
        TransportSpec::Stdio(_) => (
            "a program has no login (`instances = \"caller\"` gives each caller a process)",
            "程序没有登录（`instances = \"caller\"` 可为每个调用方启动一个进程）",
        ),
        TransportSpec::Http(http) | TransportSpec::Sse(http)
            if http.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) =>
        {
            (
                "its entry has an `Authorization` header, which all would share",
                "其配置含有 `Authorization` 请求头，会被所有调用方共用",
            )
        }
        TransportSpec::Http(_) | TransportSpec::Sse(_) => {
            let has_client = spec.oauth.issuer.is_some() && spec.oauth.client_id.is_some();
            if spec.credentials == Credentials::Caller || has_client {
                return None;
            }
            ("`oauth` needs `issuer` and `client_id`", "`oauth` 需要 `issuer` 和 `client_id`")
        }
    };
    let id = &spec.id;
    Some(LocalizedText::new(
        format!("`{setting}` of server `{id}` cannot work, and its calls through the gateway fail: {en}"),
        format!("服务器 `{id}` 的 `{setting}` 无法生效，通过网关的调用会失败：{zh}"),
    ))
}

/// Sandboxes the process of a server, if configured. Returns a note if the server has no process.
fn apply_sandbox(extras: &ServerExtras, spec: &mut ServerSpec, paths: &Paths) -> Option<LocalizedText> {
    let policy = extras.sandbox.policy(&paths.config)?;
    if let TransportSpec::Stdio(stdio) = &mut spec.transport {
        stdio.process_sandbox = Some(Arc::new(Sandbox(policy)));
        return None;
    }
    let id = &extras.id;
    Some(LocalizedText::new(
        format!(
            "`sandbox` of server `{id}` means nothing: it is reached over the network, and no program is started"
        ),
        format!("服务器 `{id}` 的 `sandbox` 没有意义：它通过网络访问，不启动程序"),
    ))
}
