//! What the authorization server remembers: clients, codes, tokens, and how often it was asked for each.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use super::plan::OAuthPlan;

/// How often things were asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Clients registered.
    pub registered: usize,
    /// Browsers sent through.
    pub authorized: usize,
    /// Codes redeemed.
    pub codes: usize,
    /// Refresh tokens used, whether they worked or not.
    pub refreshed: usize,
    /// Tokens given to clients themselves.
    pub by_client: usize,
    /// Refresh tokens that came a second time.
    pub reused: usize,
    /// Tokens given back.
    pub revoked: usize,
    /// Requests that the protected server let in.
    pub served: usize,
}

/// A client.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) secret: Option<String>,
    /// Where it may be sent back to; any port of this machine where this is empty.
    pub(super) redirects: Vec<String>,
}

/// What a code or a refresh token stands for.
#[derive(Debug, Clone)]
pub(super) struct Grant {
    pub(super) client: String,
    pub(super) scopes: String,
    pub(super) challenge: String,
    pub(super) redirect: String,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) clients: HashMap<String, Client>,
    pub(super) codes: HashMap<String, Grant>,
    /// Access tokens with their scopes.
    pub(super) access: HashMap<String, String>,
    pub(super) refresh: HashMap<String, Grant>,
    pub(super) spent: Vec<String>,
    pub(super) counts: Counts,
    pub(super) complaints: Vec<String>,
    pub(super) secrets: Vec<String>,
    pub(super) last_scopes: String,
    /// The authorization servers that the protected server names from now on, in place of its own.
    pub(super) issuers: Option<Vec<String>>,
    /// Where tokens are given from now on.
    pub(super) token_endpoint: Option<String>,
}

impl Ledger {
    pub(super) fn new(plan: &OAuthPlan) -> Self {
        let mut ledger = Self::default();
        if let Some((id, secret)) = plan.client {
            ledger.secrets.extend(secret.map(str::to_owned));
            let secret = secret.map(str::to_owned);
            ledger.clients.insert(id.to_owned(), Client { secret, redirects: Vec::new() });
        }
        ledger
    }

    /// A new text that stands for something, and must never be seen.
    pub(super) fn secret(&mut self, what: &str) -> String {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let text = format!("{what}-{:x}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        self.secrets.push(text.clone());
        text
    }

    pub(super) fn complain(&mut self, what: impl Into<String>) {
        self.complaints.push(what.into());
    }
}
