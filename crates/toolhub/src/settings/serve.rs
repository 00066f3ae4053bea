//! `[serve]` of `toolhub.toml`: the address and limits of the gateway.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use toolhub_core::lang::LocalizedText;
use toolhub_server::{Authenticator, BudgetLimits, LogDestination, ServeOptions, ServerAccess};

use super::bind::BindAddress;
use super::span::DurationSetting;

/// The default address of the gateway.
pub const DEFAULT_BIND: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7460);

/// `[serve]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ServeSettings {
    /// The listening address.
    pub bind: Option<BindAddress>,
    /// Accepted host names, besides those of this machine.
    pub hosts: Vec<String>,
    /// Accepted origins of web pages, besides those of this machine.
    pub origins: Vec<String>,
    /// The maximum size of a message in bytes.
    pub body_bytes: Option<usize>,
    /// The maximum number of concurrent requests per caller.
    #[serde(alias = "at_once")]
    pub max_concurrent: Option<usize>,
    /// The maximum number of requests per second and caller.
    pub per_second: Option<u32>,
    /// Timeout for receiving the head of a request.
    pub header_timeout: Option<DurationSetting>,
    /// Whether the usual request is handled without hyper.
    pub fast_path: Option<bool>,
    /// Grace period for running requests when the server is stopped.
    pub drain: Option<DurationSetting>,
    /// Resource limits per caller.
    pub limits: ServeLimits,
    /// The access log: `off`, `stderr`, or a file, relative to the folder of the config file.
    pub access_log: Option<String>,
}

/// `[serve.limits]`: limits per caller for resources that all callers share. A caller is a token, or an address if there are no
/// tokens.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ServeLimits {
    /// Sessions per profile; the least recently used one is ended for another.
    pub sessions: Option<usize>,
    /// Event streams that belong to no request.
    pub streams: Option<usize>,
    /// Requests that wait for input of their client; the oldest is cancelled for another.
    pub pending_input: Option<usize>,
    /// Resource subscriptions.
    pub subscriptions: Option<usize>,
    /// Bytes of messages over 64 KiB that are being received or handled.
    pub upload_bytes: Option<usize>,
    /// Bytes of responses over 64 KiB that have not been read yet.
    pub unread_bytes: Option<usize>,
    /// Bytes of events that are kept for resumable streams.
    pub replay_bytes: Option<usize>,
    /// Connections per address that have not sent their first request yet.
    pub unproven_connections: Option<usize>,
    /// How long a client may read nothing of a response before its connection is closed.
    pub write_timeout: Option<DurationSetting>,
}

impl ServeLimits {
    /// The first limit that is 0.
    fn zero(&self) -> Option<&'static str> {
        let limits = [
            ("sessions", self.sessions),
            ("streams", self.streams),
            ("pending_input", self.pending_input),
            ("subscriptions", self.subscriptions),
            ("upload_bytes", self.upload_bytes),
            ("unread_bytes", self.unread_bytes),
            ("replay_bytes", self.replay_bytes),
            ("unproven_connections", self.unproven_connections),
        ];
        limits.into_iter().find(|(_, limit)| *limit == Some(0)).map(|(key, _)| key)
    }
}

impl ServeSettings {
    /// How long running requests may take when the process ends.
    pub fn drain(&self) -> Duration {
        self.drain.map_or_else(|| ServeOptions::at(self.address(None)).drain, |span| span.0)
    }

    /// The first invalid setting: its key in the file, and the error.
    pub(super) fn problem(&self) -> Option<(&'static str, LocalizedText)> {
        if self.max_concurrent == Some(0) || self.per_second == Some(0) || self.body_bytes == Some(0) {
            let key = if self.max_concurrent == Some(0) { "max_concurrent" } else { "[serve]" };
            return Some(rejects_all(key));
        }
        if let Some(key) = self.limits.zero() {
            return Some(rejects_all(key));
        }
        if let Some(origin) = self.origins.iter().find(|origin| !origin.contains("://")) {
            let what = LocalizedText::new(
                format!("`{origin}` is no origin: write it like `https://app.example`"),
                format!("`{origin}` 不是来源：请写成 `https://app.example` 的形式"),
            );
            return Some(("origins", what));
        }
        None
    }

    /// The access log, if one is set.
    pub fn access_log(&self, config: &Path) -> Option<LogDestination> {
        match self.access_log.as_deref().map(str::trim) {
            None | Some("" | "off") => None,
            Some("stderr") => Some(LogDestination::Stderr),
            Some(file) => Some(LogDestination::File(config.with_file_name("").join(file))),
        }
    }

    pub(crate) fn limits_of_callers(&self, defaults: &BudgetLimits) -> BudgetLimits {
        let limits = &self.limits;
        BudgetLimits {
            max_concurrent: self.max_concurrent.unwrap_or(defaults.max_concurrent),
            per_second: self.per_second.or(defaults.per_second),
            sessions: limits.sessions.unwrap_or(defaults.sessions),
            streams: limits.streams.unwrap_or(defaults.streams),
            pending_input: limits.pending_input.unwrap_or(defaults.pending_input),
            subscriptions: limits.subscriptions.unwrap_or(defaults.subscriptions),
            upload_bytes: limits.upload_bytes.unwrap_or(defaults.upload_bytes),
            unread_bytes: limits.unread_bytes.unwrap_or(defaults.unread_bytes),
            replay_bytes: limits.replay_bytes.unwrap_or(defaults.replay_bytes),
        }
    }

    /// The listening address.
    pub fn address(&self, bind: Option<BindAddress>) -> SocketAddr {
        bind.or(self.bind).map_or(DEFAULT_BIND, |bind| bind.0)
    }

    /// The options of the HTTP server, whose tokens are verified by `authenticator`.
    pub fn options(&self, authenticator: Arc<dyn Authenticator>, bind: Option<BindAddress>) -> ServeOptions {
        let defaults = ServeOptions::at(self.address(bind));
        let access = ServerAccess {
            hosts: self.hosts.clone(),
            origins: self.origins.clone(),
            authenticator,
            ..ServerAccess::default()
        };
        ServeOptions {
            access,
            body_bytes: self.body_bytes.unwrap_or(defaults.body_bytes),
            limits: self.limits_of_callers(&defaults.limits),
            unproven_connections: self.limits.unproven_connections.unwrap_or(defaults.unproven_connections),
            write_timeout: self.limits.write_timeout.map_or(defaults.write_timeout, |span| span.0),
            header_timeout: self.header_timeout.map_or(defaults.header_timeout, |span| span.0),
            fast_path: self.fast_path.unwrap_or(defaults.fast_path),
            drain: self.drain.map_or(defaults.drain, |span| span.0),
            ..defaults
        }
    }
}

/// The error for a limit of 0.
fn rejects_all(key: &'static str) -> (&'static str, LocalizedText) {
    let what = LocalizedText::new(
        "0 would refuse every request: leave it out, or name a number",
        "0 会拒绝所有请求：请去掉，或写一个数",
    );
    (key, what)
}

#[cfg(test)]
mod tests {
    use toolhub_core::{Lang, Localize as _};

    use super::*;

    #[test]
    fn access_log_is_off_by_default() {
        let check = |setting: Option<&str>, expect: Option<LogDestination>| {
            let settings =
                ServeSettings { access_log: setting.map(str::to_owned), ..ServeSettings::default() };
            assert_eq!(settings.access_log(Path::new("/etc/hub/toolhub.toml")), expect, "{setting:?}");
        };
        check(None, None);
        check(Some("off"), None);
        check(Some("stderr"), Some(LogDestination::Stderr));
        check(Some("access.log"), Some(LogDestination::File("/etc/hub/access.log".into())));
        check(Some("/var/log/hub.log"), Some(LogDestination::File("/var/log/hub.log".into())));
    }

    #[test]
    fn reports_settings_that_reject_every_request() {
        #[derive(Deserialize)]
        struct File {
            #[serde(default)]
            serve: ServeSettings,
        }
        let check = |text: &str, expect: Option<&str>| {
            let file: File = toml_edit::de::from_str(text).unwrap();
            let found = file.serve.problem().map(|(_, what)| what.localize(Lang::En));
            assert_eq!(found.is_some(), expect.is_some(), "{text}: {found:?}");
            assert!(found.unwrap_or_default().contains(expect.unwrap_or_default()), "{text}");
        };
        check("", None);
        check("[serve]\nbind = \"localhost:7460\"\norigins = [\"https://app.example\"]", None);
        check("[serve]\nmax_concurrent = 0", Some("refuse every request"));
        check("[serve]\nat_once = 0", Some("refuse every request"));
        check("[serve.limits]\nsessions = 0", Some("refuse every request"));
        check("[serve.limits]\nsessions = 5\nwrite_timeout = \"5s\"", None);
        check("[serve]\norigins = [\"app.example\"]", Some("no origin"));
    }
}
