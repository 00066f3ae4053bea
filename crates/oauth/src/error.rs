//! Errors of a login, in both languages. `token_manager` maps them to errors of a call.

use std::time::Duration;

use toolhub_core::lang::{Lang, Localize, LocalizedText};
use toolhub_core::shell;

/// Why a login or its renewal failed. No variant holds a secret.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", self.localize(Lang::En))]
pub enum OAuthError {
    /// The server is a child process: there is no login.
    NotHttp,
    /// The configuration sets `Authorization` itself.
    OwnHeader,
    /// The server does not offer a login.
    NotOffered,
    /// The URL is not safe for tokens and codes.
    Insecure {
        /// The rejected URL.
        url: String,
    },
    /// A request failed, or its response was interrupted.
    Unreachable {
        /// Host and port.
        location: String,
        /// The cause.
        cause: String,
    },
    /// The response was an error.
    Refused {
        /// Host and port.
        location: String,
        /// The HTTP status.
        status: u16,
        /// The error code, such as `invalid_grant`; may be empty.
        code: String,
        /// The error description.
        description: String,
    },
    /// The response is invalid.
    Unreadable {
        /// Host and port.
        location: String,
        /// The reason.
        detail: String,
    },
    /// The response is from, or for, another issuer than expected.
    WrongIssuer {
        /// The expected issuer.
        expected: String,
        /// The issuer found; empty if the response names none.
        found: String,
    },
    /// The server names another authorization server than the one its credentials were first used with.
    IssuerChanged {
        /// The server.
        server: String,
        /// The bound issuer or token origin.
        bound: String,
        /// Its current value.
        found: String,
        /// The authorization server that is named now.
        issuer: String,
    },
    /// The resource metadata is for another server.
    WrongResource {
        /// The URL of the server.
        expected: String,
        /// The resource in the metadata.
        found: String,
    },
    /// The authorization server does not announce PKCE with S256.
    NoPkce {
        /// The issuer.
        issuer: String,
    },
    /// The authorization server requires a registered client, and offers no registration.
    NoRegistration {
        /// The issuer.
        issuer: String,
    },
    /// The authorization server or the user denied the request.
    Denied {
        /// The error code, such as `access_denied`.
        code: String,
        /// The error description.
        description: String,
    },
    /// The listener for the browser redirect could not be opened.
    NoPort {
        /// The port; 0 for any.
        port: u16,
        /// The cause.
        cause: String,
    },
    /// No redirect arrived within the timeout.
    TimedOut(Duration),
    /// The login could not be stored or read.
    Store(String),
    /// The configuration is invalid.
    Config(String),
}

impl OAuthError {
    /// The message in both languages.
    pub fn text(&self) -> LocalizedText {
        LocalizedText::new(self.localize(Lang::En), self.localize(Lang::Zh))
    }

    /// Whether it persists until the owner acts.
    pub(crate) fn needs_owner(&self) -> bool {
        matches!(self, Self::IssuerChanged { .. } | Self::WrongIssuer { .. } | Self::Insecure { .. })
    }

    /// Whether the grant is invalid, so that a new login is required. Temporary errors are not.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Refused { status, code, .. } => {
                matches!(status, 400 | 401 | 403)
                    && !code.is_empty()
                    && !matches!(code.as_str(), "temporarily_unavailable" | "slow_down" | "server_error")
            }
            _ => false,
        }
    }
}

/// `: text`, or nothing.
fn tail(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

impl Localize for OAuthError {
    fn localize(&self, lang: Lang) -> String {
        match self {
            Self::NotHttp => lang.choose(
                "it is started as a program: what it needs to know goes into its `env` in mcp.json".to_owned(),
                "它以程序方式启动：所需凭据请写在 mcp.json 的 `env` 中".to_owned(),
            ),
            Self::OwnHeader => lang.choose(
                "its config sets the header `Authorization`: remove it from mcp.json to log in instead".to_owned(),
                "它的配置已设置请求头 `Authorization`：要改用登录，请先从 mcp.json 中删除".to_owned(),
            ),
            Self::NotOffered => lang.choose(
                "it does not say where to log in: it may need no login, or a key in `headers` in mcp.json".to_owned(),
                "它没有说明在哪里登录：可能不需要登录，或需要在 mcp.json 的 `headers` 中设置密钥".to_owned(),
            ),
            Self::Insecure { url } => lang.choose(
                format!("`{url}` is refused: a login needs https and a public address, unless the server itself is on this machine or in a private network (`oauth = {{ private_network = true }}` if it is)"),
                format!("拒绝使用 `{url}`：登录需要 https 和公网地址，除非服务器本身就在本机或内网（若在内网，请设置 `oauth = {{ private_network = true }}`）"),
            ),
            Self::Unreachable { location, cause } => lang.choose(
                format!("`{location}` could not be reached: {cause}"),
                format!("无法连接 `{location}`：{cause}"),
            ),
            Self::Refused { location, status, code, description } => {
                let code = if code.is_empty() { format!("HTTP status {status}") } else { format!("`{code}`") };
                let description = tail(description);
                lang.choose(
                    format!("`{location}` refused with {code}{description}"),
                    format!("`{location}` 拒绝了请求（{code}）{description}"),
                )
            }
            Self::Unreadable { location, detail } => lang.choose(
                format!("the answer of `{location}` could not be read: {detail}"),
                format!("无法读懂 `{location}` 的回答：{detail}"),
            ),
            Self::WrongIssuer { expected, found } => lang.choose(
                format!("the answer should come from `{expected}` and names `{found}`: it is not trusted"),
                format!("回答应来自 `{expected}`，但写的是 `{found}`：不予信任"),
            ),
            Self::IssuerChanged { server, bound, found, issuer } => lang.choose(
                format!("its credentials are bound to `{bound}`, where they were first used, and it now names `{found}`: nothing was sent there; if you trust it, run `toolhub servers login {0} --issuer {1}`", shell::shell_quote(server.as_str()), shell::shell_quote(issuer)),
                format!("它的凭据绑定于首次使用的 `{bound}`，而现在指向 `{found}`：未向后者发送任何内容；若信任它，请运行 `toolhub servers login {0} --issuer {1}`", shell::shell_quote(server.as_str()), shell::shell_quote(issuer)),
            ),
            Self::WrongResource { expected, found } => lang.choose(
                format!("the server at `{expected}` describes itself as `{found}`: it is not trusted"),
                format!("`{expected}` 处的服务器自称 `{found}`：不予信任"),
            ),
            Self::NoPkce { issuer } => lang.choose(
                format!("`{issuer}` does not offer PKCE with S256, without which a login is not safe"),
                format!("`{issuer}` 不支持 PKCE（S256），登录不安全"),
            ),
            Self::NoRegistration { issuer } => lang.choose(
                format!("`{issuer}` requires registered clients: register one there and set `oauth = {{ client_id = \"…\" }}` for the server under `[[servers]]` in toolhub.toml"),
                format!("`{issuer}` 只接受已注册的客户端：请在那里注册，并在 toolhub.toml 的 `[[servers]]` 中为该服务器设置 `oauth = {{ client_id = \"…\" }}`"),
            ),
            Self::Denied { code, description } => {
                let description = tail(description);
                lang.choose(format!("the login was refused: `{code}`{description}"), format!("登录被拒绝：`{code}`{description}"))
            }
            Self::NoPort { port, cause } => lang.choose(
                format!("the browser's answer cannot be received on port {port}: {cause}"),
                format!("无法在端口 {port} 接收浏览器的回答：{cause}"),
            ),
            Self::TimedOut(after) => {
                let minutes = after.as_secs() / 60;
                lang.choose(
                    format!("the login was not completed in the browser within {minutes} minutes"),
                    format!("{minutes} 分钟内没有收到浏览器的回答"),
                )
            }
            Self::Store(cause) => lang.choose(
                format!("the login cannot be kept: {cause}"),
                format!("无法保存登录信息：{cause}"),
            ),
            Self::Config(cause) => lang.choose(cause.clone(), format!("配置有误：{cause}")),
        }
    }
}
