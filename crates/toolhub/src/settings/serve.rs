//! `[serve]` and `[auth]` of `toolhub.toml`: where the gateway listens, who may come in, and how much they may ask.

use std::net::SocketAddr;

use serde::Deserialize;
use toolhub_server::{Door, ServeOptions, Token};

use super::span::Span;

/// Where the gateway listens where nothing is said.
pub const DEFAULT_BIND: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7460);

/// `[serve]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ServeSettings {
    /// Where it listens.
    pub bind: Option<SocketAddr>,
    /// Names under which the host may be called, beside those of this machine.
    pub hosts: Vec<String>,
    /// Origins that web pages may come from, beside those of this machine.
    pub origins: Vec<String>,
    /// The most bytes of one message.
    pub body_bytes: Option<usize>,
    /// Requests of one caller at the same time.
    pub at_once: Option<usize>,
    /// Requests of one caller in a second.
    pub per_second: Option<u32>,
    /// How long what runs may take to end when the server is stopped.
    pub drain: Option<Span>,
}

/// `[auth]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct AuthSettings {
    /// Who may come in, each by a token.
    pub tokens: Vec<TokenSettings>,
}

/// One of `[auth] tokens`
#[derive(Debug, Clone, Deserialize)]
pub struct TokenSettings {
    /// Who it is for.
    pub name: String,
    /// The hash of the token.
    pub sha256: String,
}

impl ServeSettings {
    /// How the hub is served.
    pub fn options(&self, auth: &AuthSettings, bind: Option<SocketAddr>) -> ServeOptions {
        let usual = ServeOptions::at(bind.or(self.bind).unwrap_or(DEFAULT_BIND));
        let token = |token: &TokenSettings| Token { name: token.name.clone(), sha256: token.sha256.clone() };
        let door = Door {
            hosts: self.hosts.clone(),
            origins: self.origins.clone(),
            tokens: auth.tokens.iter().map(token).collect(),
            ..Door::default()
        };
        ServeOptions {
            door,
            body_bytes: self.body_bytes.unwrap_or(usual.body_bytes),
            at_once: self.at_once.unwrap_or(usual.at_once),
            per_second: self.per_second.or(usual.per_second),
            drain: self.drain.map_or(usual.drain, |span| span.0),
            ..usual
        }
    }
}
