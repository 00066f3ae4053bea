//! What a login needs: the expanded configuration, and the HTTP client.

use reqwest::header::HeaderMap;
use toolhub_core::{OAuthSpec, ServerId};
use url::Url;

use crate::fetch::LoginFetcher;

/// The configuration with expanded variables, and the HTTP client of the login.
pub(super) struct LoginContext {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) spec: OAuthSpec,
    pub(super) fetch: LoginFetcher,
    /// The name of the stored login.
    pub(super) name: String,
    pub(super) server: ServerId,
    /// Whether the owner has just named the authorization server, so that credentials are bound again.
    pub(super) rebind: bool,
}
