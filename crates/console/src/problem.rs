//! Errors of the JSON API as problem details (RFC 9457).

use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use toolhub_core::lang::LocalizedText;
use toolhub_core::ports::StoreError;
use toolhub_core::{Lang, Localize};

/// An error of a request.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    /// A stable name for programs, the last segment of `type`.
    pub(crate) kind: &'static str,
    pub(crate) detail: LocalizedText,
    /// The server to look at, for pages.
    pub(crate) server: Option<String>,
}

/// The body of an error response.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct ProblemBody {
    /// A URI reference that identifies the kind of the problem.
    r#type: String,
    /// The HTTP status.
    status: u16,
    /// A short summary.
    title: String,
    /// What is wrong, and what to do.
    detail: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, kind: &'static str, detail: impl Into<LocalizedText>) -> Self {
        Self { status, kind, detail: detail.into(), server: None }
    }

    /// Names the server to look at.
    pub(crate) fn with_server(self, id: impl Into<String>) -> Self {
        Self { server: Some(id.into()), ..self }
    }

    pub(crate) fn bad_request(en: impl Into<String>, zh: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", LocalizedText::new(en, zh))
    }

    /// The resource does not exist, or the principal may not know that it does.
    pub(crate) fn not_found(en: impl Into<String>, zh: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", LocalizedText::new(en, zh))
    }

    pub(crate) fn unauthenticated() -> Self {
        let detail = LocalizedText::new(
            "log in first: run `toolhub console` on the machine of the hub, or send a key with `Authorization: Bearer`",
            "请先登录：在 hub 所在的机器上运行 `toolhub console`，或以 `Authorization: Bearer` 发送密钥",
        );
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail)
    }

    pub(crate) fn forbidden(en: impl Into<String>, zh: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", LocalizedText::new(en, zh))
    }

    /// The store of the sessions cannot be used: whose request it is cannot be decided, or the session goes on.
    pub(crate) fn sessions_unavailable(error: &std::io::Error) -> Self {
        let detail = LocalizedText::new(
            format!("the sessions cannot be read or changed now, try again: {error}"),
            format!("暂时无法读取或更改会话，请重试：{error}"),
        );
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "store", detail)
    }

    pub(crate) fn body(&self, lang: Lang) -> ProblemBody {
        ProblemBody {
            r#type: format!("urn:toolhub:problem:{}", self.kind),
            status: self.status.as_u16(),
            title: self.status.canonical_reason().unwrap_or("error").to_owned(),
            detail: self.detail.localize(lang),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let detail =
            LocalizedText::new(format!("the store is unavailable: {error}"), format!("存储不可用：{error}"));
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "store-unavailable", detail)
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        let detail = LocalizedText::new(
            format!("a file of the hub cannot be read or written: {error}"),
            format!("无法读写 hub 的文件：{error}"),
        );
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "io", detail)
    }
}
