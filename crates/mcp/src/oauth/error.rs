//! How a login fails, told in either language; what that means for a call is `guard`'s to say.

use std::time::Duration;

use toolhub_core::lang::{Lang, Say, Text};

/// Why a login, or its renewal, came to nothing. No variant holds a secret.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", self.say(Lang::En))]
pub enum OAuthError {
    /// The server is a child process: there is nothing to log in to.
    NotHttp,
    /// The config sets `Authorization` itself.
    OwnHeader,
    /// The server does not say where one logs in.
    NotOffered,
    /// Tokens and codes are not sent where others can read them.
    Insecure {
        /// Where they would have gone.
        url: String,
    },
    /// Something could not be reached, or its answer broke off.
    Unreachable {
        /// What, as host and port.
        place: String,
        /// Why.
        cause: String,
    },
    /// An answer was an error.
    Refused {
        /// Whose, as host and port.
        place: String,
        /// The HTTP status.
        status: u16,
        /// The code of the error, such as `invalid_grant`; empty where it gave none.
        code: String,
        /// What it said beside that.
        said: String,
    },
    /// An answer could not be read.
    Unreadable {
        /// Whose, as host and port.
        place: String,
        /// What was wrong with it.
        detail: String,
    },
    /// An answer came from, or speaks for, somebody else than was asked.
    WrongIssuer {
        /// Who was asked.
        expected: String,
        /// Who answered; empty where it does not say.
        found: String,
    },
    /// The server names another authorization server than the one its credentials were first used with.
    IssuerChanged {
        /// Which server.
        server: String,
        /// What they are bound to.
        bound: String,
        /// What is named now in its place.
        found: String,
        /// The authorization server that is named now.
        issuer: String,
    },
    /// The server describes itself as another one.
    WrongResource {
        /// The server's url.
        expected: String,
        /// What it says it is.
        found: String,
    },
    /// The authorization server does not say that it knows PKCE with S256.
    NoPkce {
        /// Which.
        issuer: String,
    },
    /// The authorization server wants clients it knows, and there is no way to become one.
    NoRegistration {
        /// Which.
        issuer: String,
    },
    /// The authorization server, or the user there, said no.
    Denied {
        /// The code of the error, such as `access_denied`.
        code: String,
        /// What was said beside that.
        said: String,
    },
    /// The browser's answer cannot be received.
    NoPort {
        /// Where we wanted to listen; 0 for anywhere.
        port: u16,
        /// Why not.
        cause: String,
    },
    /// Nobody came back from the browser.
    TimedOut(Duration),
    /// What was learned cannot be kept, or what was kept cannot be read.
    Store(String),
    /// The config cannot be used.
    Config(String),
}

impl OAuthError {
    /// The same in both languages at once.
    pub(crate) fn text(&self) -> Text {
        Text::new(self.say(Lang::En), self.say(Lang::Zh))
    }

    /// Whether it stays like that until the owner decides something.
    pub(crate) fn needs_owner(&self) -> bool {
        matches!(self, Self::IssuerChanged { .. } | Self::WrongIssuer { .. } | Self::Insecure { .. })
    }

    /// Whether the grant is void, so that only a new login helps. What is wrong for the moment is not.
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

impl Say for OAuthError {
    fn say(&self, lang: Lang) -> String {
        match self {
            Self::NotHttp => lang.pick(
                "it is started as a program: what it needs to know goes into its `env` in mcp.json".to_owned(),
                "它以程序方式启动：所需凭据请写在 mcp.json 的 `env` 中".to_owned(),
            ),
            Self::OwnHeader => lang.pick(
                "its config sets the header `Authorization`: remove it from mcp.json to log in instead".to_owned(),
                "它的配置已设置请求头 `Authorization`：要改用登录，请先从 mcp.json 中删除".to_owned(),
            ),
            Self::NotOffered => lang.pick(
                "it does not say where to log in: it may need no login, or a key in `headers` in mcp.json".to_owned(),
                "它没有说明在哪里登录：可能不需要登录，或需要在 mcp.json 的 `headers` 中设置密钥".to_owned(),
            ),
            Self::Insecure { url } => lang.pick(
                format!("`{url}` is refused: a login needs https and a public address, unless the server itself is on this machine or in a private network (`oauth = {{ private_network = true }}` if it is)"),
                format!("拒绝使用 `{url}`：登录需要 https 和公网地址，除非服务器本身就在本机或内网（若在内网，请设置 `oauth = {{ private_network = true }}`）"),
            ),
            Self::Unreachable { place, cause } => lang.pick(
                format!("`{place}` could not be reached: {cause}"),
                format!("无法连接 `{place}`：{cause}"),
            ),
            Self::Refused { place, status, code, said } => {
                let code = if code.is_empty() { format!("HTTP status {status}") } else { format!("`{code}`") };
                let said = tail(said);
                lang.pick(
                    format!("`{place}` refused with {code}{said}"),
                    format!("`{place}` 拒绝了请求（{code}）{said}"),
                )
            }
            Self::Unreadable { place, detail } => lang.pick(
                format!("the answer of `{place}` could not be read: {detail}"),
                format!("无法读懂 `{place}` 的回答：{detail}"),
            ),
            Self::WrongIssuer { expected, found } => lang.pick(
                format!("the answer should come from `{expected}` and names `{found}`: it is not trusted"),
                format!("回答应来自 `{expected}`，但写的是 `{found}`：不予信任"),
            ),
            Self::IssuerChanged { server, bound, found, issuer } => lang.pick(
                format!("its credentials are bound to `{bound}`, where they were first used, and it now names `{found}`: nothing was sent there; if you trust it, run `toolhub servers login {server} --issuer {issuer}`"),
                format!("它的凭据绑定于首次使用的 `{bound}`，而现在指向 `{found}`：未向后者发送任何内容；若信任它，请运行 `toolhub servers login {server} --issuer {issuer}`"),
            ),
            Self::WrongResource { expected, found } => lang.pick(
                format!("the server at `{expected}` describes itself as `{found}`: it is not trusted"),
                format!("`{expected}` 处的服务器自称 `{found}`：不予信任"),
            ),
            Self::NoPkce { issuer } => lang.pick(
                format!("`{issuer}` does not offer PKCE with S256, without which a login is not safe"),
                format!("`{issuer}` 不支持 PKCE（S256），登录不安全"),
            ),
            Self::NoRegistration { issuer } => lang.pick(
                format!("`{issuer}` wants to know its clients: register one there and set `oauth = {{ client_id = \"…\" }}` for the server under `[[servers]]` in toolhub.toml"),
                format!("`{issuer}` 只接受已注册的客户端：请在那里注册，并在 toolhub.toml 的 `[[servers]]` 中为该服务器设置 `oauth = {{ client_id = \"…\" }}`"),
            ),
            Self::Denied { code, said } => {
                let said = tail(said);
                lang.pick(format!("the login was refused: `{code}`{said}"), format!("登录被拒绝：`{code}`{said}"))
            }
            Self::NoPort { port, cause } => lang.pick(
                format!("the browser's answer cannot be received on port {port}: {cause}"),
                format!("无法在端口 {port} 接收浏览器的回答：{cause}"),
            ),
            Self::TimedOut(after) => {
                let minutes = after.as_secs() / 60;
                lang.pick(
                    format!("nobody came back from the browser within {minutes} minutes"),
                    format!("{minutes} 分钟内没有收到浏览器的回答"),
                )
            }
            Self::Store(cause) => lang.pick(
                format!("the login cannot be kept: {cause}"),
                format!("无法保存登录信息：{cause}"),
            ),
            Self::Config(cause) => lang.pick(cause.clone(), format!("配置有误：{cause}")),
        }
    }
}
