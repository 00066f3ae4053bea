//! Errors of requests to a hub.

use serde::Deserialize;
use toolhub_core::lang::LocalizedText;
use toolhub_core::{Lang, Localize};

use crate::exit::Exit;
use crate::hub_api::key::KEY_VARIABLE;

/// The prefix of the type of a problem.
const PROBLEM_PREFIX: &str = "urn:toolhub:problem:";

/// Why a request to a hub has no result.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.localize(Lang::En))]
pub(crate) enum HubError {
    /// There is no connection; nothing was sent.
    Unreachable { hub: String, cause: String },
    /// The connection ended after the request was sent.
    Lost { hub: String, cause: String },
    /// The hub did not answer in time.
    Silent { hub: String },
    /// The answer leads to another address, which is not followed: the key would be sent there.
    Redirected { location: String },
    /// The hub refused the request, or it failed there.
    Problem(ApiProblem),
    /// The answer is not that of a hub.
    Unreadable { hub: String, detail: String },
}

/// An error response (RFC 9457), or the text of a response without problem details.
#[derive(Debug, Clone, Default)]
pub(crate) struct ApiProblem {
    pub(crate) status: u16,
    /// The last part of the type; empty if there are no problem details.
    pub(crate) kind: String,
    pub(crate) detail: String,
}

/// The members of problem details that are used.
#[derive(Deserialize)]
struct ProblemBody {
    r#type: String,
    detail: String,
}

impl ApiProblem {
    /// Reads an error response.
    pub(crate) fn read(status: u16, body: &[u8]) -> Self {
        if let Ok(ProblemBody { r#type, detail }) = serde_json::from_slice(body) {
            let kind = r#type.strip_prefix(PROBLEM_PREFIX).unwrap_or_default().to_owned();
            return Self { status, kind, detail };
        }
        let text = String::from_utf8_lossy(body);
        let line = text.lines().next().unwrap_or_default().trim();
        Self { status, kind: String::new(), detail: line.chars().take(200).collect() }
    }
}

impl HubError {
    /// The kind for `--json`.
    pub(crate) fn kind(&self) -> &str {
        match self {
            Self::Unreachable { .. } => "hub_unreachable",
            Self::Lost { .. } => "hub_lost",
            Self::Silent { .. } => "hub_silent",
            Self::Redirected { .. } => "hub_redirected",
            Self::Problem(problem) if problem.kind.is_empty() => "hub_error",
            Self::Problem(problem) => &problem.kind,
            Self::Unreadable { .. } => "hub_unreadable",
        }
    }

    /// Whether the hub answered that the thing does not exist, or may not be seen.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Problem(problem) if problem.kind == "not-found")
    }

    /// Whether the roles of the key do not permit the request.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Problem(problem) if problem.kind == "forbidden")
    }
}

impl From<&HubError> for Exit {
    fn from(error: &HubError) -> Self {
        match error {
            HubError::Unreachable { .. } | HubError::Lost { .. } | HubError::Silent { .. } => {
                Self::Unreachable
            }
            HubError::Redirected { .. } => Self::Usage,
            HubError::Problem(problem) => match (problem.status, problem.kind.as_str()) {
                (400 | 401, _) | (_, "audit-off") => Self::Usage,
                _ => Self::Failed,
            },
            HubError::Unreadable { .. } => Self::Failed,
        }
    }
}

impl Localize for HubError {
    fn localize(&self, lang: Lang) -> String {
        let text = match self {
            Self::Unreachable { hub, cause } => LocalizedText::new(
                format!("the hub at {hub} could not be reached: {cause}; is `toolhub serve` running there?"),
                format!("无法连接 {hub} 的 hub：{cause}；那里是否运行着 `toolhub serve`？"),
            ),
            Self::Lost { hub, cause } => LocalizedText::new(
                format!("the connection to the hub at {hub} was lost: {cause}"),
                format!("与 {hub} 的 hub 的连接中断：{cause}"),
            ),
            Self::Silent { hub } => LocalizedText::new(
                format!("the hub at {hub} did not answer in time"),
                format!("{hub} 的 hub 没有及时响应"),
            ),
            Self::Redirected { location } => LocalizedText::new(
                format!(
                    "the hub answered with a redirect to `{location}`, which is not followed, since the key would be sent there: if that is your hub, give its address to `--hub`"
                ),
                format!(
                    "hub 要求重定向到 `{location}`；不会跟随，因为密钥会被发往那里：如果那是你的 hub，请把它的地址交给 `--hub`"
                ),
            ),
            Self::Problem(problem) => return problem.localize(lang),
            Self::Unreadable { hub, detail } => LocalizedText::new(
                format!("what answers at {hub} is no hub, or of another version: {detail}"),
                format!("{hub} 的响应不是来自 hub，或来自其他版本：{detail}"),
            ),
        };
        text.localize(lang)
    }
}

impl Localize for ApiProblem {
    fn localize(&self, lang: Lang) -> String {
        let Self { status, kind, detail } = self;
        match (status, kind.as_str()) {
            (401, _) => lang.choose(
                format!(
                    "the hub does not accept the key: it is unknown, expired or revoked; {KEY_VARIABLE} or `--hub-key-file` names it, `toolhub keys new NAME` on the machine of the hub makes one"
                ),
                format!(
                    "hub 不接受此密钥：它未知、已过期或已吊销；密钥来自 {KEY_VARIABLE} 或 `--hub-key-file`，可在 hub 所在的机器上用 `toolhub keys new 名称` 生成"
                ),
            ),
            (403, "forbidden") => lang.choose(
                format!("the hub refuses this: {detail}; `toolhub keys show NAME` there lists the roles of a key"),
                format!("hub 拒绝此操作：{detail}；在其机器上可用 `toolhub keys show 名称` 查看密钥的角色"),
            ),
            (_, "") => lang.choose(
                format!("the hub answered with HTTP status {status}: {detail}"),
                format!("hub 返回 HTTP 状态 {status}：{detail}"),
            ),
            _ => detail.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_read_with_and_without_details() {
        let body =
            br#"{"type":"urn:toolhub:problem:not-found","status":404,"title":"Not Found","detail":"no"}"#;
        let problem = ApiProblem::read(404, body);
        assert_eq!((problem.kind.as_str(), problem.detail.as_str()), ("not-found", "no"));
        assert!(HubError::Problem(problem).is_not_found());
        let problem = ApiProblem::read(502, b"<html>\nbad gateway");
        assert_eq!((problem.kind.as_str(), problem.detail.as_str()), ("", "<html>"));
        // Another program cannot choose the kind of an error.
        let foreign = ApiProblem::read(404, br#"{"type":"not-found","detail":"x"}"#);
        assert!(!HubError::Problem(foreign).is_not_found());
    }

    #[test]
    fn exit_codes_are_those_of_local_commands() {
        let problem = |status: u16, kind: &str| {
            HubError::Problem(ApiProblem { status, kind: kind.to_owned(), detail: String::new() })
        };
        let hub = String::new;
        for (error, exit) in [
            (HubError::Unreachable { hub: hub(), cause: hub() }, Exit::Unreachable),
            (HubError::Lost { hub: hub(), cause: hub() }, Exit::Unreachable),
            (HubError::Redirected { location: hub() }, Exit::Usage),
            (problem(401, "unauthenticated"), Exit::Usage),
            (problem(400, "bad-request"), Exit::Usage),
            (problem(403, "forbidden"), Exit::Failed),
            (problem(404, "not-found"), Exit::Failed),
            (problem(409, "audit-off"), Exit::Usage),
        ] {
            assert_eq!(Exit::from(&error), exit, "{error:?}");
        }
    }
}
