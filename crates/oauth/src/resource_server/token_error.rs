//! Why an access token was refused, in both languages. Errors name the configured issuer, never the token or its claims.

use std::sync::Arc;
use std::time::Duration;

use toolhub_core::lang::{Lang, Localize, LocalizedText};

/// The refusal of an access token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.localize(Lang::En))]
pub struct TokenError {
    /// The reason.
    pub kind: TokenErrorKind,
    /// The configured issuer that the token was checked against, once it is selected.
    pub issuer: Option<Arc<str>>,
}

/// The reason for a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenErrorKind {
    /// The token is longer than 16 KiB.
    TooLong,
    /// The token is neither a compact JWS with unambiguous JSON nor an opaque bearer token.
    Malformed,
    /// The token is opaque, and no issuer has introspection.
    Opaque,
    /// The algorithm is not one of RS256, PS256, ES256 and EdDSA.
    Algorithm,
    /// The header has critical extensions (`crit`), none of which is supported.
    CriticalHeader,
    /// The header `typ` is not that of an access token.
    Type,
    /// The issuer is not configured, or differs from the one that answered.
    UnknownIssuer,
    /// The issuer has no such key for the algorithm.
    UnknownKey,
    /// The signature is wrong.
    Signature,
    /// The claims are those of an ID token, a refresh token or a logout token.
    NotAccessToken,
    /// The token is bound to a key of the client (DPoP, mutual TLS), which is not supported.
    SenderConstrained,
    /// The token is for another resource.
    Audience,
    /// The token has no `exp`, or has expired.
    Expired,
    /// The token is not valid yet, or was issued in the future.
    NotYetValid,
    /// The token has no usable subject.
    Subject,
    /// The issuer states that the token is not active.
    Inactive,
    /// The response of a login does not belong to a login that this browser has begun.
    LoginState,
    /// The issuer did not log the person in.
    LoginRefused {
        /// The error code of the issuer.
        code: String,
    },
    /// The issuer has no such key, but may have added it since its keys were fetched.
    NewKey {
        /// When the keys may be fetched again.
        retry_after: Duration,
    },
    /// The issuer could not be asked. The token may be valid.
    Unavailable {
        /// The cause.
        cause: LocalizedText,
    },
}

impl TokenErrorKind {
    /// Adds the issuer.
    pub(super) fn of(self, issuer: &Arc<str>) -> TokenError {
        TokenError { kind: self, issuer: Some(Arc::clone(issuer)) }
    }
}

impl From<TokenErrorKind> for TokenError {
    fn from(kind: TokenErrorKind) -> Self {
        Self { kind, issuer: None }
    }
}

impl TokenError {
    /// Whether the token may be valid, and the request should be answered with status 503 instead of 401.
    pub fn is_unavailable(&self) -> bool {
        matches!(self.kind, TokenErrorKind::Unavailable { .. } | TokenErrorKind::NewKey { .. })
    }

    /// Whether the token has expired.
    pub fn is_expired(&self) -> bool {
        matches!(self.kind, TokenErrorKind::Expired)
    }

    /// When the token should be sent again, if that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.kind {
            TokenErrorKind::NewKey { retry_after } => Some(retry_after),
            _ => None,
        }
    }

    /// The value of `error_description` in a challenge. Fixed texts only: the cause of an unavailable issuer is not for clients.
    pub fn description(&self) -> &'static str {
        self.kind.texts().0
    }
}

impl TokenErrorKind {
    /// The reason in English and Chinese.
    fn texts(&self) -> (&'static str, &'static str) {
        match self {
            Self::LoginState => (
                "this browser has not begun this login, or has begun another one since: log in again",
                "此登录不是由该浏览器发起，或之后又发起了另一次登录：请重新登录",
            ),
            Self::LoginRefused { .. } => ("the login was refused", "登录被拒绝"),
            Self::TooLong => ("the token is longer than 16 KiB", "令牌超过 16 KiB"),
            Self::Malformed => ("the token is malformed", "令牌格式有误"),
            Self::Opaque => (
                "the token is not a JWT, and no issuer has introspection",
                "令牌不是 JWT，且没有配置令牌内省的签发方",
            ),
            Self::Algorithm => (
                "the token is not signed with RS256, PS256, ES256 or EdDSA",
                "令牌的签名算法不是 RS256、PS256、ES256 或 EdDSA",
            ),
            Self::CriticalHeader => {
                ("the token has critical header extensions", "令牌头部含有不支持的关键扩展（crit）")
            }
            Self::Type => {
                ("the token has the type of another kind of token", "令牌的 typ 不是访问令牌的类型")
            }
            Self::UnknownIssuer => ("the token is from another issuer", "令牌来自未配置的签发方"),
            Self::UnknownKey => ("the issuer has no such key", "签发方没有对应的密钥"),
            Self::Signature => ("the signature of the token is wrong", "令牌签名有误"),
            Self::NotAccessToken => ("the token is not an access token", "令牌不是访问令牌"),
            Self::SenderConstrained => (
                "the token is bound to a key of the client, which is not supported",
                "不支持与客户端密钥绑定的令牌",
            ),
            Self::Audience => ("the token is for another resource", "令牌的受众不是该资源"),
            Self::Expired => ("the token has expired", "令牌已过期"),
            Self::NotYetValid => ("the token is not valid yet", "令牌尚未生效"),
            Self::Subject => ("the token has no usable subject", "令牌没有可用的主体（sub）"),
            Self::Inactive => ("the token is not active", "令牌已失效"),
            Self::NewKey { .. } => (
                "the key of the token is not known yet: try again later",
                "尚未获取到签发令牌的密钥：请稍后重试",
            ),
            Self::Unavailable { .. } => {
                ("the token could not be verified: its issuer is unavailable", "无法验证令牌：签发方不可用")
            }
        }
    }
}

impl Localize for TokenError {
    fn localize(&self, lang: Lang) -> String {
        let (en, zh) = self.kind.texts();
        let mut text = lang.choose(en, zh).to_owned();
        if let Some(issuer) = &self.issuer {
            text += &lang.choose(format!(" (issuer `{issuer}`)"), format!("（签发方 `{issuer}`）"));
        }
        if let TokenErrorKind::LoginRefused { code } = &self.kind {
            text += lang.choose(": ", "：");
            text += code;
        }
        if let TokenErrorKind::Unavailable { cause } = &self.kind {
            text += lang.choose(": ", "：");
            text += &cause.localize(lang);
        }
        text
    }
}
