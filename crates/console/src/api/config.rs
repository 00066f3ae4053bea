//! `config`: the text of `toolhub.toml`, the preview of a change, and the change itself. Secrets are write-only: they are masked
//! in what is read.

use std::sync::OnceLock;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolhub::settings::{MaskedConfig, check_config};
use toolhub_client_config::LockedFile;
use toolhub_core::audit::{AuditAction, AuditEvent, ChangeEvent, ChangeKind, ChangedObject};
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Lang, Localize as _};
use toolhub_mcp_gateway::random_token;
use toolhub_server::{Authenticator as _, hash_of};

use super::own_edit::record_own_edit;
use super::server_edit::{check_editable, text_of};
use crate::problem::Problem;
use crate::request::ConsoleContext;
use crate::route::json_response;

/// The configuration.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Config {
    /// The file.
    pub(crate) file: String,
    /// Its text. `{{secret N}}` stands for a secret.
    pub(crate) text: String,
    /// Its version, as in the header `ETag`.
    pub(crate) version: String,
    /// Warnings about it.
    pub(crate) warnings: Vec<String>,
    /// Sections whose changes take effect when the hub is started again.
    pub(crate) restart: Vec<String>,
    /// Why it cannot be changed here, if it cannot.
    pub(crate) read_only: Option<String>,
}

/// A new text of the configuration.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct NewConfig {
    /// The whole text. `{{secret N}}` stands for a secret that stays as it is.
    text: String,
}

/// A change of the configuration that was not written.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ConfigPreview {
    /// Whether a hub can use it.
    valid: bool,
    /// What is wrong with it.
    message: Option<String>,
    /// Warnings about it.
    warnings: Vec<String>,
    /// The lines of the file that change, with the lines around them.
    lines: Vec<ChangedLine>,
    /// Sections whose changes take effect when the hub is started again.
    restart: Vec<String>,
}

/// A line of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ChangedLine {
    /// `added`, `removed` or `kept`.
    change: &'static str,
    text: String,
}

/// How long the comparison of two texts may take. Afterwards it finds fewer common lines.
const MAX_DIFF_TIME: Duration = Duration::from_millis(200);
const MAX_TEXT_BYTES: usize = 512 << 10;
/// Number of unchanged lines before and after a change.
const CONTEXT_LINES: usize = 3;

pub(crate) fn get(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let config = read(context)?;
    let mut response = json_response(StatusCode::OK, &config);
    set_version(&mut response, &config.version);
    Ok(response)
}

/// The configuration as the file states it.
pub(crate) fn read(context: &ConsoleContext<'_>) -> Result<Config, Problem> {
    let paths = context.hub().paths();
    let text = current_text(context)?;
    let masked = masked(context, &text)?;
    let read_only =
        check_editable(context, &paths.config).err().map(|problem| problem.detail.localize(context.lang));
    let (warnings, restart) = match check_config(paths, &text) {
        Ok(settings) => (
            settings.notes,
            settings.restart_sections.changed_since(&context.hub().settings().restart_sections),
        ),
        Err(error) => {
            (vec![LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh))], Vec::new())
        }
    };
    Ok(Config {
        file: paths.config.display().to_string(),
        text: masked.text().to_owned(),
        version: text_version(&text),
        warnings: warnings.iter().map(|text| text.localize(context.lang)).collect(),
        restart: restart.into_iter().map(str::to_owned).collect(),
        read_only,
    })
}

pub(crate) fn preview(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let text = new_text(context)?;
    let paths = context.hub().paths();
    let masked = masked(context, &current_text(context)?)?;
    let lines = changed_lines(masked.text(), &text);
    let restored = match masked.restore(&text) {
        Ok(restored) => restored,
        Err(problem) => {
            let message = Some(problem.localize(context.lang));
            let preview =
                ConfigPreview { valid: false, message, warnings: Vec::new(), lines, restart: Vec::new() };
            return Ok(json_response(StatusCode::OK, &preview));
        }
    };
    let preview = match check_config(paths, &restored) {
        Ok(settings) => {
            let running = &context.hub().settings().restart_sections;
            let restart = settings.restart_sections.changed_since(running);
            let mut warnings: Vec<String> =
                settings.notes.iter().map(|text| text.localize(context.lang)).collect();
            if context.gateways.access().is_required() && !settings.auth.is_required() {
                let warning = context.lang.choose(
                    "Without keys and identity providers, every program that reaches the hub may use it after the next start.",
                    "没有密钥和身份提供方时，下次启动后，任何能连接到 hub 的程序都可使用它。",
                );
                warnings.push(warning.to_owned());
            }
            ConfigPreview {
                valid: true,
                message: None,
                warnings,
                lines,
                restart: restart.into_iter().map(str::to_owned).collect(),
            }
        }
        Err(error) => {
            let message = Some(error.localize(context.lang));
            ConfigPreview { valid: false, message, warnings: Vec::new(), lines, restart: Vec::new() }
        }
    };
    Ok(json_response(StatusCode::OK, &preview))
}

pub(crate) async fn put(context: &ConsoleContext<'_>) -> Result<Response<Body>, Problem> {
    let text = new_text(context)?;
    let paths = context.hub().paths();
    check_editable(context, &paths.config)?;
    let expected = expected_version(context)?;
    let file = LockedFile::open(&paths.config)?;
    check_version(expected, file.text())?;
    let masked = masked(context, file.text())?;
    let restored = masked.restore(&text).map_err(invalid_config)?;
    check_config(paths, &restored).map_err(|error| {
        invalid_config(LocalizedText::new(error.localize(Lang::En), error.localize(Lang::Zh)))
    })?;
    if restored != file.text() {
        let event = ChangeEvent {
            object: ChangedObject::Config,
            name: paths.config.display().to_string(),
            change: ChangeKind::Updated,
            sha256: None,
            detail: Some("changed in the console".to_owned()),
        };
        let event = AuditEvent::now(context.principal().id(), AuditAction::Change(event));
        context.hub().record_audit(event).await?;
        record_own_edit(context, &paths.config, || file.write(&restored))??;
    }
    drop(file);
    get(context)
}

/// The version of the text that a request changes.
pub(super) fn expected_version<'a>(context: &'a ConsoleContext<'_>) -> Result<&'a str, Problem> {
    let expected = context.headers.get(header::IF_MATCH).and_then(|value| value.to_str().ok());
    expected.filter(|expected| !expected.is_empty()).ok_or_else(|| {
        Problem::new(
            StatusCode::PRECONDITION_REQUIRED,
            "if-match-required",
            LocalizedText::new(
                "send the `ETag` of the text that you changed in `If-Match`",
                "请在 `If-Match` 中发送所修改文本的 `ETag`",
            ),
        )
    })
}

/// Refuses a change of a text that is not the current one.
pub(super) fn check_version(expected: &str, text: &str) -> Result<(), Problem> {
    if expected == text_version(text) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::PRECONDITION_FAILED,
        "changed-meanwhile",
        LocalizedText::new(
            "the file was changed since you read it: reload it, and make your change again",
            "文件在你读取之后已被修改：请重新加载后再次修改",
        ),
    ))
}

fn new_text(context: &ConsoleContext<'_>) -> Result<String, Problem> {
    let NewConfig { text } = context.json()?;
    if text.len() > MAX_TEXT_BYTES {
        return Err(Problem::bad_request(
            format!("a configuration has at most {MAX_TEXT_BYTES} bytes"),
            format!("配置最多 {MAX_TEXT_BYTES} 字节"),
        ));
    }
    Ok(text)
}

pub(super) fn invalid_config(what: LocalizedText) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-config", what)
}

/// The text of the file. For a trusted workspace it is the text that was checked.
fn current_text(context: &ConsoleContext<'_>) -> Result<String, Problem> {
    let paths = context.hub().paths();
    if check_editable(context, &paths.config).is_err() {
        return Ok(paths.text(&paths.config)?.unwrap_or_default());
    }
    Ok(text_of(&paths.config)?)
}

/// The text without its secrets.
fn masked(context: &ConsoleContext<'_>, text: &str) -> Result<MaskedConfig, Problem> {
    let file = context.hub().paths().config.display();
    MaskedConfig::new(text).ok_or_else(|| {
        let detail = LocalizedText::new(
            format!("`{file}` is not valid TOML, so that its secrets cannot be told apart: mend it with an editor; `toolhub doctor` names the line"),
            format!("`{file}` 不是有效的 TOML，无法识别其中的机密值：请用编辑器修复；`toolhub doctor` 会指出出错的行"),
        );
        Problem::new(StatusCode::CONFLICT, "unreadable-config", detail)
    })
}

/// The version of a text. A secret of this process is part of it, so that it tells nothing about the secrets in the text.
pub(super) fn text_version(text: &str) -> String {
    static KEY: OnceLock<String> = OnceLock::new();
    let key = KEY.get_or_init(|| random_token().unwrap_or_default());
    format!("\"{}\"", hash_of(&format!("{key}{text}")))
}

pub(super) fn set_version(response: &mut Response<Body>, version: &str) {
    if let Ok(value) = HeaderValue::from_str(version) {
        response.headers_mut().insert(header::ETAG, value);
    }
}

/// The changed lines of two texts, with the lines around them.
pub(super) fn changed_lines(old: &str, new: &str) -> Vec<ChangedLine> {
    let diff = similar::TextDiff::configure().timeout(MAX_DIFF_TIME).diff_lines(old, new);
    let mut lines = Vec::new();
    for (index, group) in diff.grouped_ops(CONTEXT_LINES).iter().enumerate() {
        if index > 0 {
            lines.push(ChangedLine { change: "kept", text: "…".to_owned() });
        }
        lines.extend(group.iter().flat_map(|op| diff.iter_changes(op)).map(|change| ChangedLine {
            change: match change.tag() {
                similar::ChangeTag::Insert => "added",
                similar::ChangeTag::Delete => "removed",
                similar::ChangeTag::Equal => "kept",
            },
            text: change.value().trim_end_matches(['\n', '\r']).to_owned(),
        }));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_and_their_surroundings_are_listed() {
        let old: String = (0..20).map(|number| format!("a{number} = 1\n")).collect();
        let new = old.replace("a10 = 1", "a10 = 2");
        let lines = changed_lines(&old, &new);
        assert_eq!(lines.len(), 8);
        let changed: Vec<(&str, &str)> = lines
            .iter()
            .filter(|line| line.change != "kept")
            .map(|line| (line.change, line.text.as_str()))
            .collect();
        assert_eq!(changed, [("removed", "a10 = 1"), ("added", "a10 = 2")]);
        assert!(changed_lines(&old, &old).is_empty());
    }

    #[test]
    fn versions_differ_by_text() {
        assert_eq!(text_version("a"), text_version("a"));
        assert_ne!(text_version("a"), text_version("b"));
        assert_ne!(text_version("a"), format!("\"{}\"", hash_of("a")));
    }
}
