//! The state of the authorization server: clients, codes, tokens, and counters.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use super::plan::OAuthPlan;

/// Request counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Registered clients.
    pub registered: usize,
    /// Authorization requests.
    pub authorized: usize,
    /// Redeemed codes.
    pub codes: usize,
    /// Used refresh tokens, valid or not.
    pub refreshed: usize,
    /// Tokens issued by the client credentials grant.
    pub by_client: usize,
    /// Refresh tokens used a second time.
    pub reused: usize,
    /// Revoked tokens.
    pub revoked: usize,
    /// Requests accepted by the protected server.
    pub served: usize,
}

/// A client.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) secret: Option<String>,
    /// Allowed redirect URIs; if empty, any loopback port.
    pub(super) redirects: Vec<String>,
}

/// The grant of a code or a refresh token.
#[derive(Debug, Clone)]
pub(super) struct Grant {
    pub(super) client: String,
    pub(super) scopes: String,
    pub(super) challenge: String,
    pub(super) redirect: String,
    /// The user who granted it; empty for a client.
    pub(super) user: String,
}

/// An access token.
#[derive(Debug, Clone)]
pub(super) struct Access {
    pub(super) scopes: String,
    pub(super) user: String,
}

#[derive(Debug, Default)]
pub(super) struct AuthorizationState {
    pub(super) clients: HashMap<String, Client>,
    pub(super) codes: HashMap<String, Grant>,
    pub(super) access: HashMap<String, Access>,
    /// The user of the browser.
    pub(super) user: String,
    pub(super) refresh: HashMap<String, Grant>,
    pub(super) used_tokens: Vec<String>,
    pub(super) counts: Counts,
    pub(super) violations: Vec<String>,
    pub(super) secrets: Vec<String>,
    pub(super) last_scopes: String,
    /// The authorization servers that the protected server names, if changed.
    pub(super) issuers: Option<Vec<String>>,
    /// The token endpoint, if changed.
    pub(super) token_endpoint: Option<String>,
}

impl AuthorizationState {
    pub(super) fn new(plan: &OAuthPlan) -> Self {
        let mut authorization = Self::default();
        if let Some((id, secret)) = plan.client {
            authorization.secrets.extend(secret.map(str::to_owned));
            let secret = secret.map(str::to_owned);
            authorization.clients.insert(id.to_owned(), Client { secret, redirects: Vec::new() });
        }
        authorization
    }

    /// Generates a secret, which must never appear in output.
    pub(super) fn secret(&mut self, what: &str) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let text = format!("{what}-{:x}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        self.secrets.push(text.clone());
        text
    }

    pub(super) fn record_violation(&mut self, what: impl Into<String>) {
        self.violations.push(what.into());
    }
}
