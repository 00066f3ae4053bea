//! Failures of a search, in both languages, with a correction. No message contains a key or a full URL.

use std::time::Duration;

use toolhub_core::ToolError;
use toolhub_core::lang::{Lang, Localize, LocalizedText};

use super::key::KeySource;
use super::provider::SearchProvider;
use super::setup_help;

/// Why a search failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", self.localize(Lang::En))]
pub(super) enum SearchError {
    /// No service is configured.
    NotConfigured,
    /// The configuration is invalid.
    InvalidConfig(LocalizedText),
    /// An argument is invalid.
    InvalidArgument(LocalizedText),
    /// The HTTP client cannot be created.
    NoClient { cause: String },
    /// The connection failed.
    Unreachable { location: String, cause: String },
    /// The connection was lost.
    Lost { location: String, cause: String },
    /// The deadline expired.
    TimedOut { location: String, after: Duration },
    /// A redirect to another origin.
    Redirected { location: String, to: Option<String> },
    /// The key was rejected.
    KeyRejected { provider: SearchProvider, key: KeySource, status: u16, message: String },
    /// A SearXNG instance that requires authentication.
    AuthRequired { location: String },
    /// A SearXNG instance without JSON output.
    NoJson { location: String },
    /// Rate limited.
    RateLimited(RateLimit),
    /// Any other HTTP status.
    Status { provider: SearchProvider, location: String, status: u16, message: String },
    /// The response exceeds the size limit.
    TooLarge { location: String, limit: usize },
    /// An HTML page instead of results.
    WebPage { provider: SearchProvider, location: String },
    /// A response in another format.
    Unreadable { provider: SearchProvider, location: String, why: String },
    /// SearXNG got no response from any engine.
    EnginesUnresponsive { location: String, engines: Vec<String> },
}

/// A rate limit.
#[derive(Debug, Clone)]
pub(super) struct RateLimit {
    pub(super) provider: SearchProvider,
    pub(super) location: String,
    /// The requested delay, if any.
    pub(super) wait: Option<Duration>,
    pub(super) message: String,
}

impl From<SearchError> for ToolError {
    fn from(failure: SearchError) -> Self {
        Self::failed(LocalizedText::new(failure.localize(Lang::En), failure.localize(Lang::Zh)))
    }
}

impl Localize for SearchError {
    fn localize(&self, lang: Lang) -> String {
        match self {
            Self::NotConfigured => lang.choose(setup_help::ENGLISH, setup_help::CHINESE).to_owned(),
            Self::InvalidConfig(text) | Self::InvalidArgument(text) => text.localize(lang),
            Self::NoClient { cause } => lang.choose(
                format!("the HTTP client cannot be made: {cause}"),
                format!("无法创建 HTTP 客户端：{cause}"),
            ),
            Self::Unreachable { location, cause } => lang.choose(
                format!("the search service at `{location}` could not be reached: {cause}"),
                format!("无法连接搜索服务 `{location}`：{cause}"),
            ),
            Self::Lost { location, cause } => lang.choose(
                format!("the connection to the search service at `{location}` broke off: {cause}"),
                format!("与搜索服务 `{location}` 的连接中断：{cause}"),
            ),
            Self::TimedOut { location, after } => {
                let after = after.as_secs_f64();
                lang.choose(
                    format!("the search service at `{location}` did not answer within {after} s"),
                    format!("搜索服务 `{location}` 在 {after} 秒内没有回答"),
                )
            }
            Self::Redirected { location, to } => {
                let to = to.as_deref().unwrap_or("?");
                lang.choose(
                    format!("the search service at `{location}` sends its callers on to `{to}`, which is not followed: if you trust that place, make it the `url`"),
                    format!("搜索服务 `{location}` 转到了 `{to}`，不会跟随：如果信任那里，请把它写成 `url`"),
                )
            }
            Self::KeyRejected { provider, key, status, message } => {
                let (name, key, message) = (provider.name(), key.name(), quoted(message));
                lang.choose(
                    format!("{name} does not accept the key from {key} (HTTP status {status}){message}: check that key"),
                    format!("{name} 不接受来自 {key} 的密钥（HTTP 状态 {status}）{message}：请检查这个密钥"),
                )
            }
            Self::AuthRequired { location } => lang.choose(
                format!("SearXNG at `{location}` requires a login (HTTP status 401): put it into the `url` as `https://name:password@…`, or a token into `api_key`"),
                format!("`{location}` 上的 SearXNG 要求登录（HTTP 状态 401）：请在 `url` 中写 `https://用户:密码@…`，或把令牌写进 `api_key`"),
            ),
            Self::NoJson { location } => lang.choose(
                format!("SearXNG at `{location}` does not answer with JSON (HTTP status 403): write `formats: [html, json]` under `search:` in its settings.yml and restart it; most public instances do not allow it"),
                format!("`{location}` 上的 SearXNG 不提供 JSON（HTTP 状态 403）：请在它的 settings.yml 的 `search:` 下写 `formats: [html, json]` 并重启；多数公共实例不允许"),
            ),
            Self::RateLimited(limit) => limit.localize(lang),
            Self::Status { provider, location, status, message } => {
                let (name, message) = (provider.name(), quoted(message));
                let hint = match status {
                    404 | 405 => lang.choose("; check the `url`", "；请检查 `url`"),
                    _ => "",
                };
                lang.choose(
                    format!("{name} at `{location}` answered with HTTP status {status}{message}{hint}"),
                    format!("`{location}` 上的 {name} 返回 HTTP 状态 {status}{message}{hint}"),
                )
            }
            Self::TooLarge { location, limit } => {
                let limit = limit >> 20;
                lang.choose(
                    format!("the answer of the search service at `{location}` has more than {limit} MiB"),
                    format!("搜索服务 `{location}` 的回答超过 {limit} MiB"),
                )
            }
            Self::WebPage { provider, location } => {
                let name = provider.name();
                lang.choose(
                    format!("`{location}` answered with a web page in place of JSON: check that the `url` is that of {name}"),
                    format!("`{location}` 返回的是网页而不是 JSON：请检查 `url` 是否为 {name} 的地址"),
                )
            }
            Self::Unreadable { provider, location, why } => {
                let name = provider.name();
                lang.choose(
                    format!("the answer of {name} at `{location}` could not be read: {why}"),
                    format!("无法读懂 `{location}` 上 {name} 的回答：{why}"),
                )
            }
            Self::EnginesUnresponsive { location, engines } => {
                let engines = engines.join(", ");
                lang.choose(
                    format!("none of the engines that SearXNG at `{location}` asks has answered: {engines}"),
                    format!("`{location}` 上的 SearXNG 所用的引擎都没有回答：{engines}"),
                )
            }
        }
    }
}

impl Localize for RateLimit {
    fn localize(&self, lang: Lang) -> String {
        let (name, location, message) = (self.provider.name(), &self.location, quoted(&self.message));
        let wait = match self.wait.map(|wait| wait.as_secs()) {
            Some(seconds) => {
                lang.choose(format!("try again in {seconds} s"), format!("请在 {seconds} 秒后再试"))
            }
            None => lang.choose("try again later", "请稍后再试").to_owned(),
        };
        let hint = match self.provider {
            SearchProvider::Searxng => lang.choose(
                "; its limiter allows only a few JSON searches an hour: if it is yours, add this machine to `pass_ip` in its limiter.toml",
                "；它的 limiter 每小时只允许几次 JSON 搜索：如果是你的实例，请把本机加入 limiter.toml 的 `pass_ip`",
            ),
            _ => "",
        };
        lang.choose(
            format!("{name} at `{location}` has limited the rate of requests (HTTP status 429){message}: {wait}{hint}"),
            format!("对 `{location}` 上 {name} 的请求过于频繁（HTTP 状态 429）{message}：{wait}{hint}"),
        )
    }
}

fn quoted(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(" (\"{message}\")") }
}
